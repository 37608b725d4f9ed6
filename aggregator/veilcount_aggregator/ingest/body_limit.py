"""Which reports of a body are within its limit of pseudonyms.

A body of one device has one pseudonym, however many reports; a body of a flood has as many as fit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.report import PSEUDONYM_BYTES

from .decode import DecodedBody

_NAME = np.dtype(f"S{PSEUDONYM_BYTES}")  # of one length, so that zeros at the end differ too


def within_limit(body: DecodedBody, most: int | None) -> NDArray[np.bool_] | None:
    """Return which reports are of the first so many pseudonyms; None: all of them are."""
    if most is None or body.reports <= most:  # nearly always
        return None
    names = np.empty(body.reports, _NAME)
    for columns in body.series_columns:
        names[columns.places] = np.ascontiguousarray(columns.pseudonyms).view(_NAME).ravel()
    _, first, of = np.unique(names, return_index=True, return_inverse=True)
    if len(first) <= most:
        return None
    last = np.sort(first)[most - 1]
    admitted: NDArray[np.bool_] = first[of] <= last
    return admitted
