"""Which of a collection's definitions a page is about: one at a time, the newest unless chosen."""

from __future__ import annotations

from collections.abc import Sequence

from flask import request, url_for

from ..queries.snapshot import series_by_fingerprint
from ..series.series import Series
from .layout import NAME

Choice = tuple[str, str, bool]  # what it is called, its address, whether it is this one

DIGITS = 12  # of a fingerprint


def definition(series: Sequence[Series]) -> Series:
    """Return the definition that a page's address names."""
    asked = request.args.get("series", "")
    return series_by_fingerprint(series, asked) if asked else series[0]


def definitions(endpoint: str, series: Sequence[Series], shown: Series) -> list[Choice]:
    """Return the choice between a collection's definitions; of one there is none."""
    if len(series) == 1:
        return []
    return [
        (
            each.fingerprint[:DIGITS],
            url_for(f"{NAME}.{endpoint}", name=each.collection.name, series=each.fingerprint),
            each.fingerprint == shown.fingerprint,
        )
        for each in series
    ]
