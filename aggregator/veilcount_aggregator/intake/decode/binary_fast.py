"""Binary bodies as columns: what is surely right, in a few steps of numpy.

Whatever is not surely right is None here, and `veilcount_shared` says what it is: a batch that is
read another way, or an error with its place. So there is one truth about what is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, repeat
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.limits import MAX_CELLS, MAX_SLOTS, PSEUDONYM_BYTES, TOKEN_BYTES
from veilcount_shared.report import MAX_MESSAGE, MAX_REPORTS
from veilcount_shared.wire import VERSION

from .columns import DecodedBody, ReportColumns, TablePart

_LETTERS = b"VC"
_HEAD = Struct(">2sBBB")  # those, the version, the flags, the number of series
_SERIES = Struct(">32sHH")  # the fingerprint, the widths of its messages and tokens
_REPORTS = Struct(">BH")  # the number of losses, the number of reports
_TOKEN_WIDTHS = {0, TOKEN_BYTES}
_PREFIX_BYTES = _HEAD.size + _SERIES.size + _REPORTS.size  # of a body with one series
_NAME = slice(_HEAD.size, _HEAD.size + 32)  # the fingerprint of its series
_REPORT = 22  # bytes of a report before its message
_PADDING = 2
_ZEROS = bytes(1 << 16)

Rows = NDArray[np.void]
Places = NDArray[np.intp]


class _Series(NamedTuple):
    name: bytes
    width: int
    token: int

    @property
    def size(self) -> int:
        """How many bytes follow the fixed ones of a report."""
        return self.width + self.token


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
    letters, version, flags, count = _HEAD.unpack_from(body)
    if letters != _LETTERS or version != VERSION or flags > 1 or not count:
        return None
    losses_at = _HEAD.size + count * _SERIES.size
    if len(body) < losses_at + _REPORTS.size:
        return None
    series = [_Series(*row) for row in _SERIES.iter_unpack(body[_HEAD.size : losses_at])]
    losses, reports = _REPORTS.unpack_from(body, losses_at)
    if losses or not 1 <= reports <= MAX_REPORTS or not _sound(series):
        return None
    return _Head(flags == 1, series, reports, losses_at + _REPORTS.size)


def decode_binary_fast(body: bytes) -> DecodedBody | None:
    """Return the body if it is surely right and has reports."""
    head = _parse_head(body)
    if head is None:
        return None
    if len(head.series) == 1:
        return _decode_alike([body], head)
    columns = _all_columns(body, head)
    return None if columns is None else DecodedBody(head.reports, columns, test=head.test)


def shape(body: bytes) -> tuple[int, bytes, bytes]:
    """Return the shape of a body: bodies of one shape are read as one by `decode_alike`."""
    return len(body), body[: _NAME.start], body[_NAME.stop : _PREFIX_BYTES]


def decode_alike(bodies: Sequence[bytes]) -> DecodedBody | None:
    """Return bodies of one shape as one body, if all are surely right.

    So are most that devices send: they differ in their series' name and their reports alone; the
    numbers before the reports, and the padding that follows them, are the same in each.
    """
    head = _parse_head(bodies[0])
    return None if head is None or len(head.series) != 1 else _decode_alike(bodies, head)


def _decode_alike(bodies: Sequence[bytes], head: _Head) -> DecodedBody | None:
    (series,) = head.series
    table = _table(series.width, series.token)
    end = head.end + head.reports * table.itemsize
    padding = bodies[0][end:]
    if not _ends(bodies[0], end) or any(body[end:] != padding for body in bodies):
        return None
    names = [body[_NAME] for body in bodies]
    order = sorted(range(len(bodies)), key=names.__getitem__)  # the reports of one series together
    rows = np.frombuffer(b"".join([bodies[place][head.end : end] for place in order]), table)
    if rows["series"].any() or not _within(rows):
        return None
    starts = np.array(order, np.intp)[:, np.newaxis] * head.reports
    whole = _columns(series, (starts + np.arange(head.reports)).ravel(), rows)
    if len(set(names)) == 1:
        return DecodedBody(len(rows), (whole,), test=head.test)
    columns, first = [], 0
    for name, bodies_of_series in sorted(Counter(names).items()):
        rows_of_series = slice(first, first + bodies_of_series * head.reports)
        columns.append(TablePart(name.hex(), whole, rows_of_series))
        first = rows_of_series.stop
    return DecodedBody(len(rows), tuple(columns), test=head.test)


def _sound(series: Sequence[_Series]) -> bool:
    """Whether all widths are possible, and no series stands there twice."""
    names, widths, tokens = zip(*series, strict=True)
    return (
        min(widths) >= 1
        and max(widths) <= MAX_MESSAGE
        and _TOKEN_WIDTHS.issuperset(tokens)
        and len(set(names)) == len(series)
    )


def _all_columns(body: bytes, head: _Head) -> tuple[ReportColumns, ...] | None:
    """Return columns for each of several series.

    What all reports have is read and checked as one table, since a body may name 255 series.
    """
    offsets = _offsets(body, head)
    if offsets is None:
        return None
    raw = np.frombuffer(body, np.uint8)
    rows = _gather(raw, offsets, _REPORT).view(_table(0, 0))[:, 0]
    if not _within(rows) or not _is_numbered(rows["series"], len(head.series)):
        return None
    order = np.argsort(rows["series"], kind="stable")
    whole, starts = _columns(_Series(b"", 0, 0), order, rows[order]), offsets[order] + _REPORT
    parts = [
        slice(*bound) for bound in pairwise([0, *np.bincount(rows["series"]).cumsum().tolist()])
    ]
    sizes = {series.size for series in head.series}
    if len(sizes) == 1:
        gathered = _gather(raw, starts, sizes.pop())
        varying = [gathered[part] for part in parts]
    else:
        varying = [
            _gather(raw, starts[part], series.size)
            for part, series in zip(parts, head.series, strict=True)
        ]
    return tuple(map(_part, repeat(whole), parts, head.series, varying))


def _part(
    whole: ReportColumns, rows: slice, series: _Series, varying: NDArray[np.uint8]
) -> ReportColumns:
    """Return the rows of one series, with their messages and tokens."""
    return ReportColumns(
        series.name.hex(),
        whole.places[rows],
        whole.pseudonyms[rows],
        whole.periods[rows],
        whole.segments[rows],
        whole.slots[rows],
        varying[:, : series.width],
        varying[:, series.width :],
    )


def _offsets(body: bytes, head: _Head) -> Places | None:
    """Return where each report begins: its first byte tells its length, if that varies."""
    lengths = [_REPORT + series.size for series in head.series]
    if len(set(lengths)) == 1:
        end = head.end + lengths[0] * head.reports
        return np.arange(head.end, end, lengths[0], dtype=np.intp) if _ends(body, end) else None
    offsets, end = [], head.end
    try:
        for _ in range(head.reports):
            offsets.append(end)
            end += lengths[body[end]]
    except IndexError:  # beyond the body, or of a series that is not there
        return None
    return np.array(offsets, np.intp) if _ends(body, end) else None


def _gather(raw: NDArray[np.uint8], offsets: Places, size: int) -> NDArray[np.uint8]:
    """Return so many bytes from each of the offsets."""
    gathered: NDArray[np.uint8] = raw[offsets[:, None] + np.arange(size)]
    return gathered


def _ends(body: bytes, end: int) -> bool:
    """Whether the reports end here, and nothing but padding follows."""
    first = end + _PADDING
    padding = len(body) - first
    return (
        0 <= padding < len(_ZEROS)
        and int.from_bytes(body[end:first], "big") == padding
        and (not padding or body.endswith(_ZEROS[:padding]))
    )


def _is_numbered(numbers: NDArray[np.uint8], count: int) -> bool:
    """Whether the reports' series are numbered by first use, and all of them are used."""
    newest = np.maximum.accumulate(numbers.astype(np.intp))
    return bool(not newest[0] and newest[-1] == count - 1 and (np.diff(newest) <= 1).all())


@lru_cache(maxsize=64)  # building it costs as much as reading a report
def _table(width: int, token: int) -> np.dtype[np.void]:
    return np.dtype(
        [
            ("series", "u1"),
            ("pseudonym", "u1", (PSEUDONYM_BYTES,)),
            ("period", ">u2"),
            ("slot", ">u2"),
            ("segment", "u1"),
            ("message", "u1", (width,)),
            ("token", "u1", (token,)),
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
        rows["token"],
    )
