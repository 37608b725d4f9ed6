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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import TextIO, TypedDict, Unpack

NAME = "veilcount.aggregator"
QUIET_SECONDS = 10.0  # after its last error a fault is over

_LOGGER = logging.getLogger(NAME)
_FIELDS = "veilcount_fields"


class LogFields(TypedDict, total=False):
    """All that a line may hold besides time, level and event."""

    endpoint: str  # the name of an endpoint, of a closed list; never a path
    error: str  # the class of an error; never its message
    location: str  # a place in the code
    suppressed: int  # errors of a fault that left no line
    store: str  # a store's engine; at the start its URL, without its password
    durable: str  # whether the store is, and why
    intake: str  # open, or keyed: devices need a key
    request: str  # the random id of a request that failed, also in its problem document
    reason: str  # a text of ours, of an operator's settings, or of a store's own state
    workers: int
    bind: str  # our own address


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


@dataclass(slots=True)
class _Fault:
    what: str  # its event and the head of its reason, or its place in the code
    endpoint: str
    kind: str
    last: float
    suppressed: int = 0


class FaultLog:
    """Logs a fault when it begins and when it is over: a store that is away fills no disk.

    Errors of one kind are one fault until ten seconds have passed without another: of one
    class, and with the same head of their reason (up to its colon) or from one place in the code.
    """

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        """`seconds` is a monotonic clock."""
        self._seconds = seconds
        self._lock = threading.Lock()
        self._faults: dict[tuple[str, str], _Fault] = {}

    def log(
        self,
        event: str,
        endpoint: str,
        error: BaseException,
        *,
        reason: str = "",
        request: str = "",
    ) -> None:
        """Log an error at an endpoint, unless its fault was logged and is not over.

        Give a `reason` only where its text is certainly our own, and the id of the `request`.
        """
        kind, location = type(error).__name__, code_location(error)
        self.log_ended()
        with self._lock:
            what = f"{event}: {reason.partition(': ')[0] or location}"
            fault = self._faults.get((what, kind))
            if fault is not None:
                fault.last, fault.suppressed = self._seconds(), fault.suppressed + 1
                return
            self._faults[what, kind] = _Fault(what, endpoint, kind, self._seconds())
        fields = LogFields(endpoint=endpoint, error=kind, location=location, reason=reason)
        if request:
            fields["request"] = request
        log_event(event, logging.ERROR, **fields)

    def log_ended(self) -> None:
        """Log each fault that is over; called every second, and before another is logged."""
        with self._lock:
            ends = self._seconds() - QUIET_SECONDS
            over = [key for key, fault in self._faults.items() if fault.last <= ends]
            ended = [self._faults.pop(key) for key in over]
        for fault in ended:
            log_event(
                "fault over",
                endpoint=fault.endpoint,
                error=fault.kind,
                suppressed=fault.suppressed,
                reason=fault.what,
            )


def code_location(error: BaseException) -> str:
    """Return where in the code an error was raised: file, line and function."""
    frames = extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    return f"{Path(last.filename).name}:{last.lineno} {last.name}"
