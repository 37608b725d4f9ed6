"""The latest reports with their verdicts, for the developer of an app. No production server has it.

It observes the step of the intake that decides, so what is shown is what was decided. A message is
shown as it arrived, randomized on the device; a true value is not shown.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from veilcount_analysis.series.series import Series
from veilcount_shared.errors import MessageOutOfRange
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import encode_base64

from ..store import VERDICTS
from .decode import RequestBody, SeriesColumns, decode_body
from .group_intake import IntakeRequest, Process
from .json_bodies import accepting_json, binary_body
from .pipeline import Outcome

MOST = 200
PSEUDONYM_CHARACTERS = 6
DIGITS = 12  # of a fingerprint
REFUSED, DEFINITIONS, SIMULATED = "refused", "definitions", "simulated"
UNKNOWN = "unknown"
TONES = {
    Verdict.COUNTED: "good",
    Verdict.DUPLICATE: "plain",
    DEFINITIONS: "plain",
    SIMULATED: "plain",
}


@dataclass(frozen=True, slots=True)
class LiveEntry:
    """One report with its verdict; or what happened to a body, or to the definitions."""

    time: str  # of the UTC day
    verdict: str
    message: str
    collection: str = ""
    pseudonym: str = ""

    @property
    def tone(self) -> str:
        """How the verdict is coloured on a page."""
        return TONES.get(self.verdict, "bad")


Known = Callable[[], Mapping[str, Series]]


class LiveReports:
    """The latest entries, oldest forgotten first. Thread-safe."""

    def __init__(
        self,
        show: Callable[[LiveEntry], object],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Also pass each entry to `show` as it is made."""
        self._show = show
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: deque[LiveEntry] = deque(maxlen=MOST)

    def entries(self) -> list[LiveEntry]:
        """Return the entries, the newest first."""
        with self._lock:
            return list(reversed(self._entries))

    def observing(self, process: Process, series: Known) -> Process:
        """Return a step of the intake that also takes JSON, and has its outcomes shown."""
        accepting = accepting_json(process)

        def observed(requests: Sequence[IntakeRequest]) -> Sequence[Outcome]:
            outcomes = accepting(requests)
            for request, outcome in zip(requests, outcomes, strict=True):
                self._add_body(request.body, outcome, series())
            return outcomes

        return observed

    def add(self, verdict: str, message: str, collection: str = "", pseudonym: str = "") -> None:
        """Add an entry, and show it."""
        entry = LiveEntry(f"{self._clock():%H:%M:%S}", verdict, message, collection, pseudonym)
        with self._lock:
            self._entries.append(entry)
        with suppress(OSError):  # a terminal that is gone must not stop the intake
            self._show(entry)

    def _add_body(self, body: RequestBody, outcome: Outcome, known: Mapping[str, Series]) -> None:
        if isinstance(outcome, Exception):
            self.add(REFUSED, str(outcome) or "an internal error: the log names its place")
            return
        for columns in decode_body(*binary_body(body)).series_columns:
            series = known.get(columns.fingerprint)
            name = series.collection.name if series else UNKNOWN
            for place, pseudonym, message in _reports(columns):
                verdict = VERDICTS[outcome[place]]
                self.add(verdict, _described(columns, series, message), name, pseudonym)


def _reports(columns: SeriesColumns) -> Iterator[tuple[int, str, bytes]]:
    """Yield place, shortened pseudonym and message of each report."""
    for row, place in enumerate(columns.places.tolist()):
        pseudonym = encode_base64(columns.pseudonyms[row].tobytes())[:PSEUDONYM_CHARACTERS]
        yield place, f"{pseudonym}...", columns.messages[row].tobytes()


def _described(columns: SeriesColumns, series: Series | None, message: bytes) -> str:
    if series is None:
        return f"no definition with the fingerprint {columns.fingerprint[:DIGITS]} is loaded here"
    if series.collection.trust.reveals:
        return "a true value, not shown"
    try:
        return f"randomized: {series.collection.describe_message(message)}"
    except MessageOutOfRange:
        return "no message of this definition"
