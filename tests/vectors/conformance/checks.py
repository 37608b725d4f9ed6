"""The check of each file of vectors: what the reference implementation computes must be pinned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..vector_files import FOLDER, read, require
from . import definitions, membership, relay, reports, schedules, shuffled, tokens, values, wire

Vector = dict[str, Any]
Check = Callable[[Any], Any]


def _open_strings(document: Vector) -> Vector:
    return {
        "designs": definitions.hashed(document["designs"]),
        "buckets": values.buckets(document["buckets"]),
    }


#: file -> the function that returns its document as it is computed here; the longest last
CHECKS: dict[str, Check] = {
    "text.json": values.text,
    "values.json": values.values,
    "schedule.json": schedules.schedules,
    "central_strings.json": reports.central_strings,
    "moments.json": reports.moments,
    "trend.json": reports.trend,
    "wire/bad_batch.json": wire.bad_bodies,
    "bodies.json": wire.bodies,
    "relay.json": relay.relay,
    "shuffled.json": shuffled.shuffled,
    "compiled.json": definitions.compiled,
    "tokens.json": tokens.tokens,
    "open_strings.json": _open_strings,
    "ranges.json": definitions.ranges,
    "plan.json": definitions.plan,
    "membership.json": membership.check,
    "number.json": definitions.number,
    "definitions.json": definitions.definitions,
}


def files() -> Iterator[str]:
    """Yield the names of all files that are checked."""
    for path in sorted((FOLDER / "wire").glob("*.json")):
        if f"wire/{path.name}" not in CHECKS:
            yield f"wire/{path.name}"
    yield from CHECKS


def check(name: str) -> None:
    """Raise AssertionError unless the reference implementation conforms to a file."""
    document = read(name)
    require(document, CHECKS.get(name, wire.good_body)(document), name)
