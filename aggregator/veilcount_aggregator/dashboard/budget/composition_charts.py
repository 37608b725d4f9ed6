"""How epsilon composes over answers, and an attacker who averages them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

from veilcount_shared import Collection
from veilcount_shared.collection import Model
from veilcount_shared.mechanisms import Randomizer

from ...analysis.budget import CollectionBudget, ComposedEpsilon
from ...analysis.budget.composition import compose_answers
from ...queries.json_encoding import decimal
from ...text import number_format
from ...text.number_format import percent
from ..charts import Chart, axis, curves, lines, table_rows

POINTS = 24  # of a line
MOST_DRAWN = 1000  # answers: above, the exact bound takes seconds


def composition_chart(
    collection: Collection, account: CollectionBudget, delta: Fraction
) -> Chart | None:
    """Draw the composed epsilon over the number of answers; None: one answer, or no noise."""
    most = min(account.figures.answers, MOST_DRAWN)
    if collection.model is Model.CENTRAL or most == 1:
        return None
    points = _composed(collection.randomizer, most, delta)
    x = [point.answers for point in points]
    named = {
        "plain sum, enforced": [point.plain for point in points],
        "any mechanism, at best": [point.optimal or point.plain for point in points],
        "this mechanism": [point.specific or point.plain for point in points],
    }
    parts = curves(
        x,
        _distinct(named),
        float,
        lambda n, name, figure: f"{n:,} answers, {name}: epsilon {number_format.epsilon(figure)}",
    )
    return Chart(
        "composed",
        lines(parts, axis("answers of one person"), axis("epsilon")),
        "Epsilon of several answers together. The plain sum always holds, and is enforced; the"
        f" other two hold with delta = {decimal(delta)}, on a schedule fixed in advance.",
        ("Answers", "Plain sum", "Any mechanism", "This mechanism"),
        table_rows(x, named, number_format.epsilon),
    )


@lru_cache(maxsize=64)
def _composed(mechanism: Randomizer, most: int, delta: Fraction) -> tuple[ComposedEpsilon, ...]:
    return tuple(compose_answers(mechanism, times, delta) for times in _places(most))


def _places(most: int) -> list[int]:
    """Return numbers of answers from 1 on, each as many times more than the last."""
    if most <= POINTS:
        return list(range(1, most + 1))
    return sorted({round(most ** (place / (POINTS - 1))) for place in range(POINTS)})


def _distinct(named: Mapping[str, list[Fraction]]) -> dict[str, list[Fraction]]:
    """Return the lines that differ: of two that are the same, the later."""
    later = {tuple(figures): name for name, figures in named.items()}
    return {name: figures for name, figures in named.items() if later[tuple(figures)] == name}


def attack_chart(account: CollectionBudget) -> Chart | None:
    """Draw how often a constant yes or no is guessed right; None: one answer, or no noise."""
    found = account.guessing_curve
    if len(found) < 2:  # noqa: PLR2004 - two points make a line
        return None
    x = [point.answers for point in found]
    named = {
        "fresh noise, any mechanism": [point.fresh for point in found],
        "fresh noise, this mechanism": [point.mechanism for point in found],
        "one answer, frozen": [found[0].mechanism for _ in found],
    }
    parts = curves(
        x,
        _distinct(named),
        float,
        lambda n, name, chance: f"{n:,} seen, {name}: {percent(chance)}",
        dots=True,
    )
    y = axis("guessed right, at most", format=".0%", range=[0.48, 1.02])
    ticks = [(n, f"{n:,}") for n in x]
    return Chart(
        "attack",
        lines(parts, axis("answers seen", type="log", ticks=ticks), y),
        "The probability of guessing a constant yes or no right after so many answers of one"
        " person; one half is a blind guess.",
        ("Answers seen", "Fresh, any mechanism", "Fresh, this mechanism", "Frozen"),
        table_rows(x, named, percent),
    )
