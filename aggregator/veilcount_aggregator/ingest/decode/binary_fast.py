"""Packed bodies as columns: what is surely right, in a few steps of numpy.

Whatever is not surely right is None here, and `veilcount_shared` says what it is: a batch that is
read another way, or an error with its place. So there is one truth about what is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.collection.validation import MAX_CELLS, MAX_SLOTS
from veilcount_shared.report import MAX_MESSAGE, MAX_REPORTS, PSEUDONYM_BYTES

from .columns import DecodedBody, ReportColumns

_BEGINNING = b"VC\x01"  # the letters and the version
_HEAD = Struct(">3sBB")  # those, the flags, the number of series
_SERIES = Struct(">32sH")
_REPORTS = Struct(">BH")  # the number of losses, the number of reports
#: bytes before the reports of a body of one series
PREFIX = _HEAD.size + _SERIES.size + _REPORTS.size
_REPORT = 22  # bytes of a report before its message
_PADDING = 2
_ZEROS = bytes(1 << 16)

Rows = NDArray[np.void]
Places = NDArray[np.intp]


class _Series(NamedTuple):
    name: bytes
    width: int


class _Head(NamedTuple):
    """What precedes the reports of a body."""

    test: bool
    series: Sequence[_Series]
    reports: int
    end: int


def _parse_head(body: bytes) -> _Head | None:
    """Return the head of a body if it is surely right, has reports and no losses."""
    if len(body) < _HEAD.size:
        return None
    beginning, flags, count = _HEAD.unpack_from(body)
    losses_at = _HEAD.size + count * _SERIES.size
    if beginning != _BEGINNING or flags > 1 or not count or len(body) < losses_at + _REPORTS.size:
        return None
    series = [_Series(*each) for each in _SERIES.iter_unpack(body[_HEAD.size : losses_at])]
    losses, reports = _REPORTS.unpack_from(body, losses_at)
    if losses or not 1 <= reports <= MAX_REPORTS or not _sound(series):
        return None
    return _Head(flags == 1, series, reports, losses_at + _REPORTS.size)


def decode_packed_fast(body: bytes) -> DecodedBody | None:
    """Return the body if it is surely right and has reports."""
    head = _parse_head(body)
    if head is None:
        return None
    if len(head.series) == 1:
        return decode_alike([body])
    found = _all_columns(body, head)
    return None if found is None else DecodedBody(head.reports, found, test=head.test)


def decode_alike(bodies: Sequence[bytes]) -> DecodedBody | None:
    """Return bodies of one length and one `prefix` as one body, if all are surely right.

    They are alike where devices report one series: what precedes the reports, and the padding that
    follows them, is the same in each.
    """
    head = _parse_head(bodies[0])
    if head is None or len(head.series) != 1:
        return None
    (series,) = head.series
    table = _table(series.width)
    end = PREFIX + head.reports * table.itemsize
    padding = bodies[0][end:]
    if not _ends(bodies[0], end) or any(body[end:] != padding for body in bodies):
        return None
    rows = np.frombuffer(b"".join([body[PREFIX:end] for body in bodies]), table)
    if rows["series"].any() or not _within(rows):
        return None
    whole = _columns(series, np.arange(len(rows)), rows)
    return DecodedBody(len(rows), (whole,), test=head.test)


def _sound(series: Sequence[_Series]) -> bool:
    """Whether all messages have a possible width, and no series stands there twice."""
    widths = [each.width for each in series]
    return (
        min(widths) >= 1
        and max(widths) <= MAX_MESSAGE
        and len({each.name for each in series}) == len(series)
    )


def _all_columns(body: bytes, head: _Head) -> tuple[ReportColumns, ...] | None:
    """Return columns for each of several series: in one view where all reports have one length,
    else gathered.
    """
    series, count, start = head.series, head.reports, head.end
    if len({each.width for each in series}) == 1:
        table = _table(series[0].width)
        if not _ends(body, start + count * table.itemsize):
            return None
        rows = np.frombuffer(body, table, count, start)
        places = _places(rows["series"], len(series))
        parts = [rows[where] for where in places]
    else:
        offsets = _offsets(body, start, series, count)
        if offsets is None:
            return None
        raw = np.frombuffer(body, np.uint8)
        places = _places(raw[offsets], len(series))
        parts = [
            _gather(raw, offsets[where], each.width)
            for each, where in zip(series, places, strict=False)
        ]
    if not places or not all(map(_within, parts)):
        return None
    return tuple(map(_columns, series, places, parts))


def _offsets(body: bytes, start: int, series: Sequence[_Series], reports: int) -> Places | None:
    """Return where each report begins: its first byte tells its length."""
    lengths = [_REPORT + each.width for each in series]
    offsets = [start]
    try:
        for _ in range(reports):
            offsets.append(offsets[-1] + lengths[body[offsets[-1]]])
    except IndexError:  # beyond the body, or of a series that is not there
        return None
    return np.array(offsets[:-1], np.intp) if _ends(body, offsets[-1]) else None


def _ends(body: bytes, end: int) -> bool:
    """Whether the reports end here, and nothing but padding follows."""
    first = end + _PADDING
    padding = len(body) - first
    return (
        0 <= padding < len(_ZEROS)
        and int.from_bytes(body[end:first], "big") == padding
        and (not padding or body.endswith(_ZEROS[:padding]))
    )


def _places(numbers: NDArray[np.uint8], count: int) -> list[Places]:
    """Return where each series' reports are; nothing if they are not numbered by first use."""
    newest = np.maximum.accumulate(numbers.astype(np.intp))
    if newest[0] or newest[-1] != count - 1 or (np.diff(newest) > 1).any():
        return []
    return np.split(np.argsort(numbers, kind="stable"), np.bincount(numbers).cumsum()[:-1])


def _gather(raw: NDArray[np.uint8], offsets: Places, width: int) -> Rows:
    rows: Rows = raw[offsets[:, None] + np.arange(_REPORT + width)].view(_table(width))[:, 0]
    return rows


@lru_cache(maxsize=64)  # building it costs as much as reading a report
def _table(width: int) -> np.dtype[np.void]:
    return np.dtype(
        [
            ("series", "u1"),
            ("pseudonym", "u1", (PSEUDONYM_BYTES,)),
            ("period", ">u2"),
            ("slot", ">u2"),
            ("segment", "u1"),
            ("message", "u1", (width,)),
        ]
    )


def _within(rows: Rows) -> bool:
    """Whether the numbers are such as some series could have."""
    return bool(rows["slot"].max() < MAX_SLOTS and rows["segment"].max() < MAX_CELLS)


def _columns(series: _Series, places: Places, rows: Rows) -> ReportColumns:
    return ReportColumns(
        series.name.hex(),
        places,
        rows["pseudonym"],
        rows["period"].astype(np.int64),
        rows["segment"].astype(np.int64),
        rows["slot"].astype(np.int64),
        rows["message"],
    )
