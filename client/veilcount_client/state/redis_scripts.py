"""The atomic steps of Redis, one Lua file each, and the records that they exchange with Python.

Each file begins with its flags (`#!lua flags=no-writes`). `common.lua` and `outbox.lua` are put
before every step, with the constants that Python knows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from veilcount_shared.report import Report

from .interface import KEPT, KEY_BYTES, PUT_OFF, ROW_CLOSED, HeldValue, ReportDraw
from .package_files import package_file

BUCKETS = 4096
PRELUDE = ("common", "outbox")

#: person, series, lineage (as places in a list of names), period, answer; cost, the first day that
#: is paid for and the end, the caps; earliest, send_at, expires; free, has a report, its series;
#: whether a held value is changed, when the new one is due, the round of the coverage, how long
#: the old and the new held value are;
#: then these, and the report
DRAW = struct.Struct(">16sHHHHQIIQQdddBBHBdIHH")
#: whether it is a true value, period, segment, slot, pseudonym, how long it is sealed; then sealed,
#: then the message
REPORT = struct.Struct(">BHBH16sH")
#: send_at, tries
TURN = struct.Struct(">dH")
#: since, resumed, whether it is current, round
COVERAGE = struct.Struct(">dd?I")
#: period, segment, at, due; then the value
HELD = struct.Struct(">HBdd")

_HEAD = 2 + REPORT.size  # bytes before what is sealed: its series, and the rest
_CONSTANTS = {
    "REMEMBERED": 60,  # seconds for which a lost reply can be read again
    "KEPT": KEPT,
    "ROW_CLOSED": ROW_CLOSED,
    "PUT_OFF": PUT_OFF,
    "COVERED": 2 + COVERAGE.size,
    "HEAD": _HEAD,
    "HEADS": 6 + KEY_BYTES + _HEAD,  # and before that, its number and its person
}


@cache
def load_scripts() -> Mapping[str, str]:
    """Return the source of every step, by its name."""
    with package_file("lua") as folder:
        sources = {
            file.name.removesuffix(".lua"): file.read_text("utf-8") for file in folder.iterdir()
        }
    constants = "".join(f"local {name} = {value}\n" for name, value in _CONSTANTS.items())
    prelude = constants + "".join(sources.pop(name) for name in PRELUDE)
    return {name: _with_prelude(source, prelude) for name, source in sources.items()}


def _with_prelude(source: str, prelude: str) -> str:
    flags, _, body = source.partition("\n")
    return f"{flags}\n{prelude}{body}"


def pack_report(report: Report, draw: ReportDraw) -> bytes:
    """Return the report of a draw without its series."""
    head = (draw.is_true, report.period, report.segment, report.slot, report.pseudonym)
    return REPORT.pack(*head, len(draw.sealed)) + draw.sealed + report.message


def unpack_report(series: bytes, packed: bytes) -> Report:
    """Return the report of a series."""
    _, period, segment, slot, pseudonym, sealed = REPORT.unpack_from(packed)
    message = packed[REPORT.size + sealed :]
    return Report(series.decode(), period, segment, pseudonym, slot, message)


def unpack_sealed(packed: bytes) -> bytes:
    """Return what leaves in place of a report that travels by shuffler."""
    *_, size = REPORT.unpack_from(packed)
    return packed[REPORT.size : REPORT.size + size]


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

    report, pending = draw.report, draw.held
    old = pack_held(pending.old) if pending and pending.old else b""
    new = pack_held(pending.new) if pending and pending.new else b""
    head = DRAW.pack(
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
        pending is not None,
        pending.new.due if pending and pending.new else 0.0,
        draw.round,
        len(old),
        len(new),
    )
    return head + old + new + (pack_report(report, draw) if report else b"")
