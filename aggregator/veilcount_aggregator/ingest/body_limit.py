"""Which reports of each body are within its limit of pseudonyms.

A body of one device has one pseudonym, however many reports; a body of a flood has as many as fit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.report import PSEUDONYM_BYTES

from .decode import DecodedGroup

_NAME = np.dtype(f"S{PSEUDONYM_BYTES}")  # of one length, so that zeros at the end differ too


def within_limit(group: DecodedGroup, most: int | None) -> NDArray[np.bool_] | None:
    """Return which reports are of the first so many pseudonyms of their body; None: all are."""
    sizes = np.diff(group.starts)
    if most is None or sizes.max(initial=0) <= most:  # nearly always
        return None
    names = np.empty(group.reports, _NAME)
    for columns in group.series_columns:
        names[columns.places] = np.ascontiguousarray(columns.pseudonyms).view(_NAME).ravel()
    admitted = np.ones(group.reports, np.bool_)
    for body in np.flatnonzero(sizes > most).tolist():
        reports = slice(group.starts[body], group.starts[body + 1])
        _, first, of = np.unique(names[reports], return_index=True, return_inverse=True)
        admitted[reports] = first[of] <= np.sort(first)[min(most, len(first)) - 1]
    return admitted
