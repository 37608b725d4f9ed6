"""The binary encoding of a batch. Big-endian; its length depends on no value.

  2  "VC"
  1  version, 1
  1  flags: bit 0 a test batch; the others 0
  1  number of series S
S x  32 fingerprint, 2 width of its messages in bytes, 2 width of its tokens, 0 or 256; in order
     of first use
  1  number of losses, 0 or 1
     32 fingerprint, 1 aged, 1 evicted, 1 corrupt
  2  number of reports R
R x  1 series, 16 pseudonym, 2 period, 2 slot, 1 segment, then the message at its series' width,
     then the token at its own
  2  length of the padding, then as many zero bytes
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from ..errors import BadField, UnknownVersion, WireError, WrongLength
from ..report import MAX_REPORTS, Batch, Losses, Report
from .version import VERSION, check_count, check_size, check_version

MAGIC = b"VC"
TEST = 1

_HEAD = Struct(">2sB")
_SERIES = Struct(">32sHH")
_LOSSES = Struct(">32sBBB")
_REPORT = Struct(">B16sHHB")
_SHORT = Struct(">H")
_BYTE = Struct(">B")


def encode_binary(batch: Batch) -> bytes:
    """Return the binary body of a batch."""
    series = batch.series()
    number = {fingerprint: place for place, fingerprint in enumerate(series)}
    losses = [] if batch.losses is None else [batch.losses]
    return b"".join(
        [
            _HEAD.pack(MAGIC, VERSION),
            _BYTE.pack(TEST * batch.test),
            _BYTE.pack(len(series)),
            *(_SERIES.pack(bytes.fromhex(name), *widths) for name, widths in series.items()),
            _BYTE.pack(len(losses)),
            *(
                _LOSSES.pack(bytes.fromhex(lost.fingerprint), lost.aged, lost.evicted, lost.corrupt)
                for lost in losses
            ),
            _SHORT.pack(len(batch.reports)),
            *(
                _REPORT.pack(
                    number[report.fingerprint],
                    report.pseudonym,
                    report.period,
                    report.slot,
                    report.segment,
                )
                + report.message
                + report.token
                for report in batch.reports
            ),
            _SHORT.pack(batch.padding),
            bytes(batch.padding),
        ]
    )


def decode_binary(body: bytes, most: int = MAX_REPORTS) -> Batch:
    """Return the batch of a binary body; raise WireError with the place if it is invalid.

    A body of more reports than `most` is refused without a search for the place.
    """
    check_size(body)
    reader = _Reader(body)
    magic, version = reader.take(_HEAD, "head")
    if magic != MAGIC:
        raise UnknownVersion("head", "not a binary batch: one begins with the letters VC")
    check_version(version)
    flags = reader.number(_BYTE, "flags")
    if flags & ~TEST:
        raise BadField("flags", "bit 0 is the only one")
    series = _read_series(reader)
    losses = _read_losses(reader)
    reports = _read_reports(reader, series, most)
    padding = _read_padding(reader)
    reader.end()
    return Batch(reports, losses, bool(flags & TEST), padding)


class _Reader:
    """A cursor in a body that only moves forward."""

    __slots__ = ("_body", "_place")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._place = 0

    def take(self, fields: Struct, name: str) -> tuple[Any, ...]:
        return fields.unpack(self.take_bytes(fields.size, name))

    def number(self, fields: Struct, name: str) -> int:
        return int.from_bytes(self.take_bytes(fields.size, name), "big")

    def take_bytes(self, size: int, name: str) -> bytes:
        part = self._body[self._place : self._place + size]
        if len(part) != size:
            raise WrongLength(name, f"the body ends at byte {len(self._body)}, inside this")
        self._place += size
        return part

    def end(self) -> None:
        if self._place != len(self._body):
            raise WrongLength("body", f"{len(self._body) - self._place} bytes follow its end")


def _read_series(reader: _Reader) -> list[tuple[str, int, int]]:
    series = []
    for place in range(reader.number(_BYTE, "series")):
        name, width, token = reader.take(_SERIES, f"series[{place}]")
        series.append((name.hex(), width, token))
    if len({name for name, *_ in series}) != len(series):
        raise BadField("series", "a fingerprint is listed twice")
    return series


def _read_losses(reader: _Reader) -> Losses | None:
    number = reader.number(_BYTE, "losses")
    if number > 1:
        raise BadField("losses", "of one series at most")
    if not number:
        return None
    name, aged, evicted, corrupt = reader.take(_LOSSES, "losses")
    return Losses(name.hex(), aged, evicted, corrupt)


def _read_reports(
    reader: _Reader, series: list[tuple[str, int, int]], most: int
) -> tuple[Report, ...]:
    reports: list[Report] = []
    used, count = 0, reader.number(_SHORT, "reports")
    check_count(count)
    if count > most:
        raise BadField("reports", f"one of {count} is invalid: `veilcount decode` names its place")
    for _ in range(count):
        try:
            number, report = _read_report(reader, series, used)
        except WireError as error:  # the place is spelled for the one report that is wrong
            place = ".".join(filter(None, (f"reports[{len(reports)}]", error.place)))
            raise type(error)(place, error.problem) from error
        used = max(used, number + 1)
        reports.append(report)
    if used != len(series):
        raise BadField("series", f"{len(series) - used} of them are not used")
    return tuple(reports)


def _read_report(
    reader: _Reader, series: list[tuple[str, int, int]], used: int
) -> tuple[int, Report]:
    """Return a report and the number of its series: one that is used already, or the next."""
    number, pseudonym, period, slot, segment = reader.take(_REPORT, "")
    if number > used or number >= len(series):
        raise BadField("series", "series are numbered in order of first use")
    name, width, token_width = series[number]
    message = reader.take_bytes(width, "message")
    token = reader.take_bytes(token_width, "token")
    return number, Report(name, period, segment, pseudonym, slot, message, token)


def _read_padding(reader: _Reader) -> int:
    size = reader.number(_SHORT, "padding")
    if any(reader.take_bytes(size, "padding")):
        raise BadField("padding", "only zero bytes")
    return size
