"""What may be asked of an estimate: every parameter once, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fractions import Fraction

from ..errors import QueryError
from ..estimation import LookCount, View
from ..estimation.poisoning import FAKES
from . import query_params as of
from .query_params import Parameters

SIZE = 100  # values on a page
MOST_ROWS = 100_000  # figures in one answer
PARAMETERS = (
    "from", "to", "by", "view", "level", "segment", "series", "top", "values", "among",
    "simultaneous", "looks", "group", "page", "size", "fakes",
)  # fmt: skip


class GroupBy(StrEnum):
    """How a range is cut."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    ALL = "all"


class Denominator(StrEnum):
    """Whose shares are told where presence is hidden."""

    ALL = "all"
    ANSWERED = "answered"


Segments = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateQuery:
    """What is asked; what it means for a collection is seen when its series are looked at.

    `simultaneous` unless told is yes for a top list, whose values were picked by their estimates,
    so that one interval at a time would miss too often. `looks`: at how many looks at a range that
    begins on the same day the intervals hold, one that was planned or every one.
    """

    first: date | None = None
    last: date | None = None
    by: GroupBy = GroupBy.ALL
    view: View = View.RAW
    level: float = 0.95
    segments: Segments = ()
    series: tuple[str, ...] = ()
    top: int | None = None
    values: tuple[str, ...] = ()
    among: Denominator = Denominator.ALL
    simultaneous: bool | None = None
    looks: LookCount = LookCount.ONE
    groups: tuple[str, ...] = ()
    page: int = 1
    size: int = SIZE
    fakes: Fraction = FAKES

    def __post_init__(self) -> None:
        """Refuse what cannot be asked of any collection."""
        if not 0 < self.level < 1:
            raise QueryError("level", self.level, "give a number between 0 and 1, such as 0.95")
        if self.first and self.last and self.first > self.last:
            raise QueryError("to", self.last, f"give a day not before from = {self.first}")
        if self.top is not None and not 1 <= self.top <= MOST_ROWS:
            raise QueryError("top", self.top, f"give 1 to {MOST_ROWS:,}")
        if self.page < 1:
            raise QueryError("page", self.page, "give 1 or more")
        if not 1 <= self.size <= MOST_ROWS:
            raise QueryError("size", self.size, f"give 1 to {MOST_ROWS:,}")
        if not 0 <= self.fakes < 1:
            raise QueryError("fakes", self.fakes, "give a share of the reports, such as 0.01")
        self._check_together()

    def _check_together(self) -> None:
        ways = {"top": self.top, "values": self.values, "group": self.groups}
        given = [name for name, value in ways.items() if value]
        if len(given) > 1:
            raise QueryError(given[1], ways[given[1]], f"give either this or {given[0]}")
        if given and self.page > 1:
            raise QueryError("page", self.page, f"with {given[0]} there are no pages: remove it")
        if self.groups and self.view is View.CONSISTENT:
            raise QueryError("view", str(self.view), "sums are of the raw view: view=raw")

    @property
    def all_at_once(self) -> bool:
        """Whether the intervals cover all values at once."""
        return self.top is not None if self.simultaneous is None else self.simultaneous

    @classmethod
    def read(cls, given: Parameters) -> EstimateQuery:
        """Return the question that parameters ask."""
        of.refuse_unknown(given, PARAMETERS)
        fakes, page, size = (
            of.exact(given, "fakes"),
            of.whole(given, "page"),
            of.whole(given, "size"),
        )
        return cls(
            first=of.day(given, "from"),
            last=of.day(given, "to"),
            by=of.member(given, "by", GroupBy, GroupBy.ALL),
            view=of.member(given, "view", View, View.RAW),
            level=of.level_of(given),
            segments=segments(of.words(given, "segment")),
            series=of.words(given, "series"),
            top=of.whole(given, "top"),
            values=of.words(given, "values"),
            among=of.member(given, "among", Denominator, Denominator.ALL),
            simultaneous=of.flag(given, "simultaneous"),
            looks=of.member(given, "looks", LookCount, LookCount.ONE),
            groups=of.words(given, "group"),
            page=1 if page is None else page,
            size=SIZE if size is None else size,
            fakes=FAKES if fakes is None else fakes,
        )


def segments(given: Sequence[str]) -> Segments:
    """Return segments that are written NAME:VALUE."""
    found = []
    for each in given:
        name, colon, value = each.partition(":")
        if not (name and colon and value):
            raise QueryError("segment", each, "give a name and a value, such as arm:A")
        found.append((name, value))
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        raise QueryError("segment", list(given), "give each segment once")
    return tuple(found)
