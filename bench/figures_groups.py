"""Shares of several questions at one epsilon: one drawn question each, or a part of it for all."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from veilcount_analysis import estimate
from veilcount_analysis.simulation import simulate
from veilcount_shared.domain import Choice

from .definitions import ask
from .measured_figures import Measured, intervals

QUESTIONS, VALUES, EPSILON = 3, 4, Fraction(1)
SIZES = (600, 3_000, 30_000)  # of devices: a third of them answer each question
SPLIT = Fraction("0.333333")


def grouped_shares(rounds: int) -> Iterator[Measured]:
    """Estimate a question's shares: n Var is 6.2 of a drawn question, 20.6 of a part of epsilon."""
    for n in SIZES:
        yield _measured(
            "share, one of 3 questions drawn", EPSILON, n, rounds, Fraction(1, QUESTIONS)
        )
        yield _measured("share, epsilon in 3 parts", SPLIT, n, rounds, Fraction(1))


def _measured(item: str, epsilon: Fraction, n: int, rounds: int, asked: Fraction) -> Measured:
    question = ask(Choice(tuple(range(VALUES))), epsilon)
    generator = np.random.default_rng(n)
    sizes = generator.binomial(n, float(asked), size=rounds)
    shares = np.full(VALUES, 1 / VALUES)
    estimates = [
        estimate(question, simulate(question, generator.multinomial(size, shares), generator))
        for size in sizes
    ]
    points, low, high = (
        np.array([getattr(each, name) for each in estimates])
        for name in ("frequency", "low", "high")
    )
    return intervals(item, n, points, (low, high), shares)
