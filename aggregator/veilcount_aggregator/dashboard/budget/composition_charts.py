"""How it adds up: epsilon over the number of answers, and an attacker who averages them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from veilcount_shared import Collection
from veilcount_shared.collection import Model
from veilcount_shared.mechanisms import Randomizer

from ...analysis.budget import CollectionBudget, ComposedEpsilon
from ...analysis.budget.composition import compose_answers
from ...analysis.planning.plan import percent
from ...text import number_format
from ..charts import Drawn, axis, curve, lines

PLACES = 24  # at which a line is drawn
MOST_DRAWN = 1000  # answers: above, the exact bound takes seconds
ANSWERS = "answers of one person"


@dataclass(frozen=True, slots=True)
class Lines:
    """A chart, and its table."""

    drawn: Drawn
    rows: list[tuple[str, ...]]


# -- composition -----------------------------------------------------------------------------------


def composed(collection: Collection, account: CollectionBudget, delta: Fraction) -> Lines | None:
    """Return epsilon over the number of answers, in sum and together; None: one, or no noise."""
    most = min(account.figures.answers, MOST_DRAWN)
    if collection.model is Model.CENTRAL or most == 1:
        return None
    points = _composed(collection.randomizer, most, delta)
    seen = [point.answers for point in points]
    ways = {
        "plain sum, enforced": [point.plain for point in points],
        "any mechanism, at best": [_shown(point, point.optimal) for point in points],
        "this mechanism": [_shown(point, point.specific) for point in points],
    }
    parts = [
        curve(seen, [float(each) for each in figures], _told(name, seen, figures), name)
        for name, figures in _apart(ways).items()
    ]
    rows = [
        (f"{each:,}", *(number_format.epsilon(figures[place]) for figures in ways.values()))
        for place, each in enumerate(seen)
    ]
    return Lines(lines(parts, axis(ANSWERS), axis("epsilon")), rows)


@lru_cache(maxsize=64)
def _composed(mechanism: Randomizer, most: int, delta: Fraction) -> tuple[ComposedEpsilon, ...]:
    return tuple(compose_answers(mechanism, times, delta) for times in _places(most))


def _places(most: int) -> list[int]:
    """Return numbers of answers from 1 on, each as many times more than the last."""
    if most <= PLACES:
        return list(range(1, most + 1))
    return sorted({round(most ** (place / (PLACES - 1))) for place in range(PLACES)})


def _shown(point: ComposedEpsilon, figure: Fraction | None) -> Fraction:
    return point.plain if figure is None else figure


def _told(name: str, seen: list[int], figures: list[Fraction]) -> list[str]:
    return [
        f"{answers:,} answers, {name}: epsilon {number_format.epsilon(figure)}"
        for answers, figure in zip(seen, figures, strict=True)
    ]


def _apart(ways: Mapping[str, list[Fraction]]) -> dict[str, list[Fraction]]:
    """Return the lines that can be told apart: of two that are the same, the later."""
    later = {tuple(figures): name for name, figures in ways.items()}
    return {name: figures for name, figures in ways.items() if later[tuple(figures)] == name}


# -- the averaging attack --------------------------------------------------------------------------


def attack(account: CollectionBudget) -> Lines | None:
    """Return how often an unchanging yes or no is guessed right; None: one answer, or no noise."""
    found = account.guesses
    if len(found) < 2:  # noqa: PLR2004 - two points make a line
        return None
    seen = [point.answers for point in found]
    ways = {
        "fresh noise, any mechanism": [point.fresh for point in found],
        "fresh noise, this mechanism": [point.mechanism for point in found],
        "one answer, frozen": [found[0].mechanism for _ in found],
    }
    parts = [
        curve(
            seen,
            [float(each) for each in chances],
            [f"{n:,} seen, {name}: {percent(each)}" for n, each in zip(seen, chances, strict=True)],
            name,
            dots=True,
        )
        for name, chances in _apart(ways).items()
    ]
    rows = [
        (f"{each:,}", *(percent(chances[place]) for chances in ways.values()))
        for place, each in enumerate(seen)
    ]
    y = axis("guessed right, at most", format=".0%", range=[0.48, 1.02])
    return Lines(
        lines(parts, axis("answers seen", type="log", ticks=[(n, f"{n:,}") for n in seen]), y), rows
    )
