"""What the page shows of releases and budgets: rows of words, and charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from ...api.schemas import PeriodBudget, ReleasedFigure, ReleaseView
from .. import charts
from . import release_text

FEW = 12  # periods that are named one by one
MOST_ROWS = 30  # figures of one release that are drawn and listed


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of a release."""

    value: str
    figure: str
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A release, as the journal tells it."""

    place: int  # in the order of arrival, from 1
    asked: str
    day: date | None
    days: str
    epsilon: str
    person_epsilon: str
    n: str
    noise: str
    rows: Sequence[Row]
    left_out: int
    drawn: charts.Drawn | None


@dataclass(frozen=True, slots=True)
class Left:
    """What one period's budget has paid for, and what is left."""

    days: str
    spent: str
    remaining: str
    state: str


def shown(place: int, release: ReleaseView) -> Shown:
    """Return a release in words; of very many values, those that stand out."""
    figures = _largest(release.figures)
    several = len(release.figures) > 1
    return Shown(
        place,
        release_text.asked(release.query),
        release.day,
        release_text.days(release.first, release.last),
        release_text.epsilon(release.epsilon),
        release_text.epsilon(release.person_epsilon),
        "" if release.n is None else f"{release.n:,}",
        release_text.noise(release.noise, release.level),
        [_row(each) for each in figures],
        len(release.figures) - len(figures),
        _drawn(figures) if several else None,
    )


def _largest(figures: list[ReleasedFigure]) -> list[ReleasedFigure]:
    """Return all, in their order; of very many the largest, by what is told and no more."""
    if len(figures) <= MOST_ROWS:
        return figures
    return sorted(figures, key=lambda each: -each.figure)[:MOST_ROWS]


def _row(figure: ReleasedFigure) -> Row:
    told = (release_text.amount(each) for each in (figure.figure, figure.low, figure.high))
    return Row(release_text.spelled(figure.value), *told)


def _drawn(figures: Sequence[ReleasedFigure]) -> charts.Drawn:
    rows = [_row(each) for each in figures]
    part = charts.estimates(
        [each.figure for each in figures],
        [each.low for each in figures],
        [each.high for each in figures],
        [f"{row.value}: {row.figure} answers, {row.low} to {row.high}" for row in rows],
    )
    return charts.bars([row.value for row in rows], [part], charts.axis("answers"))


def left(periods: Iterable[PeriodBudget], states: Iterable[str]) -> list[Left]:
    """Return the budget's table."""
    return [
        Left(
            release_text.days(each.first, each.last),
            release_text.epsilon(each.spent),
            release_text.epsilon(each.remaining),
            state,
        )
        for each, state in zip(periods, states, strict=True)
    ]


def budget(periods: Sequence[PeriodBudget]) -> charts.Drawn:
    """Return the budget's picture: what is spent below what remains."""
    days = [release_text.days(each.first, each.last) for each in periods]
    spent = [release_text.epsilon(each.spent) for each in periods]
    remaining = [release_text.epsilon(each.remaining) for each in periods]
    parts = [
        charts.counts(
            [float(Fraction(each.spent)) for each in periods],
            [f"{day}: {e} spent" for day, e in zip(days, spent, strict=True)],
            "spent",
        ),
        charts.counts(
            [float(Fraction(each.remaining)) for each in periods],
            [f"{day}: {e} remains" for day, e in zip(days, remaining, strict=True)],
            "remains",
        )
        | {"hue": "line"},
    ]
    first = [str(each.first) for each in periods]
    each_named = {"type": "category"} if len(first) <= FEW else {}
    begins = charts.axis("UTC day on which the period begins", **each_named)
    columns = charts.columns(first, parts, begins, charts.axis("epsilon"))
    return columns | {"stacked": True, "height": 280}
