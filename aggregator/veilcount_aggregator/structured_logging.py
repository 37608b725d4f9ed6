"""The aggregator's log: one JSON object a line, with a closed list of fields.

A request leaves no line: its time, origin and content are nobody's business. An internal error
leaves one with its class and the place in the code, never with its message, which may repeat what
a device sent.
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
REPEAT_SECONDS = 10.0

_LOGGER = logging.getLogger(NAME)
_FIELDS = "veilcount_fields"


class LogFields(TypedDict, total=False):
    """All that a line may hold besides time, level and event."""

    endpoint: str  # the name of an endpoint, of a closed list; never a path
    error: str  # the class of an error; never its message
    location: str  # a place in the code
    suppressed: int  # equal lines that were left out before this one
    store: str  # a store's engine; never its address
    reason: str  # a text of ours, of an operator's settings, or of a store's own state
    workers: int
    bind: str  # our own address
    signal: str


class JsonFormatter(logging.Formatter):
    """Formats our own fields of a record, and nothing of a library's message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds"),
            "level": record.levelname.lower(),
            "event": record.msg if record.name == NAME else record.name,
        }
        return json.dumps(fields | getattr(record, _FIELDS, {}), default=str)


def configure_logging(stream: TextIO, level: int = logging.INFO) -> None:
    """Write the aggregator's log to a stream, and nowhere else."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    _LOGGER.handlers[:] = [handler]
    _LOGGER.setLevel(level)
    _LOGGER.propagate = False


def log_event(event: str, level: int = logging.INFO, **fields: Unpack[LogFields]) -> None:
    """Write one line."""
    unknown = fields.keys() - LogFields.__annotations__.keys()
    if unknown:
        raise TypeError(f"no field of a log line: {', '.join(sorted(unknown))}")
    _LOGGER.log(level, event, extra={_FIELDS: fields})


class FaultLog:
    """Logs internal errors, each kind once in ten seconds: a store that is away fills no disk."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        """`seconds` is a monotonic clock."""
        self._seconds = seconds
        self._lock = threading.Lock()
        self._logged: dict[tuple[str, str], tuple[float, int]] = {}

    def log(self, event: str, endpoint: str, error: BaseException, *, reason: str = "") -> None:
        """Log an error at an endpoint, unless the same was logged just before.

        Give a `reason` only where its text is certainly our own.
        """
        kind, location = type(error).__name__, code_location(error)
        suppressed = self._due(kind, location)
        if suppressed is not None:
            log_event(
                event,
                logging.ERROR,
                endpoint=endpoint,
                error=kind,
                location=location,
                suppressed=suppressed,
                reason=reason,
            )

    def _due(self, kind: str, location: str) -> int | None:
        """Return how many lines were suppressed since the last one; None: suppress this one too."""
        with self._lock:
            now = self._seconds()
            last, suppressed = self._logged.get((kind, location), (now - REPEAT_SECONDS, 0))
            due = now - last >= REPEAT_SECONDS
            self._logged[kind, location] = (now, 0) if due else (last, suppressed + 1)
            return suppressed if due else None


def code_location(error: BaseException) -> str:
    """Return where in the code an error was raised: file, line and function."""
    frames = extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    return f"{Path(last.filename).name}:{last.lineno} {last.name}"
