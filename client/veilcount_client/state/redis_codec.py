"""The binary records that Python and the Lua steps exchange."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from veilcount_shared.report import Report

from .interface import HeldValue, ReportDraw

#: person, series, lineage (as places in a list of names), period, answer; cost, the first day that
#: is paid for and the end, the caps; earliest, send_at, expires; free, has a report; then of the
#: report: series, and itself
DRAW = struct.Struct(">16sHHHHQIIQQdddBBH")
#: whether it is a true value, period, segment, slot, pseudonym; then the message
REPORT = struct.Struct(">BHBH16s")
#: send_at, tries
TURN = struct.Struct(">dH")
#: period, segment, at, due; then the value
HELD = struct.Struct(">HBdd")


def pack_report(report: Report, *, is_true: bool) -> bytes:
    """Return a report without its series."""
    head = (is_true, report.period, report.segment, report.slot, report.pseudonym)
    return REPORT.pack(*head) + report.message


def unpack_report(series: bytes, packed: bytes) -> Report:
    """Return the report of a series."""
    _, period, segment, slot, pseudonym = REPORT.unpack_from(packed)
    return Report(series.decode(), period, segment, pseudonym, slot, packed[REPORT.size :])


def pack_held(value: HeldValue) -> bytes:
    """Return a held value without its person and series."""
    return HELD.pack(value.period, value.segment, value.at, value.due) + value.value.encode()


def unpack_held(person: bytes, series: bytes, packed: bytes) -> HeldValue:
    """Return the held value of a person and a series."""
    period, segment, at, due = HELD.unpack_from(packed)
    value = packed[HELD.size :].decode()
    return HeldValue(person, series.decode(), period, segment, value, at, due)


def pack_draws(draws: Sequence[ReportDraw]) -> Iterator[bytes]:
    """Yield the number of names, the names, and each draw."""
    names: dict[str, int] = {}
    packed = [_pack_draw(draw, names) for draw in draws]
    yield str(len(names)).encode()
    yield from (name.encode() for name in names)
    yield from packed


def _pack_draw(draw: ReportDraw, names: dict[str, int]) -> bytes:
    def place(name: str) -> int:
        return names.setdefault(name, len(names) + 1)

    report = draw.report
    return DRAW.pack(
        draw.person,
        place(draw.series),
        place(draw.lineage),
        draw.period,
        draw.answer,
        draw.cost,
        draw.first_day,
        draw.end_day,
        draw.day_cap,
        draw.life_cap,
        draw.earliest,
        draw.send_at,
        draw.expires,
        draw.free,
        report is not None,
        place(report.fingerprint if report else draw.series),
    ) + (pack_report(report, is_true=draw.is_true) if report else b"")
