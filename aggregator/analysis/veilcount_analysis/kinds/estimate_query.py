"""The query of an estimate, every parameter declared once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Literal

from ..errors import QueryError
from ..estimation import LookCount, View
from ..estimation.poisoning import FAKES
from ..packed_texts import PackedTexts
from ..query_params import Level, QueryParams, SeriesFilter, parameter

PAGE_SIZE = 100
MOST_ROWS = 100_000  # figures in one response


class GroupBy(StrEnum):
    """How a time range is cut."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    ALL = "all"


class Denominator(StrEnum):
    """What shares are shares of where presence is hidden."""

    ALL = "all"
    ANSWERED = "answered"


def parse_segments(name: str, words: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return segments that are written NAME:VALUE."""
    segments = []
    for word in words:
        segment, colon, value = word.partition(":")
        if not (segment and colon and value):
            raise QueryError(name, word, "give a name and a value, such as arm:A")
        segments.append((segment, value))
    if len(dict(segments)) < len(segments):
        raise QueryError(name, list(words), "give each segment once")
    return tuple(segments)


def parse_candidates(name: str, words: Sequence[str]) -> PackedTexts:
    """Return strings that are written one by one or in lines."""
    lines = PackedTexts.from_texts(
        line for word in words for line in word.splitlines() if line.strip()
    )
    if not lines:
        raise QueryError(name, list(words), "give a string, or several in lines")
    return lines


Segments = Annotated[
    tuple[tuple[str, str], ...],
    parameter(
        "Only the reports of this segment, NAME:VALUE; one value for each name.",
        name="segment",
        parse=parse_segments,
        metavar="NAME:VALUE",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SelectionQuery(QueryParams):
    """Which reports and values a result covers: what estimates and comparisons have in common."""

    first: Annotated[
        date | None,
        parameter(
            "The first UTC day. The period that contains it is covered as a whole.",
            name="from",
            metavar="DAY",
        ),
    ] = None
    last: Annotated[
        date | None,
        parameter(
            "The last UTC day. The period that contains it is covered as a whole.",
            name="to",
            metavar="DAY",
        ),
    ] = None
    level: Level = 0.95
    segments: Segments = ()
    series: SeriesFilter = ()
    top: Annotated[
        int | None,
        parameter("The N largest shares.", ge=1, le=MOST_ROWS, metavar="N"),
    ] = None
    values: Annotated[
        tuple[str, ...],
        parameter(
            "Only these values: of crossed domains JSON objects, of a number's ranges LOW..HIGH.",
            metavar="VALUE",
        ),
    ] = ()
    among: Annotated[
        Denominator,
        parameter("With hidden presence: shares of all devices, or of those that answered."),
    ] = Denominator.ALL
    looks: Annotated[
        LookCount,
        parameter(
            "one: intervals valid at one planned look; every: at every look at a growing range."
        ),
    ] = LookCount.ONE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first and self.last and self.first > self.last:
            raise QueryError("to", self.last, f"give a day not before from = {self.first}")
        if self.top and self.values:
            raise QueryError("values", list(self.values), "give either this or top")


@dataclass(frozen=True, kw_only=True)
class EstimateQuery(SelectionQuery):
    """The query of an estimate; whether it fits a collection depends on each of its series."""

    by: Annotated[GroupBy, parameter("Length of the time ranges, no shorter than a period.")] = (
        GroupBy.ALL
    )
    view: Annotated[
        View,
        parameter(
            "raw is unbiased; consistent is nonnegative and sums to 100 %; smooth estimates each"
            " time range from all of them, where `answers` are fewer than periods; its bands hold"
            " over all periods together."
        ),
    ] = View.RAW
    groups: Annotated[
        tuple[str, ...],
        parameter(
            "Sums of values, NAME:VALUE,VALUE; of a crossed domain the name of a part.",
            name="group",
            metavar="NAME:VALUE,...",
        ),
    ] = ()
    regress: Annotated[
        str | None,
        parameter("Of features: the one that a linear regression explains by all others."),
    ] = None
    pair: Annotated[
        str | None,
        parameter("Of tables: only these two questions.", metavar="ONE,TWO"),
    ] = None
    candidates: Annotated[
        Sequence[str],
        parameter(
            "Of open strings: look for these, several in lines; those found are listed. Each counts"
            " as tested once for a range of days and a segment, for good.",
            parse=parse_candidates,
            repeated=True,
            metavar="STRING",
        ),
    ] = ()
    discover: Annotated[
        bool,
        parameter(
            "Of open strings with discover = true: find strings letter by letter; candidates are"
            " then a dictionary of likely ones. Each counts once for a range of days and a segment."
        ),
    ] = False
    page: Annotated[int, parameter("Page of a large domain.", ge=1, metavar="N")] = 1
    size: Annotated[
        int,
        parameter(f"Values per page, {PAGE_SIZE} by default.", ge=1, le=MOST_ROWS, metavar="N"),
    ] = PAGE_SIZE
    fakes: Annotated[
        Fraction,
        parameter(
            "Assumed share of fake reports, 0.01 by default, for the poisoning band.",
            ge=0,
            lt=1,
            fix="give a share of the reports, such as 0.01",
            metavar="SHARE",
        ),
    ] = FAKES

    def __post_init__(self) -> None:
        super().__post_init__()
        ways: dict[str, object] = {
            "top": self.top,
            "values": self.values,
            "group": self.groups,
            "candidates": self.candidates,
        }
        if self.discover:
            ways["candidates"] = True
        used = [name for name, value in ways.items() if value]
        if len(used) > 1:
            raise QueryError(used[1], ways[used[1]], f"give either this or {used[0]}")
        if used and self.page > 1:
            raise QueryError("page", self.page, f"with {used[0]} there are no pages: remove it")
        if self.groups and self.view is View.CONSISTENT:
            raise QueryError("view", str(self.view), "sums are of the raw view: view=raw")
        if self.view is View.SMOOTH:
            self._check_smooth()

    def _check_smooth(self) -> None:
        if self.by is GroupBy.ALL:
            fix = "view=smooth is over time: give day, week or month"
            raise QueryError("by", str(self.by), fix)
        if self.looks is LookCount.EVERY:
            raise QueryError("looks", str(self.looks), "view=smooth holds at one look: looks=one")

    @property
    def own_view(self) -> Literal["raw", "consistent"]:
        """The view of one time range, before it is smoothed."""
        return "consistent" if self.view is View.CONSISTENT else "raw"
