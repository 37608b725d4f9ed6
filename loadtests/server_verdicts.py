"""The server's verdicts of each report of the population."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from veilcount_shared.errors import WireError
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import decode_verdicts

from .ipc import REFUSED, RequestLog
from .population import Intent, QueuedReport

Verdicts = tuple[Verdict, ...]

_SUCCESS = frozenset({Verdict.COUNTED, Verdict.DUPLICATE})
#: the verdicts that a report may get, by the intent of its sender
ALLOWED_VERDICTS = {
    Intent.HONEST: _SUCCESS,
    Intent.FAKE: _SUCCESS,
    Intent.GREEDY: _SUCCESS | {Verdict.OVER_BUDGET},
    Intent.OVER_BUDGET: {Verdict.OVER_BUDGET},
    Intent.NONSENSE: {Verdict.MALFORMED},
    Intent.FLOOD: _SUCCESS | {Verdict.FULL},
    Intent.SPREAD: _SUCCESS | {Verdict.FULL},
    Intent.GARBAGE: frozenset[Verdict](),
}


@dataclass(frozen=True, slots=True)
class ServerVerdicts:
    """For each queued report sent: the verdicts of each reply, and the number of silent sends."""

    queued_reports: Sequence[QueuedReport]
    replies: defaultdict[int, list[Verdicts]] = field(default_factory=lambda: defaultdict(list))
    silences: Counter[int] = field(default_factory=Counter)
    refusals: Counter[int] = field(default_factory=Counter)  # of whole bodies

    @classmethod
    def from_request_log(
        cls, queued_reports: Sequence[QueuedReport], request_log: RequestLog
    ) -> ServerVerdicts:
        """Read a log of requests. What is no reply of the protocol acknowledges nothing."""
        verdicts = cls(queued_reports)
        sends = zip(request_log.bodies, request_log.replies, request_log.statuses, strict=True)
        for place, reply, status in sends:
            verdicts.add_reply(place, reply, status)
        return verdicts

    def add_reply(self, place: int, reply: bytes, status: int = HTTPStatus.OK) -> None:
        """Add the reply to one send."""
        if status in REFUSED:
            self.refusals[place] += 1
            return
        try:
            words = decode_verdicts(reply, len(self.queued_reports[place].reports))
            verdicts = tuple(map(Verdict, words))
        except (WireError, ValueError):
            self.silences[place] += 1
        else:
            self.replies[place].append(verdicts)

    def settled(self, place: int) -> bool:
        """Whether a queued report has its final verdicts."""
        return place in self.replies or place in self.refusals

    @property
    def open(self) -> list[int]:
        """The queued reports that were sent and never acknowledged."""
        return [place for place in self.silences if not self.settled(place)]

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How often each verdict was given."""
        return Counter(
            word for replies in self.replies.values() for reply in replies for word in reply
        )

    @property
    def unsure(self) -> int:
        """How many reports were in sends without a reply: counted or not, nobody knows."""
        return sum(
            number * len(self.queued_reports[place].reports)
            for place, number in self.silences.items()
        )

    def acknowledged(self) -> Iterator[tuple[QueuedReport, Report, int]]:
        """Yield each acknowledged report: its queued report, itself, its true value."""
        for place, replies in self.replies.items():
            queued_report = self.queued_reports[place]
            for report, held, *words in zip(
                queued_report.reports, queued_report.held, *replies, strict=True
            ):
                if any(word.delivered for word in words):
                    yield queued_report, report, held

    def failures(self) -> Iterator[str]:
        """Yield what no server may say: another verdict, or `counted` not exactly once."""
        for (intent, word), number in sorted(self._unexpected().items()):
            yield f"{number} reports ({intent}) were refused as {word}"
        if refused := self._refused(garbage=False):
            yield f"{refused} sound bodies were refused whole"
        if not self.verdicts[Verdict.DUPLICATE]:
            yield "no replay was acknowledged: nothing was tried twice"
        often = Counter(self._times_counted())
        if twice := sum(number for times, number in often.items() if times > 1):
            yield f"{twice} reports were acknowledged as counted more than once"
        if often[0]:
            yield f"{often[0]} reports were acknowledged as duplicates of nothing"
        if self.open:
            yield f"{len(self.open)} bodies were never acknowledged"

    def _refused(self, *, garbage: bool) -> int:
        """Return how many bodies were refused whole, of those that are garbage or that are not."""
        return sum(
            (self.queued_reports[place].intent is Intent.GARBAGE) is garbage
            for place in self.refusals
        )

    def _unexpected(self) -> Counter[tuple[Intent, Verdict]]:
        """Return the verdicts that reports with their intent may not get."""
        counts = Counter(
            (self.queued_reports[place].intent, word)
            for place, replies in self.replies.items()
            for reply in replies
            for word in reply
        )
        return Counter(
            {key: n for key, n in counts.items() if key[1] not in ALLOWED_VERDICTS[key[0]]}
        )

    def _times_counted(self) -> Iterator[int]:
        """Yield how often each delivered report was acknowledged as counted.

        After a send without a reply, nobody knows: that one may have been the one that counted.
        """
        for place, replies in self.replies.items():
            for words in zip(*replies, strict=True):
                times = words.count(Verdict.COUNTED)
                if times or Verdict.DUPLICATE in words:
                    yield 1 if not times and self.silences[place] else times
