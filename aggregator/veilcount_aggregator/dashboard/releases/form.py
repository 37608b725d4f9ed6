"""The form of a release: the queries and periods on offer, and the request as typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from veilcount_shared import Collection
from veilcount_shared.domain import Boolean, Choice, Cross, Number
from veilcount_shared.schedule import period_end

from ...central import MAX_HISTOGRAM_VALUES
from ...central.numeric_values import numeric_values
from ...errors import QueryError
from ...series.public_n import publishes_n
from ...series.series import Series
from .view import days_of, spelled

HISTOGRAM, COUNT, SUM, MEAN, SOME, CONDITION = (
    "histogram",
    "count",
    "sum",
    "mean",
    "some",
    "condition",
)
WAYS = {
    HISTOGRAM: "how many answers each value has",
    SOME: "how many answers are one of some values",
    CONDITION: "how many answers meet a condition",
    COUNT: "how many answers there are",
    SUM: "the sum of the answers",
    MEAN: "the mean of the answers",
}
YES = "how many answers are yes"  # the sum of a boolean
SHARE = "the share of yes"
USUAL = "0.1"


@dataclass(frozen=True, slots=True)
class ReleaseForm:
    """The form as typed."""

    way: str = ""
    which: str = ""
    epsilon: str = USUAL
    first: str = ""
    last: str = ""

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> ReleaseForm:
        """Read a query string or a form."""
        return cls(
            given.get("query", ""),
            given.get("which", "").strip(),
            given.get("epsilon", USUAL).strip(),
            given.get("from", ""),
            given.get("to", ""),
        )

    def fields(self) -> dict[str, str]:
        """Return the fields that have a value."""
        named = {
            "query": self.way,
            "which": self.which,
            "epsilon": self.epsilon,
            "from": self.first,
            "to": self.last,
        }
        return {name: value for name, value in named.items() if value}

    def request(self, collection: Collection) -> dict[str, object]:
        """Return the request as the curator parses it."""
        return {
            "query": _query(self.way, self.which, collection),
            "epsilon": self.epsilon,
            "from": self.first or None,
            "to": self.last or None,
        }


@dataclass(frozen=True, slots=True)
class PeriodChoice:
    """A period that may be released, as an option of the form."""

    first: date
    last: date
    note: str


@dataclass(frozen=True, slots=True)
class ReleaseOffer:
    """The queries and periods of a series."""

    ways: Mapping[str, str]
    hint: str  # an example of a condition or a value
    periods: Sequence[PeriodChoice]


def offer(series: Series, today: date) -> ReleaseOffer:
    """Return the queries and periods on offer."""
    return ReleaseOffer(_ways(series.collection), _hint(series.collection), _periods(series, today))


def defaults(series: Series, today: date) -> ReleaseForm:
    """Return the form's defaults: the newest closed period."""
    oldest_open, _ = series.taken(today)
    period = max(0, oldest_open - 1)
    first, last = days_of(series.collection, period)
    (way, *_) = _ways(series.collection)
    return ReleaseForm(way, first=first.isoformat(), last=last.isoformat())


def closed_from(series: Series, period: int) -> date:
    """Return the UTC day from which on a period may be released."""
    late = timedelta(days=series.collection.late)
    return period_end(series.collection, period).date() + late


def _ways(collection: Collection) -> dict[str, str]:
    found = {HISTOGRAM} if collection.inputs <= MAX_HISTOGRAM_VALUES else set()
    found.add(COUNT)
    if numeric_values(collection) is not None:
        found |= {SUM, MEAN}
    match collection.domain:
        case Number():
            found.add(CONDITION)
        case Choice() | Cross():
            found.add(SOME)
    if publishes_n(collection):  # public counts are free
        found.discard(COUNT)
    words = WAYS | ({SUM: YES, MEAN: SHARE} if isinstance(collection.domain, Boolean) else {})
    return {way: text for way, text in words.items() if way in found}


def _hint(collection: Collection) -> str:
    match collection.domain:
        case Number(high=high):
            return f"{collection.name} >= {int(high) // 2}"
        case Choice() | Cross() as domain:
            return spelled(domain.labels[0])
    return ""


def _periods(series: Series, today: date) -> list[PeriodChoice]:
    oldest_open, _ = series.taken(today)
    found = []
    for period in range(series.collection.periods):
        first, last = days_of(series.collection, period)
        filling = f", open until {closed_from(series, period)}"
        found.append(PeriodChoice(first, last, "" if period < oldest_open else filling))
    return found


def _query(way: str, which: str, collection: Collection) -> object:
    if way == CONDITION:
        return which
    if way == SOME:
        return {"count": _labels(which, collection)}
    if way not in WAYS:
        raise QueryError("query", way, f"give {', '.join(_ways(collection))}")
    return way


def _labels(which: str, collection: Collection) -> list[object]:
    """Return the typed values, one a line."""
    if not isinstance(collection.domain, Choice | Cross):
        raise QueryError("query", SOME, 'request a condition, "condition"')
    known = {spelled(label): label for label in collection.domain.labels}
    typed = [line.strip() for line in which.splitlines() if line.strip()]
    unknown = [line for line in typed if line not in known]
    if unknown or not typed:
        shown = ", ".join(list(known)[:5])
        raise QueryError(
            "which", unknown[0] if unknown else "", f"give values, one a line, such as {shown}"
        )
    labels = [known[line] for line in dict.fromkeys(typed)]
    return [list(label) if isinstance(label, tuple) else label for label in labels]
