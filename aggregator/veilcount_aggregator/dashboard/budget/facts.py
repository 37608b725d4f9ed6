"""The three figures, and what each means to somebody who sees answers and tries to guess."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.collection import Model

from ...analysis.budget import CollectionBudget
from ...analysis.budget.averaging_attack import guessing_chance
from ...analysis.planning.plan import percent
from ...queries.json_encoding import decimal
from ...text import number_format


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure in large letters."""

    level: str
    epsilon: str
    of: str
    means: str


def said(account: CollectionBudget) -> str:
    """Return the account in one sentence."""
    figures = account.figures
    each = decimal(figures.event)
    user = f"{decimal(figures.user)} ({number_format.adjacency(figures.adjacency)})"
    if not account.guesses:
        return f"What is released reveals at most epsilon {user} of a person in the whole campaign."
    if figures.answers == 1:
        return f"A person reveals at most epsilon {user}: one answer in the whole campaign."
    return (
        f"A person reveals at most epsilon {user} in the whole campaign: {figures.answers:,}"
        f" answers, epsilon {each} each."
    )


def facts(collection: Collection, account: CollectionBudget) -> tuple[Fact, ...]:
    """Return event, day and user."""
    figures, day = account.figures, collection.per_period
    return (
        Fact("event", decimal(figures.event), "one answer", _guess(collection, 1)),
        Fact("day", decimal(figures.day), figures.day_is, _guess(collection, day)),
        Fact("user", decimal(figures.user), _campaign(figures.answers), _all(account)),
    )


def _campaign(answers: int) -> str:
    return (
        "one answer, the whole campaign" if answers == 1 else f"{answers:,} answers, all there are"
    )


def _guess(collection: Collection, seen: int) -> str:
    if collection.model is Model.CENTRAL:
        return ""
    return _means(seen, guessing_chance(collection.randomizer, seen).mechanism)


def _all(account: CollectionBudget) -> str:
    if not account.guesses:
        return ""
    last = account.guesses[-1]
    return _means(last.answers, last.mechanism)


def _means(seen: int, chance: Fraction) -> str:
    whose = "it" if seen == 1 else f"all {seen:,}"
    return f"Who sees {whose} guesses an unchanging yes or no right at most {percent(chance)}."
