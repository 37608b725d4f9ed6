"""The form of a release: the request as typed, its defaults, and the periods on offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from veilcount_shared import Collection
from veilcount_shared.schedule import period_end

from ...central.query import query_options
from ...errors import QueryError
from ...queries.releases import days_of
from ...series.series import Series

USUAL = "0.1"  # epsilon
#: the fields of the form, as addresses name them
NAMES = {
    "query": "query",
    "argument": "argument",
    "epsilon": "epsilon",
    "first": "from",
    "last": "to",
}


@dataclass(frozen=True, slots=True)
class ReleaseForm:
    """The form as typed."""

    query: str = ""
    argument: str = ""  # of a query that needs one: a condition, or values
    epsilon: str = USUAL
    first: str = ""
    last: str = ""

    @classmethod
    def parse(cls, parameters: Mapping[str, str]) -> ReleaseForm:
        """Read a query string or a form."""
        typed = {field: parameters[name] for field, name in NAMES.items() if name in parameters}
        return cls(**{field: text.strip() for field, text in typed.items()})

    def fields(self) -> dict[str, str]:
        """Return the fields that have a value."""
        return {name: text for field, name in NAMES.items() if (text := getattr(self, field))}

    def request(self, collection: Collection) -> dict[str, object]:
        """Return the request as the curator parses it."""
        options = query_options(collection)
        if self.query not in options:
            raise QueryError("query", self.query, f"give {', '.join(options)}")
        return {
            "query": options[self.query].written(self.argument),
            "epsilon": self.epsilon,
            "from": self.first or None,
            "to": self.last or None,
        }


def defaults(series: Series, today: date) -> ReleaseForm:
    """Return the form's defaults: the first query, the newest closed period."""
    oldest_open, _ = series.open_periods(today)
    first, last = days_of(series.collection, max(0, oldest_open - 1))
    query = next(iter(query_options(series.collection)))
    return ReleaseForm(query, first=first.isoformat(), last=last.isoformat())


@dataclass(frozen=True, slots=True)
class PeriodChoice:
    """A period on offer; `open_until` is empty once it can be released."""

    first: date
    last: date
    open_until: str


def period_choices(series: Series, today: date) -> list[PeriodChoice]:
    """Return all periods of a series."""
    collection, (oldest_open, _) = series.collection, series.open_periods(today)
    return [
        PeriodChoice(
            *days_of(collection, period),
            f"open until {closed_from(collection, period)}" if period >= oldest_open else "",
        )
        for period in range(collection.periods)
    ]


def closed_from(collection: Collection, period: int) -> date:
    """Return the UTC day from which on a period may be released."""
    return period_end(collection, period).date() + timedelta(days=collection.late)
