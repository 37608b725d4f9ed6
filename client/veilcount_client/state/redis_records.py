"""The binary records that Python and the scripts hand to each other."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from veilcount_shared.report import Report

from .contract import Draw

#: person, series, lineage (as places in a list of names), period, answer; cost, day, the caps;
#: earliest, send_at, expires; free, has a report; then of the report: series, and itself
DRAW = struct.Struct(">16sHHHHQIQQdddBBH")
#: period, segment, slot, pseudonym; then the message
REPORT = struct.Struct(">HBH16s")
#: send_at, tries
TURN = struct.Struct(">dH")


def pack_report(report: Report) -> bytes:
    """Return a report without its series."""
    return (
        REPORT.pack(report.period, report.segment, report.slot, report.pseudonym) + report.message
    )


def unpack_report(series: bytes, packed: bytes) -> Report:
    """Return the report of a series."""
    period, segment, slot, pseudonym = REPORT.unpack_from(packed)
    return Report(series.decode(), period, segment, pseudonym, slot, packed[REPORT.size :])


def pack_draws(draws: Sequence[Draw]) -> Iterator[bytes]:
    """Yield the number of names, the names, and each draw."""
    names: dict[str, int] = {}
    packed = [_pack_draw(draw, names) for draw in draws]
    yield str(len(names)).encode()
    yield from (name.encode() for name in names)
    yield from packed


def _pack_draw(draw: Draw, names: dict[str, int]) -> bytes:
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
        draw.day,
        draw.day_cap,
        draw.life_cap,
        draw.earliest,
        draw.send_at,
        draw.expires,
        draw.free,
        report is not None,
        place(report.fingerprint if report else draw.series),
    ) + (pack_report(report) if report else b"")
