"""What the aggregator says of itself: one JSON object a line, of a closed list of fields.

A request leaves no line: when it came, from where and what it said are nobody's business. A fault
of our own leaves one, with its kind and the place in the code, and never with its words: those may
repeat what a device sent.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import TextIO, TypedDict, Unpack

NAME = "veilcount.aggregator"
SILENT_SECONDS = 10.0

_LOGGER = logging.getLogger(NAME)
_FIELDS = "veilcount_fields"


class Fields(TypedDict, total=False):
    """All that a line may hold beside time, level and event."""

    door: str  # a door's name, of a closed list; never a path
    error: str  # the class of an error; never its words
    where: str  # a place in the code
    again: int  # how often the same was not said in between
    store: str  # a store's engine; never its address
    why: str  # what an operator set, or a store says of itself
    workers: int
    bind: str  # our own address
    signal: str


class Lines(logging.Formatter):
    """Writes a record's own fields, and nothing that a library put into its message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds"),
            "level": record.levelname.lower(),
            "event": record.msg if record.name == NAME else record.name,
        }
        return json.dumps(said | getattr(record, _FIELDS, {}), default=str)


def set_up(stream: TextIO, level: int = logging.INFO) -> None:
    """Write the aggregator's lines to a stream, and to nowhere else."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines())
    _LOGGER.handlers[:] = [handler]
    _LOGGER.setLevel(level)
    _LOGGER.propagate = False


def say(event: str, level: int = logging.INFO, **fields: Unpack[Fields]) -> None:
    """Write one line."""
    unknown = fields.keys() - Fields.__annotations__.keys()
    if unknown:
        raise TypeError(f"no field of a log line: {', '.join(sorted(unknown))}")
    _LOGGER.log(level, event, extra={_FIELDS: fields})


class FaultLog:
    """Says our own faults, each kind once in a while: a store that is away fills no disk."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        """`seconds` is a clock that never goes back."""
        self._seconds = seconds
        self._lock = threading.Lock()
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def tell(self, event: str, door: str, error: BaseException, *, why: str = "") -> None:
        """Write a line on an error at a door, unless the same was written just before.

        `why` only where the words are surely our own.
        """
        kind, where = type(error).__name__, place_of(error)
        again = self._due(kind, where)
        if again is not None:
            say(event, logging.ERROR, door=door, error=kind, where=where, again=again, why=why)

    def _due(self, kind: str, where: str) -> int | None:
        """Return how often it went unsaid if it is to be said now."""
        with self._lock:
            now = self._seconds()
            last, unsaid = self._said.get((kind, where), (now - SILENT_SECONDS, 0))
            due = now - last >= SILENT_SECONDS
            self._said[kind, where] = (now, 0) if due else (last, unsaid + 1)
            return unsaid if due else None


def place_of(error: BaseException) -> str:
    """Return where in the code an error was raised: file, line and function."""
    frames = extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    return f"{Path(last.filename).name}:{last.lineno} {last.name}"
