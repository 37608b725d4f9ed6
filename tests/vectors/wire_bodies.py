"""Write the bodies of tests/vectors/wire: `python -m tests.vectors.wire_bodies`.

The bytes of a good body are encoded from the batch in its file; the bad ones are listed here, in
hexadecimal, by the parts of a body.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from veilcount_shared.report import Batch, Losses, Report
from veilcount_shared.wire import MAX_BODY, encode_binary

FOLDER = Path(__file__).parent / "wire"
BAD_FILE = FOLDER / "bad_batch.json"

Runs = str | list[str | list[Any]]
Vector = dict[str, Any]

_REPEATED = re.compile(rb"(.{1,32}?)\1{15,}", re.DOTALL)


def text(runs: Runs) -> str:
    """Return a text of a vector: a string, or a list of strings and of [string, times]."""
    if isinstance(runs, str):
        return runs
    return "".join(run if isinstance(run, str) else run[0] * run[1] for run in runs)


def runs_of(body: bytes, write: Callable[[bytes], str] = bytes.hex) -> Runs:
    """Return bytes in hexadecimal as a vector has them, with long repetitions shortened."""
    runs: list[str | list[Any]] = []
    end = 0
    for match in _REPEATED.finditer(body):
        runs += [write(body[end : match.start()])] if match.start() > end else []
        runs.append([write(match[1]), len(match[0]) // len(match[1])])
        end = match.end()
    last = write(body[end:])
    return [*runs, *([last] if last else [])] if runs else last


def batch_of(fields: Vector) -> Batch:
    """Return the batch that a good vector describes."""
    reports = [
        Report(
            report["fingerprint"],
            report["period"],
            report["segment"],
            bytes.fromhex(report["pseudonym"]),
            report["slot"],
            bytes.fromhex(text(report["message"])),
            bytes.fromhex(text(report.get("token", ""))),
        )
        for report in fields["reports"]
        for _ in range(report.get("times", 1))
    ]
    losses = Losses(**fields["losses"]) if fields["losses"] else None
    return Batch(tuple(reports), losses, fields["test"], fields["padding"])


def good_vectors() -> Iterator[tuple[Path, Vector]]:
    """Yield the files of good bodies, with their contents."""
    for path in sorted(FOLDER.glob("*.json")):
        if path != BAD_FILE:
            yield path, json.loads(path.read_text())


# -- bad bodies ------------------------------------------------------------------------------------

_F, _G = "00112233445566778899aabbccddeeff" * 2, "f0e1d2c3b4a5968778695a4b3c2d1e0f" * 2
_P, _Q = "000102030405060708090a0b0c0d0e0f", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
_V = "564301"  # the letters and the version
_ROW, _WIDE = f"{_F}00010000", f"{_G}00020000"  # messages of one byte, and of two
_A, _AB = f"{_V}00 01 {_ROW} 00", f"{_V}00 02 {_ROW}{_WIDE} 00"  # up to the number of reports
_ONE = f"0001 00{_P}0000 0000 00 01"  # one report
_TWO = f"0002 00{_P}0000 0000 00 01 01{_Q}0001 0001 01 0203"  # of two series
_END = "0002 0000"  # padding of two bytes
_LOST = f"{_G}000401"

_CUT = [
    ("empty body", "head", ""),
    ("ends in the magic", "head", "56"),
    ("ends before the flags", "flags", _V),
    ("ends before the number of series", "series", f"{_V}00"),
    ("ends before the series", "series[0]", f"{_V}00 01"),
    ("ends in a fingerprint", "series[0]", f"{_V}00 01 {_F[:-2]}"),
    ("ends before the width of messages", "series[0]", f"{_V}00 01 {_F}"),
    ("ends in the width of messages", "series[0]", f"{_V}00 01 {_F}00"),
    ("ends before the width of tokens", "series[0]", f"{_V}00 01 {_F}0001"),
    ("ends in the width of tokens", "series[0]", f"{_V}00 01 {_F}000100"),
    ("ends before the number of losses", "losses", f"{_V}00 01 {_ROW}"),
    ("ends before the number of reports", "reports", f"{_V}00 01 {_ROW} 00"),
    ("ends in the number of reports", "reports", f"{_A} 00"),
    ("ends before the report", "reports[0]", f"{_A} 0001"),
    ("ends before the pseudonym", "reports[0]", f"{_A} 0001 00"),
    ("ends in the pseudonym", "reports[0]", f"{_A} 0001 00{_P[:14]}"),
    ("ends before the period", "reports[0]", f"{_A} 0001 00{_P}"),
    ("ends before the slot", "reports[0]", f"{_A} 0001 00{_P}0000"),
    ("ends before the segment", "reports[0]", f"{_A} 0001 00{_P}0000 0000"),
    ("ends before the message", "reports[0].message", f"{_A} {_ONE[:-2]}"),
    ("ends before the length of the padding", "padding", f"{_A} {_ONE}"),
    ("ends in the length of the padding", "padding", f"{_A} {_ONE} 00"),
    ("ends before the padding", "padding", f"{_A} {_ONE} 0002"),
    ("ends in the padding", "padding", f"{_A} {_ONE} 0002 00"),
    ("ends before the losses", "losses", f"{_V}00 00 01"),
    ("ends in the losses", "losses", f"{_V}00 00 01 {_LOST[:-2]}"),
    ("ends in the second series", "series[1]", f"{_V}00 02 {_ROW} {_G[:50]}"),
    ("ends in the second report", "reports[1]", f"{_AB} {_TWO[:-10]}"),
    ("ends in a message of two bytes", "reports[1].message", f"{_AB} {_TWO[:-2]}"),
    ("one byte more", "body", f"{_A} {_ONE} {_END} 00"),
    ("the body twice", "body", f"{_A} {_ONE} {_END}" * 2),
    ("longer padding than its length says", "body", f"{_A} {_ONE} 0001 0000"),
    ("a width of 0", "reports[0].message", f"{_V}00 01 {_F}0000 0000 00 {_ONE[:-2]} {_END}"),
    (
        "a width of 1025",
        "reports[0].message",
        f"{_V}00 01 {_F}0401 0000 00 {_ONE[:-2]}{'00' * 1025}{_END}",
    ),
    ("a width beyond the body", "reports[0].message", f"{_V}00 01 {_F}ffff 0000 00 {_ONE} {_END}"),
    (
        "a token of 255 bytes",
        "reports[0].token",
        f"{_V}00 01 {_F}0001 00ff 00 {_ONE}{'07' * 255}0000",
    ),
    (
        "a token of 257 bytes",
        "reports[0].token",
        f"{_V}00 01 {_F}0001 0101 00 {_ONE}{'07' * 257}0000",
    ),
    (
        "a series with tokens, and a report without one",
        "reports[0].token",
        f"{_V}00 01 {_F}0001 0100 00 {_ONE} {_END}",
    ),
    ("a row without the width of its tokens", "losses", f"{_V}00 01 {_F}0001 00 {_ONE} {_END}"),
    ("a token in a series without", "body", f"{_A} {_ONE} 0000 {'07' * 256}0000"),
    ("no reports and no losses", "reports", f"{_V}00 00 00 0000 0000"),
    ("1001 reports", "reports", f"{_A} 03e9 {_ONE[5:] * 1001} 0000"),
    ("65535 reports", "reports", f"{_A} ffff {_ONE[5:]} {_END}"),
    ("a body longer than any batch", "body", "00" * (MAX_BODY + 1)),
]
_OTHER_VERSION = [
    ("another version, of which nothing else is known", "version", "564302"),
    ("magic in small letters", "head", f"766301 00 01 {_ROW} 00 {_ONE} {_END}"),
    ("a JSON body", "head", b'{"version":1}'.hex()),
    ("gzip", "head", "1f8b0800000000000003"),
    ("version 0", "version", f"564300 00 01 {_ROW} 00 {_ONE} {_END}"),
    ("version 2", "version", f"564302 00 01 {_ROW} 00 {_ONE} {_END}"),
    ("version 255", "version", f"5643ff 00 01 {_ROW} 00 {_ONE} {_END}"),
]
_BAD_FIELD = [
    ("flag bit 1", "flags", f"{_V}02 01 {_ROW} 00 {_ONE} {_END}"),
    ("flag bit 7 of a test batch", "flags", f"{_V}81 01 {_ROW} 00 {_ONE} {_END}"),
    ("no series, but a report of one", "reports[0].series", f"{_V}00 00 00 {_ONE} {_END}"),
    ("a series that no report uses", "series", f"{_AB} {_ONE} {_END}"),
    ("a series without reports", "series", f"{_A} 0000 {_END}"),
    ("a series beside losses", "series", f"{_V}00 01 {_ROW} 01 {_LOST} 0000 0000"),
    ("a series twice, at two widths", "series", f"{_V}00 02 {_ROW}{_F}00020000 00 {_TWO} {_END}"),
    (
        "series not in order of first use",
        "reports[0].series",
        f"{_V}00 02 {_WIDE}{_ROW} 00 0002 01{_P}0000 0000 00 01 00{_Q}0001 0001 01 0203 {_END}",
    ),
    (
        "a series number that does not exist",
        "reports[0].series",
        f"{_A} 0001 01{_P}0000 0000 00 01 {_END}",
    ),
    (
        "the second report skips a series",
        "reports[1].series",
        f"{_AB} {_TWO.replace(f'01{_Q}', f'02{_Q}')} {_END}",
    ),
    ("slot 1024", "reports[0].slot", f"{_A} 0001 00{_P}0000 0400 00 01 {_END}"),
    ("slot 65535", "reports[0].slot", f"{_A} 0001 00{_P}0000 ffff 00 01 {_END}"),
    ("segment 32", "reports[0].segment", f"{_A} 0001 00{_P}0000 0000 20 01 {_END}"),
    ("segment 255 of the second report", "reports[1].segment", f"{_AB} {_TWO[:-7]}ff 0203 {_END}"),
    ("two losses", "losses", f"{_V}00 00 02 {_LOST * 2} 0000 0000"),
    ("255 losses", "losses", f"{_V}00 00 ff {_LOST} 0000 0000"),
    ("losses: aged in bucket 5", "losses.aged", f"{_V}00 00 01 {_G}050401 0000 0000"),
    ("losses: evicted in bucket 5", "losses.evicted", f"{_V}00 00 01 {_G}000501 0000 0000"),
    ("losses: corrupt in bucket 5", "losses.corrupt", f"{_V}00 00 01 {_G}000405 0000 0000"),
    ("losses with reports", "losses", f"{_V}00 01 {_ROW} 01 {_LOST} {_ONE} {_END}"),
    ("fewer reports than stand there", "series", f"{_AB} 0001{_TWO[4:]} {_END}"),
    ("padding not zero at its start", "padding", f"{_A} {_ONE} 0002 0100"),
    ("padding not zero at its end", "padding", f"{_A} {_ONE} 0002 0080"),
]


def bad_vectors() -> list[Vector]:
    """Return the bad bodies, with the error of each and its place."""
    errors = {"WrongLength": _CUT, "UnknownVersion": _OTHER_VERSION, "BadField": _BAD_FIELD}
    return [
        {"why": why, "body": runs_of(bytes.fromhex(body)), "error": error, "place": place}
        for error, rows in errors.items()
        for why, place, body in rows
    ]


def contents() -> dict[Path, str]:
    """Return what the files say."""
    vectors: dict[Path, object] = {BAD_FILE: bad_vectors()}
    for path, vector in good_vectors():
        batch = vector["batch"]
        body = runs_of(encode_binary(batch_of(batch)))
        vectors[path] = {"why": vector["why"], "batch": batch, "body": body}
    return {path: json.dumps(vector, indent=1) + "\n" for path, vector in vectors.items()}


if __name__ == "__main__":
    for path, content in contents().items():
        path.write_text(content)
