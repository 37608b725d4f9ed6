"""Closing a row by its name, which only its device knows: its slots accept no more reports.

A name is read strictly, and no message repeats one.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated

from msgspec import Meta, Struct

from veilcount_analysis.series.series import Series

from ..interface import IntakeStore
from ..series_reports import ROW_BYTES

FINGERPRINT = r"^[0-9a-f]{64}$"
PSEUDONYM = r"^[A-Za-z0-9_-]{21}[AQgw]$"  # 16 bytes, canonical: the last 4 bits are 0


class RowReference(Struct, frozen=True, forbid_unknown_fields=True):
    """A fingerprint and a pseudonym, as `Client.rows()` returns them."""

    # A pattern's `$` matches before a line end too: the length rules it out.
    fingerprint: Annotated[
        str, Meta(pattern=FINGERPRINT, max_length=64, description="SHA-256, hexadecimal")
    ]
    pseudonym: Annotated[
        str, Meta(pattern=PSEUDONYM, max_length=22, description="16 bytes, base64url")
    ]

    @property
    def row(self) -> bytes:
        """The stored prefix of the pseudonym."""
        return urlsafe_b64decode(self.pseudonym + "==")[:ROW_BYTES]


def close_row(
    store: IntakeStore, series: Mapping[str, Series], name: RowReference, day: date
) -> bool:
    """Close a row in the epochs that accept reports on a day; return whether it was in any."""
    named_series = series.get(name.fingerprint)
    if named_series is None:
        return False
    return store.close_row(named_series, open_epochs(named_series, day), name.row)


def open_epochs(series: Series, day: date) -> Sequence[int]:
    """Return the epochs in which a row may stand: begun, and not over."""
    if series.linked:
        return range(0 if series.over(0, day) else 1)
    _, newest = series.open_periods(day)
    return [epoch for epoch in range(newest + 1) if not series.over(epoch, day)]
