"""What the server said of each report of the population."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from veilcount_shared.errors import WireError
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import decode_verdicts

from .errand import Diary
from .population import Parcel

Verdicts = tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """For each parcel that was sent: the verdicts of each reply, and how many sends had none."""

    parcels: Sequence[Parcel]
    replies: defaultdict[int, list[Verdicts]] = field(default_factory=lambda: defaultdict(list))
    silences: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, parcels: Sequence[Parcel], diary: Diary) -> Told:
        """Read a diary. What is no reply of the protocol acknowledges nothing."""
        told = cls(parcels)
        for place, reply in zip(diary.bodies, diary.replies, strict=True):
            told.hear(place, reply)
        return told

    def hear(self, place: int, reply: bytes) -> None:
        """Take in the reply to one send."""
        try:
            verdicts = decode_verdicts(reply, len(self.parcels[place].reports))
        except WireError:
            self.silences[place] += 1
        else:
            self.replies[place].append(verdicts)

    @property
    def open(self) -> list[int]:
        """The parcels that were sent and never acknowledged."""
        return [place for place in self.silences if place not in self.replies]

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How often each verdict was given."""
        return Counter(
            word for replies in self.replies.values() for reply in replies for word in reply
        )

    @property
    def unsure(self) -> int:
        """How many reports were in sends without a reply: counted or not, nobody was told."""
        return sum(
            number * len(self.parcels[place].reports) for place, number in self.silences.items()
        )

    def acknowledged(self) -> Iterator[tuple[Parcel, Report, int]]:
        """Yield each report that the server said it has: its parcel, itself, what is true of it."""
        for place, replies in self.replies.items():
            parcel = self.parcels[place]
            for report, held, *words in zip(parcel.reports, parcel.held, *replies, strict=True):
                if any(word.delivered for word in words):
                    yield parcel, report, held

    def failures(self) -> Iterator[str]:
        """Yield what no server may say: another verdict, or `counted` not exactly once."""
        given = self.verdicts
        for verdict in Verdict:
            if given[verdict] and not verdict.delivered:
                yield f"{given[verdict]} reports were refused as {verdict}"
        if not given[Verdict.DUPLICATE]:
            yield "no replay was acknowledged: nothing was tried twice"
        often = Counter(self._times_counted())
        if twice := sum(number for times, number in often.items() if times > 1):
            yield f"{twice} reports were told more than once that they are counted"
        if often[0]:
            yield f"{often[0]} reports were told that they are duplicates, of nothing"
        if self.open:
            yield f"{len(self.open)} bodies were never acknowledged"

    def _times_counted(self) -> Iterator[int]:
        """Yield how often each report was told that it is counted.

        After a send without a reply, nobody knows: that one may have been the one that counted.
        """
        for place, replies in self.replies.items():
            for words in zip(*replies, strict=True):
                times = words.count(Verdict.COUNTED)
                yield 1 if not times and self.silences[place] else times
