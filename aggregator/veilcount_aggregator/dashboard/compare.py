"""Two segments, ranges of days or definitions of a collection: what differs, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, request, url_for

from veilcount_shared.collection import Model

from .. import queries
from ..errors import QueryError
from ..estimation import LookCount
from ..queries import CompareResult
from ..queries.comparison_schema import ComparisonRow, SideView
from .charts import Drawn, axis, bars, estimates
from .collection.formatting import days, level_of, named
from .comparison_choices import Form, Offer, Way
from .layout import NAME, Frame
from .precision import Ruler

MOST_DRAWN = 30
WAYS = {
    Way.SEGMENTS: "Segments",
    Way.DAYS: "Ranges of days",
    Way.SERIES: "Definitions",
}
LOOKS = {each.value: each.valid.removeprefix("valid ") for each in LookCount}
LEVELS = {level: level_of(float(level)) for level in ("0.9", "0.95", "0.99")}
CURATED = (
    "A curator holds these answers",
    "True values are compared by releases, which are paid for: see the chapter Releases.",
)
ALONE = (
    "Nothing to compare yet",
    "No segments, one definition, answers of one period at most: come back when a second has some.",
)


def pages(frame: Frame) -> None:
    """Add the page."""

    @frame.page("/collections/<name>/compare", computes=True)
    def compare(name: str) -> Response:
        """How two sides of a collection differ."""
        snapshot = frame.aggregator.snapshot()
        newest = snapshot.named(name)[0].collection
        head: dict[str, Any] = {"name": name, "question": newest.question}
        offer = Offer.of(snapshot, name)
        if not offer.ways:
            nothing = CURATED if newest.model is Model.CENTRAL else ALONE
            return frame.told("compare.html", **head, nothing=nothing)
        form = Form.read(request.args, offer)
        found, wrong = None, None
        try:
            asked = queries.CompareQuery.parse(form.parameters)
            found = _seen(queries.compare(snapshot, name, asked), form)
        except QueryError as error:
            wrong = error
        head |= {
            "offer": offer,
            "form": form,
            "levels": LEVELS,
            "looks": LOOKS,
            "ways": _ways(name, offer, form),
        }
        return frame.told("compare.html", 400 if wrong else 200, **head, seen=found, wrong=wrong)


def _ways(name: str, offer: Offer, form: Form) -> list[tuple[str, str, bool]]:
    return [
        (WAYS[way], url_for(f"{NAME}.compare", name=name, by=way), way is form.by)
        for way in offer.ways
    ]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is found, in a sentence and what else to know of it."""

    tone: str
    says: str
    more: str


@dataclass(frozen=True, slots=True)
class Row:
    """One value, in words and figures."""

    value: str
    a: str
    b: str
    difference: str
    interval: str
    p: str
    detectable: str
    differs: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """What the page shows of an answer."""

    verdict: Verdict
    names: tuple[str, str]
    sides: tuple[SideView, SideView]
    level: str
    of: str
    validity: str
    family: int
    note: str
    units: str
    rows: list[Row]
    drawn: Drawn | None
    left_out: int


def _seen(answer: CompareResult, form: Form) -> Seen:
    shares = all(row.value is not None for row in answer.rows)
    ruler = Ruler.of((row.high - row.low for row in answer.rows), of_shares=shares)
    names = _called(answer.a, form.by), _called(answer.b, form.by)
    return Seen(
        verdict=_verdict(answer, ruler, form.by),
        names=names,
        sides=(answer.a, answer.b),
        level=level_of(answer.level),
        of=answer.of,
        validity=answer.validity,
        family=answer.family,
        note=answer.note,
        units="points" if shares else "the number's own units",
        rows=[_row(row, ruler) for row in answer.rows],
        drawn=_drawn(answer.rows[:MOST_DRAWN], ruler) if answer.rows else None,
        left_out=max(len(answer.rows) - MOST_DRAWN, 0),
    )


# -- words -----------------------------------------------------------------------------------------


def _called(side: SideView, by: Way) -> str:
    """Return what a side is called at the head of a column."""
    if by is Way.DAYS:
        return days(side.first, side.last)
    if by is Way.SERIES:
        return f"definition {side.fingerprint[:12]}"
    return ", ".join(f"{name} {value}" for name, value in side.segments.items())


def _where(side: SideView, by: Way) -> str:
    """Return the same as a part of a sentence."""
    called = _called(side, by)
    if by is Way.DAYS:
        return f"on {called}" if side.first == side.last else f"from {called}"
    return f"under {called}" if by is Way.SERIES else f"in {called}"


def _value(row: ComparisonRow) -> str:
    return "the mean" if row.value is None else named(row.value)


def _verdict(answer: CompareResult, ruler: Ruler, by: Way) -> Verdict:
    if not answer.rows:
        return Verdict("weak", answer.sentence, "Both sides need answers.")
    differing = [row for row in answer.rows if row.differs]
    if not differing:
        return _undecided(answer.rows, ruler)
    largest = max(differing, key=lambda row: abs(row.difference))
    return Verdict("good", _told(largest, answer, ruler, by), _others(answer, differing))


def _told(row: ComparisonRow, answer: CompareResult, ruler: Ruler, by: Way) -> str:
    """Return one difference as a sentence about the first side; a value keeps its spelling."""
    up = row.difference > 0
    low, high = (row.low, row.high) if up else (-row.high, -row.low)
    way = "higher" if up else "lower"
    value = "The mean" if row.value is None else _value(row)
    return (
        f"{value} is {ruler.size(abs(row.difference))}"
        f" ({ruler.ends(low, high)}) {way} {_where(answer.a, by)} than {_where(answer.b, by)}."
    )


def _others(answer: CompareResult, differing: Sequence[ComparisonRow]) -> str:
    if answer.family == 1:
        return ""
    largest = "" if len(differing) == 1 else " This is the largest difference."
    return answer.sentence + largest


def _undecided(rows: Sequence[ComparisonRow], ruler: Ruler) -> Verdict:
    """Never that nothing differs without what would have been seen."""
    least = min(row.detectable for row in rows)
    if ruler.of_shares and least >= 1:
        return Verdict(
            "weak", "No difference can be told: there are too few answers to see any.", ""
        )
    size = ruler.size(least)
    says = f"No difference can be told: less than {size} would not have been seen."
    more = f"A difference of {size} would have been found in 4 of 5 such comparisons."
    return Verdict("plain", says, more)


def _row(row: ComparisonRow, ruler: Ruler) -> Row:
    return Row(
        value=_value(row),
        a=f"{ruler.figure(row.a.figure)} ({ruler.ends(row.a.low, row.a.high)})",
        b=f"{ruler.figure(row.b.figure)} ({ruler.ends(row.b.low, row.b.high)})",
        difference=ruler.signed(row.difference),
        interval=_ends(row, ruler),
        p=_p(row.holm),
        detectable=ruler.bare(row.detectable),
        differs=row.differs,
    )


def _p(chance: float) -> str:
    if chance < 1e-4:  # noqa: PLR2004 - nobody decides between smaller ones
        return "< 0.0001"
    return f"{chance:.2g}"


# -- the picture -----------------------------------------------------------------------------------


def _drawn(rows: Sequence[ComparisonRow], ruler: Ruler) -> Drawn:
    scale = 100 if ruler.of_shares else 1
    part = estimates(
        [scale * row.difference for row in rows],
        [scale * row.low for row in rows],
        [scale * row.high for row in rows],
        [f"{_value(row)}: {ruler.signed(row.difference)} ({_ends(row, ruler)})" for row in rows],
    )
    title = "A less B, in points" if ruler.of_shares else "A less B"
    return bars([_value(row) for row in rows], [part], axis(title))


def _ends(row: ComparisonRow, ruler: Ruler) -> str:
    return f"{ruler.signed(row.low)} to {ruler.signed(row.high)}"
