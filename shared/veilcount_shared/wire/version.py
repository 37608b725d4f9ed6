"""Protocol version, media types and size limit of a batch."""

from __future__ import annotations

from ..errors import BadField, UnknownVersion, WrongLength
from ..report import MAX_REPORTS, Batch

VERSION = 1
TOKEN_VERSION = 2  # of a batch whose reports have tokens
VERSIONS = (VERSION, TOKEN_VERSION)
BINARY_TYPE = "application/vnd.veilcount.batch"
JSON_TYPE = "application/json"
MAX_BODY = 11 << 16  # as a client pads 500 reports, the widest of all series, with tokens


def check_version(version: object) -> int:
    """Return the version; refuse another one before anything else is looked at."""
    if type(version) is not int or version not in VERSIONS:
        supported = " and ".join(map(str, VERSIONS))
        raise UnknownVersion("version", f"this aggregator supports versions {supported}")
    return version


def check_tokens(version: int, batch: Batch) -> Batch:
    """Refuse version 2 without a token: every batch has one version."""
    if version == TOKEN_VERSION and not batch.has_tokens:
        raise BadField("version", f"version {TOKEN_VERSION} is for reports that have tokens")
    return batch


def check_size(body: bytes) -> None:
    """Refuse a body that is too long to be looked at."""
    if len(body) > MAX_BODY:
        raise WrongLength("body", f"{len(body):,} bytes: {MAX_BODY:,} at most")


def check_count(reports: int) -> None:
    """Refuse more reports than a batch has, before the first is read."""
    if reports > MAX_REPORTS:
        raise WrongLength("reports", f"{reports} in one batch: {MAX_REPORTS} at most")
