"""How releases are worded: what was asked, values, amounts, days."""

from __future__ import annotations

import json
from datetime import date, timedelta
from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.errors import VeilcountError, format_value
from veilcount_shared.schedule import period_end, period_start

from ...api.schemas import CountQuery, NoiseView
from ...errors import InsufficientBudget
from ...text import number_format

FEW = 5  # listed values of a query that a line shows
_ASKED = {
    "histogram": "How many answers each value has",
    "count": "How many answers there are",
    "sum": "The sum of the answers",
    "mean": "The mean of the answers",
}


def spelled(label: object) -> str:
    """Return a value as people read it; of a crossing, its parts."""
    if isinstance(label, tuple | list):
        return ", ".join(map(spelled, label))
    return label if isinstance(label, str) else json.dumps(label)


def asked(query: str | CountQuery) -> str:
    """Return what was asked."""
    if isinstance(query, str):
        return _ASKED.get(query, f"How many answers have {query}")
    values = [spelled(each) for each in query.count]
    more = f" or {len(values) - FEW} more" if len(values) > FEW else ""
    return f"How many answers are {' or '.join(values[:FEW])}{more}"


def amount(figure: float) -> str:
    """Return a count or a sum; a mean to six digits."""
    if float(figure).is_integer():
        return f"{int(figure):,}"
    return number_format.figure(figure, of_shares=False)


def days(first: date, last: date) -> str:
    """Return a stretch of UTC days."""
    return str(first) if first == last else f"{first} to {last}"


def noise(parts: list[NoiseView], level: float) -> str:
    """Return how far a release is off, and on what."""
    told = [f"{off(part)} on the {_on(part.name)}" for part in parts]
    return f"{' and '.join(told)}, at level {level:.0%}"


def off(part: NoiseView) -> str:
    """Return how far a figure is off."""
    return f"+/- {part.half_width:,}"


def epsilon(exact: str | Fraction) -> str:
    """Return an exact epsilon, short."""
    return number_format.epsilon(Fraction(exact))


def refused(collection: Collection, error: VeilcountError) -> str:
    """Return why there is no release; a period is called by its days."""
    if not isinstance(error, InsufficientBudget):
        return str(error)
    asked_for, rest = format_value(error.requested), format_value(error.remaining)
    return (
        f"{days(*days_of(collection, error.period))} has epsilon {rest} left, and {asked_for} is"
        " asked for: ask for less, or for other days"
    )


def days_of(collection: Collection, period: int) -> tuple[date, date]:
    """Return the first and the last UTC day of a period."""
    last = period_end(collection, period).date() - timedelta(days=1)
    return period_start(collection, period).date(), last


def _on(name: str) -> str:
    return "count of each value" if name == "histogram" else name
