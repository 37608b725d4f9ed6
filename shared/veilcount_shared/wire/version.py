"""Protocol version, media types and size limit of both formats."""

from __future__ import annotations

from ..errors import UnknownVersion, WrongLength

VERSION = 1
BINARY_TYPE = "application/vnd.veilcount.batch"
JSON_TYPE = "application/json"
MAX_BODY = 2 << 20  # a thousand of the widest messages, in JSON, with room to spare


def check_version(version: object) -> None:
    """Refuse another version before anything else is looked at."""
    if type(version) is not int or version != VERSION:
        raise UnknownVersion("version", f"this aggregator supports version {VERSION}")


def check_size(body: bytes) -> None:
    """Refuse a body that is too long to be looked at."""
    if len(body) > MAX_BODY:
        raise WrongLength("body", f"{len(body):,} bytes: {MAX_BODY:,} at most")
