"""Which of a collection's definitions a page is about: the one in its address, else the newest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import request, url_for

from ..queries.snapshot import series_by_fingerprint
from ..series.series import Series
from .pages import NAME

DIGITS = 12  # of a fingerprint


def series_choice(endpoint: str, known: Sequence[Series]) -> dict[str, Any]:
    """Return the definition that the request names, and links to all of them if there are more."""
    fingerprint = request.values.get("series", "")
    series = series_by_fingerprint(known, fingerprint) if fingerprint else known[0]
    links = [
        (
            each.fingerprint[:DIGITS],
            url_for(f"{NAME}.{endpoint}", name=each.collection.name, series=each.fingerprint),
            each.fingerprint == series.fingerprint,
        )
        for each in known
    ]
    return {"series": series, "definitions": links if len(links) > 1 else []}
