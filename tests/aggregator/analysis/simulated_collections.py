"""Collections of any domain that are simulated, and the generator that simulates them."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency, Measure, Model, Presence
from veilcount_shared.domain import Boolean, Choice, Cross, Number
from veilcount_shared.periods import Unit


def collection(
    domain: Boolean | Choice | Cross | Number,
    epsilon: Fraction | None = Fraction(1),
    *,
    measure: Measure | None = None,
    model: Model = Model.LOCAL,
    presence: Presence = Presence.PUBLIC,
) -> Collection:
    central = model is Model.CENTRAL
    return Collection(
        app="acme",
        name="q",
        question="Which?",
        domain=domain,
        unit=Unit.MONTH,
        start=date(2026, 1, 1),
        until=date(2026, 2, 1),
        epsilon=None if central else epsilon,
        budget=epsilon if central else None,
        measure=measure,
        model=model,
        adjacency=Adjacency.SUBSTITUTE if central else None,
        presence=presence,
    )


def choice(k: int, epsilon: Fraction = Fraction(1)) -> Collection:
    return collection(Choice(tuple(range(k))), epsilon)


def number(measure: Measure | None, model: Model = Model.LOCAL) -> Collection:
    """A question for a number from 0 to 100."""
    return collection(Number(Fraction(0), Fraction(100)), measure=measure, model=model)


def rng() -> Generator:
    return np.random.default_rng(20260101)
