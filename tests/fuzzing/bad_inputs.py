"""The inputs that fuzzing showed to matter, kept in tests/vectors/bad with what is expected.

A decoder that is right returns what is expected of each, in a number of steps and bytes that
grows with the input's length only.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from ..aggregator.intake.test_decode import peak_bytes
from ..call_count import count_lines
from ..vectors.wire_bodies import runs_of, text
from .seeds import PINNED, seeds
from .targets import TARGETS, TEXTS, Target

FOLDER = Path(__file__).parents[1] / "vectors" / "bad"
DECODERS = re.compile(r"/(veilcount_shared|veilcount_client|veilcount_issuer|decode|tomllib)/")
MAX_ROW = 2_000  # bytes of an input as it is written
MAX_INPUTS = 40  # of a target, for the lines that they reach
HARDEST = 3  # more, for their work

Row = dict[str, Any]
Line = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Bound:
    """What one input may take: of lines run and of bytes allocated, some and so many a byte."""

    lines: int = 5_000
    lines_a_byte: int = 6
    memory: int = 200_000
    memory_a_byte: int = 20


_CHOOSING = Bound(lines=1_000_000, memory=2_000_000)  # a mechanism is chosen, among thousands
BOUNDS = dict.fromkeys(TARGETS, Bound()) | {
    "definitions": _CHOOSING,
    "compiled": _CHOOSING,
    "batch_binary": Bound(lines_a_byte=12),  # decoded twice, to columns
    "batch_group": Bound(lines_a_byte=100),  # a body of two bytes is one more to decode
}


def load(name: str) -> list[Row]:
    """Return the pinned inputs of a target."""
    rows: list[Row] = json.loads((FOLDER / f"{name}.json").read_text())
    return rows


def input_of(row: Row) -> bytes:
    """Return the bytes of a row."""
    return text(row["text"]).encode() if "text" in row else bytes.fromhex(text(row["hex"]))


def failures(name: str, target: Target, rows: Iterable[Row]) -> Iterator[str]:
    """Yield what a decoder does wrong."""
    with suppress(Exception):
        target(b"")  # imports what is imported late
    for row in rows:
        raw = input_of(row)
        try:
            if problem := _failure(target, raw, row["expected"], BOUNDS[name]):
                yield f"{name}, {raw[:60]!r}: {problem}"
        except Exception as error:  # noqa: BLE001 - whatever a decoder does not document
            yield f"{name}, {raw[:60]!r}: {type(error).__name__}"


def _failure(target: Target, raw: bytes, expected: str, bound: Bound) -> str | None:
    if (result := target(raw)) != expected:
        return f"{result}, not {expected}"
    lines, memory = _lines(target, raw), _memory(target, raw)
    if lines > (most := bound.lines + bound.lines_a_byte * len(raw)):
        return f"{lines} lines of {most}"
    if memory > (most := bound.memory + bound.memory_a_byte * len(raw)):
        return f"{memory} bytes of {most}"
    return None


def _lines(target: Target, raw: bytes) -> int:
    return count_lines(lambda: target(raw))


def _memory(target: Target, raw: bytes) -> int:
    return peak_bytes(lambda: target(raw))


# -- what is kept ----------------------------------------------------------------------------------


def keep(names: Iterable[str], work: Path) -> None:
    """Write the inputs that together reach all that the fuzzer reached, and the hardest ones."""
    FOLDER.mkdir(exist_ok=True)
    for name in names:
        path = FOLDER / f"{name}.json"
        pinned = {input_of(row) for row in load(name)} if path.exists() else set()
        fuzzed = {file.read_bytes() for file in (work / name).glob("*/*")}
        rows = [_row(name, raw) for raw in chosen(name, pinned | fuzzed | set(seeds(name)))]
        path.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
        print(f"{name}: {len(rows)} inputs, {path.stat().st_size:,} bytes")


def chosen(name: str, candidates: set[bytes]) -> list[bytes]:
    """Return the pinned inputs, the hardest, and those that reach most lines and outcomes."""
    short = sorted(raw for raw in candidates if _size(name, raw) <= MAX_ROW)
    lines = {raw: reached(TARGETS[name], raw) for raw in short}
    inputs, missing = list(PINNED.get(name, ())), set[Line]().union(*lines.values())
    for _ in range(MAX_INPUTS):
        best = max(
            short, key=lambda raw: len(lines[raw].keys() & missing) / (99 + _size(name, raw))
        )
        inputs += [best] if lines[best].keys() & missing else []
        missing -= lines[best].keys()
    hardest = sorted(short, key=lambda raw: lines[raw].total())[-HARDEST:]
    return list(dict.fromkeys(inputs + hardest))


def _row(name: str, raw: bytes) -> Row:
    return _written(name, raw) | {"expected": TARGETS[name](raw)}


def _written(name: str, raw: bytes) -> Row:
    """Return an input as text if it is one, else in hexadecimal."""
    try:
        return {"text": runs_of(raw, bytes.decode)} if name in TEXTS else {"hex": runs_of(raw)}
    except UnicodeDecodeError:
        return {"hex": runs_of(raw)}


def _size(name: str, raw: bytes) -> int:
    return len(json.dumps(_written(name, raw)))


def reached(target: Target, raw: bytes) -> Counter[Line]:
    """Return how often a target runs which lines of decoders, and what it returns."""
    lines: Counter[Line] = Counter()

    def trace(frame: FrameType, _event: str, _value: Any) -> Any:
        if not _is_decoder(file := frame.f_code.co_filename):
            return None
        lines[file, frame.f_lineno] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = target(raw)
    finally:
        sys.settrace(before)
    results = re.sub(r"\d+|(?<=DefinitionError: ).*", "", result)  # its key may be any
    return lines + Counter((part, 0) for part in results.split("; "))


@cache
def _is_decoder(file: str) -> bool:
    return DECODERS.search(file) is not None
