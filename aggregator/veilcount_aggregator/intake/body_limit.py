"""Which reports of each body are within its limit of pseudonyms.

A body of one device has one pseudonym, however many reports; a body of a flood has as many as fit.
Since no device uses a pseudonym in two series, nor for two tokens, it counts anew in each series
and for each report with a token. So the limit also bounds how many series a body has written, and
how many signatures it has verified.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.limits import PSEUDONYM_BYTES

from .decode import DecodedGroup

_ROW = np.dtype([("pseudonym", "u1", (PSEUDONYM_BYTES,)), ("series", "u4"), ("place", "u4")])
#: the same as one string, which is sorted faster; of one length, so that zeros at the end differ
_NAME = np.dtype(f"S{_ROW.itemsize}")


def within_limit(group: DecodedGroup, most: int | None) -> NDArray[np.bool_] | None:
    """Return which reports are of the first so many pseudonyms of their body; None: all are."""
    sizes = np.diff(group.starts)
    if most is None or sizes.max(initial=0) <= most:  # nearly always
        return None
    names = _rows(group).view(_NAME)
    admitted = np.ones(group.reports, np.bool_)
    for body in np.flatnonzero(sizes > most).tolist():
        reports = slice(group.starts[body], group.starts[body + 1])
        _, first, of = np.unique(names[reports], return_index=True, return_inverse=True)
        admitted[reports] = first[of] <= np.sort(first)[min(most, len(first)) - 1]
    return admitted


def _rows(group: DecodedGroup) -> NDArray[np.void]:
    """Return what each report counts as: its series, pseudonym and, with a token, its place."""
    rows = np.zeros(group.reports, _ROW)
    for number, columns in enumerate(group.series_columns):
        rows["pseudonym"][columns.places] = columns.pseudonyms
        rows["series"][columns.places] = number
        if columns.tokens.shape[1]:
            rows["place"][columns.places] = columns.places
    return rows
