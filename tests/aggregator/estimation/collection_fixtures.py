"""Collections to estimate, of any size and design, and populations that answer them."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

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
def question(asks: str, epsilon: str = "1", k: int = 2) -> Collection:
    """One answer a person, at this epsilon; `asks` are the keys of the domain."""
    text = f"{ONE_OF}epsilon = {epsilon}\n{asks}\n"
    return parse_collections(text, lambda _: [f"value {place}" for place in range(k)])["c"]


def of_values(k: int, epsilon: str = "1", more: str = "") -> Collection:
    """Which one of k values?"""
    return question(f'values_file = "values.txt"\n{more}', epsilon, k)


def of_number(low: int = 0, high: int = 1, epsilon: str = "1") -> Collection:
    """Which number, on average?"""
    return question(f'range = [{low}, {high}]\nmeasure = "mean"', epsilon)


def falling(k: int, n: int, s: float = 1.3) -> Ints:
    """How many of n persons hold each value, the i-th as likely as i^-s."""
    response = np.arange(1, k + 1, dtype=np.float64) ** -s
    return np.random.default_rng(k).multinomial(n, response / response.sum())
