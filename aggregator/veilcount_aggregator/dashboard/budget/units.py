"""What a unit costs in accuracy: the same epsilon for a user, shared out over each unit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ...analysis.budget import UnitAccuracy, UnitComparison
from ...analysis.planning.plan import percent
from ...analysis.trust_models import ErrorEstimate
from ...text import number_format
from ..charts import Drawn, axis, curve, lines, wide_axis
from ..collection.formatting import level_of

TOO_SMALL = "too small to answer"


@dataclass(frozen=True, slots=True)
class Row:
    """One unit."""

    unit: str
    answers: str
    epsilon: str
    local: str
    local_period: str
    central: str
    central_period: str
    guessed: str
    stops: str
    does_not_stop: str


@dataclass(frozen=True, slots=True)
class Units:
    """The table, and its picture."""

    n: str
    n_is: str
    user: str
    adjacency: str
    quantity: str
    level: str
    rows: list[Row]
    drawn: Drawn


def units(found: UnitComparison, n_is: str) -> Units:
    """Return errors by unit at one epsilon for a user."""
    shares = found.quantity != "mean"
    return Units(
        n=f"{found.n:,}",
        n_is=n_is,
        user=number_format.epsilon(found.user),
        adjacency=number_format.adjacency(found.adjacency),
        quantity=found.quantity,
        level=level_of(found.level),
        rows=[_row(level, shares=shares) for level in found.rows],
        drawn=_drawn(found, shares=shares),
    )


def _row(level: UnitAccuracy, *, shares: bool) -> Row:
    return Row(
        unit=level.unit,
        answers=f"{level.answers:,}",
        epsilon=TOO_SMALL if level.epsilon is None else number_format.epsilon(level.epsilon),
        local=_error(level.local_campaign, shares=shares),
        local_period=_error(level.local_period, shares=shares),
        central=_error(level.central_campaign, shares=shares),
        central_period=_error(level.central_period, shares=shares),
        guessed=_guessed(level.guess_all),
        stops=level.stops,
        does_not_stop=level.does_not_stop,
    )


def _error(error: ErrorEstimate | None, *, shares: bool) -> str:
    return "" if error is None else number_format.around(error.half_width, of_shares=shares)


def _guessed(chance: Fraction | None) -> str:
    return "" if chance is None else percent(chance)


def _height(error: ErrorEstimate | None, scale: int) -> float | None:
    """Return half an interval as it is drawn: no width has no place on a logarithmic axis."""
    return scale * error.half_width or None if error else None


def _drawn(found: UnitComparison, *, shares: bool) -> Drawn:
    scale = 100 if shares else 1
    names = [str(row.unit) for row in found.rows]
    ways = (
        ("local, no one trusted", [row.local_campaign for row in found.rows]),
        ("central, a curator trusted", [row.central_campaign for row in found.rows]),
    )
    parts = [
        curve(
            names,
            [_height(error, scale) for error in errors],
            [
                f"{unit}, {name}: {_error(error, shares=shares)}"
                for unit, error in zip(names, errors, strict=True)
            ],
            name,
            dots=True,
        )
        for name, errors in ways
    ]
    y = wide_axis(
        "+/- points" if shares else "+/-", [each for part in parts for each in part["at"]]
    )
    return lines(parts, axis("unit of privacy", type="category"), y)
