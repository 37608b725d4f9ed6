"""Protocol version, media types and size limit of a batch."""

from __future__ import annotations

from ..errors import UnknownVersion, WrongLength
from ..report import MAX_REPORTS

VERSION = 1
BINARY_TYPE = "application/vnd.veilcount.batch"
JSON_TYPE = "application/json"
MAX_BODY = 11 << 16  # as a client pads 500 reports, the widest of all series, with tokens


def check_version(version: object) -> None:
    """Refuse another version before anything else is looked at."""
    if type(version) is not int or version != VERSION:
        raise UnknownVersion("version", f"this aggregator supports version {VERSION}")


def check_size(body: bytes) -> None:
    """Refuse a body that is too long to be looked at."""
    if len(body) > MAX_BODY:
        raise WrongLength("body", f"{len(body):,} bytes: {MAX_BODY:,} at most")


def check_count(reports: int) -> None:
    """Refuse more reports than a batch has, before the first is read."""
    if reports > MAX_REPORTS:
        raise WrongLength("reports", f"{reports} in one batch: {MAX_REPORTS} at most")
