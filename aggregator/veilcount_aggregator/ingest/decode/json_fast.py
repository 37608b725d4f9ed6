"""JSON bodies as columns: what is surely right, by msgspec and a few steps of numpy.

Whatever is not surely right is None here, and `veilcount_shared` says what it is. msgspec takes the
last of two equal keys; since no string of a right body has a colon or an escape, counting colons
finds every key that stands there twice.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType
from numpy.typing import NDArray

from veilcount_shared.collection.validation import MAX_CELLS, MAX_SLOTS
from veilcount_shared.report import (
    MAX_BUCKET,
    MAX_MESSAGE,
    MAX_PADDING,
    MAX_PERIODS,
    MAX_REPORTS,
    PSEUDONYM_BYTES,
    TOKEN_BYTES,
)
from veilcount_shared.wire import TOKEN_VERSION

from .columns import DecodedBody, ReportColumns

Bytes = NDArray[np.uint8]


def letters(size: int) -> int:
    """Return how many letters of base64url spell so many bytes."""
    return -(-size * 8 // 6)


def _shaped(pattern: str, least: int, most: int) -> Meta:
    # The pattern is for the document alone: as a check it would cost more than all the rest.
    return Meta(min_length=least, max_length=most, extra_json_schema={"pattern": pattern})


BASE64URL = "^[A-Za-z0-9_-]+$"
Fingerprint = Annotated[str, _shaped("^[0-9a-f]{64}$", 64, 64)]
Pseudonym = Annotated[str, _shaped(BASE64URL, letters(PSEUDONYM_BYTES), letters(PSEUDONYM_BYTES))]
Message = Annotated[str, _shaped(BASE64URL, letters(1), letters(MAX_MESSAGE))]
Token = Annotated[str, _shaped(BASE64URL, letters(TOKEN_BYTES), letters(TOKEN_BYTES))]
Bucket = Annotated[int, Meta(ge=0, le=MAX_BUCKET)]


class JsonReport(Struct, forbid_unknown_fields=True, gc=False):
    """One randomized answer."""

    fingerprint: Fingerprint
    period: Annotated[int, Meta(ge=0, lt=MAX_PERIODS)]
    segment: Annotated[int, Meta(ge=0, lt=MAX_CELLS)]
    pseudonym: Pseudonym
    slot: Annotated[int, Meta(ge=0, lt=MAX_SLOTS)]
    message: Message
    token: Token | UnsetType = UNSET


class JsonLosses(Struct, forbid_unknown_fields=True):
    """What one device lost of one series: 0 for none, else the number of decimal digits."""

    fingerprint: Fingerprint
    aged: Bucket
    evicted: Bucket
    corrupt: Bucket


class JsonBatch(Struct, forbid_unknown_fields=True):
    """What one request carries: reports, or the losses of one series."""

    version: Literal[1, 2]
    reports: Annotated[list[JsonReport], Meta(max_length=MAX_REPORTS)]
    test: bool | UnsetType = UNSET
    losses: JsonLosses | UnsetType | None = UNSET
    padding: Annotated[str, _shaped("^0*$", 0, MAX_PADDING)] | UnsetType = UNSET


_decode = msgspec.json.Decoder(JsonBatch).decode
_is_fingerprint = re.compile("[0-9a-f]{64}").fullmatch
_KEYS_OF_REPORT = len(JsonReport.__struct_fields__) - 1  # a token comes on top
_TO_STANDARD = bytes.maketrans(b"-_+/=", b"+/!!!")  # ! is no letter of any base64


def decode_json_fast(body: bytes) -> DecodedBody | None:
    """Return the body if it is surely right and has reports."""
    batch = parse_json_fast(body)
    return None if batch is None else merge_json([batch])


def merge_json(batches: Sequence[JsonBatch]) -> DecodedBody | None:
    """Return the reports of batches as one body, if all are surely right."""
    reports = [report for batch in batches for report in batch.reports]
    found = _all_columns(reports)
    if found is None:
        return None
    return DecodedBody(len(reports), found, test=any(batch.test is True for batch in batches))


def parse_json_fast(body: bytes) -> JsonBatch | None:
    """Return the batch, if all but the bytes in its reports is surely right."""
    if not body.isascii() or b"\\" in body:
        return None
    try:
        batch = _decode(body)
    except msgspec.MsgspecError:
        return None
    if not batch.reports or batch.losses or (batch.padding or "").strip("0"):
        return None
    tokens = sum(report.token is not UNSET for report in batch.reports)
    if (batch.version == TOKEN_VERSION) != bool(tokens):
        return None
    return batch if body.count(b":") == _keys(batch) + tokens else None


def _keys(batch: JsonBatch) -> int:
    """Return the number of keys in the body."""
    optional = sum(each is not UNSET for each in (batch.test, batch.losses, batch.padding))
    return 2 + optional + _KEYS_OF_REPORT * len(batch.reports)


def _all_columns(reports: Sequence[JsonReport]) -> tuple[ReportColumns, ...] | None:
    names = [report.fingerprint for report in reports]
    if names.count(names[0]) == len(names):  # the commonest by far
        places = {names[0]: list(range(len(names)))}
    else:
        places = {}
        for place, name in enumerate(names):
            places.setdefault(name, []).append(place)
    found = []
    for name, where in places.items():
        columns = _columns(name, where, [reports[place] for place in where])
        if columns is None:
            return None
        found.append(columns)
    return tuple(found)


def _columns(name: str, places: list[int], reports: Sequence[JsonReport]) -> ReportColumns | None:
    pseudonyms = _matrix([report.pseudonym for report in reports])
    messages = _matrix([report.message for report in reports])
    tokens = _matrix([report.token or "" for report in reports])
    if not _is_fingerprint(name) or pseudonyms is None or messages is None or tokens is None:
        return None
    return ReportColumns(
        name,
        np.array(places, np.intp),
        pseudonyms,
        np.array([report.period for report in reports], np.int64),
        np.array([report.segment for report in reports], np.int64),
        np.array([report.slot for report in reports], np.int64),
        messages,
        tokens,
    )


def _matrix(texts: list[str]) -> Bytes | None:
    """Return what texts of one length spell, if each is in the one spelling that its bytes have.

    Filled up with zero bits to whole groups of four letters, all of them are read at once; what a
    text has beyond its last whole byte must then be zero, and so must be the fill.
    """
    size = len(texts[0])
    if not any(texts):
        return np.empty((len(texts), 0), np.uint8)
    if size % 4 == 1 or any(len(text) != size for text in texts):
        return None
    fill = "A" * (-size % 4)
    joined = (fill.join(texts) + fill).encode().translate(_TO_STANDARD)
    try:
        rows = np.frombuffer(a2b_base64(joined, strict_mode=True), np.uint8)
    except Error:
        return None
    rows = rows.reshape(len(texts), -1)
    whole = size * 6 // 8
    return None if rows[:, whole:].any() else rows[:, :whole]
