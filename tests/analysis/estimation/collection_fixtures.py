"""Collections to estimate, of any size and mechanism, populations that answer, and estimates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcount_analysis.estimation import MeanEstimate, ShareEstimates
from veilcount_analysis.mechanisms import estimate, estimate_sums
from veilcount_analysis.simulation import simulate
from veilcount_shared import Collection, parse_collections

Ints = NDArray[np.int64]

ONE_OF = """
app = "acme"
[c]
question = "Which?"
unit = "user"
from = 2026-12-01
until = 2027-12-01
"""


@cache
def question(domain: str, epsilon: str = "1", k: int = 2) -> Collection:
    """One answer a person, at this epsilon; `domain` are the keys of the domain."""
    text = f"{ONE_OF}epsilon = {epsilon}\n{domain}\n"
    return parse_collections(text, lambda _: [f"value {place}" for place in range(k)])["c"]


def of_values(k: int, epsilon: str = "1", more: str = "") -> Collection:
    return question(f'values_file = "values.txt"\n{more}', epsilon, k)


def of_number(low: int = 0, high: int = 1, epsilon: str = "1") -> Collection:
    return question(f'range = [{low}, {high}]\nmeasure = "mean"', epsilon)


def falling(k: int, n: int, s: float = 1.3) -> Ints:
    """How many of n persons hold each value, the i-th as likely as i^-s."""
    shares = np.arange(1, k + 1, dtype=np.float64) ** -s
    return np.random.default_rng(k).multinomial(n, shares / shares.sum())


def received(collection: Collection, people: Sequence[int] | Ints, seed: int = 1) -> Ints:
    """The counters of these people's reports, seeded."""
    return simulate(collection, np.array(people), np.random.default_rng(seed))


def shares(collection: Collection, counters: Ints, **options: Any) -> ShareEstimates:
    shown = estimate(collection, counters, **options)
    assert isinstance(shown, ShareEstimates)
    return shown


def sums(
    collection: Collection, counters: Ints, groups: Sequence[Any], **options: Any
) -> ShareEstimates:
    shown = estimate_sums(collection, counters, groups, **options)
    assert isinstance(shown, ShareEstimates)
    return shown


def mean(collection: Collection, counters: Ints, **options: Any) -> MeanEstimate:
    shown = estimate(collection, counters, **options)
    assert isinstance(shown, MeanEstimate)
    return shown
