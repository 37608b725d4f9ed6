"""The truth of a simulated population, as it is typed: a distribution, or a weight a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Self

import numpy as np

from ..errors import QueryError
from ..mechanisms.sampling import Floats, Ints
from ..query_params import parameter, parse_number
from .population import Population

EXPONENT = 1.3
DISTRIBUTIONS = "zipf, zipf:EXPONENT or uniform"


@dataclass(frozen=True, slots=True)
class TrueValues:
    """The weight of each value: as typed, or a power of its rank."""

    typed: Mapping[str, float] = field(default_factory=dict)
    exponent: float = EXPONENT  # 0: all ranks have the same

    @classmethod
    def parse(cls, name: str, words: Sequence[str]) -> Self:
        """Return a named distribution, or the typed weights."""
        if len(words) == 1 and "=" not in words[0]:
            return cls({}, _exponent(name, words[0]))
        return cls(dict(_weight(name, word) for word in words))

    def ranked(self, size: int) -> Floats:
        """Return the weights of so many values, the largest first."""
        weights: Floats = np.arange(1, size + 1, dtype=np.float64) ** -self.exponent
        return weights

    def population(self, n: int, inputs: Ints, input_of: Callable[[str], int]) -> Population:
        """Return n devices with the typed values, or with these inputs by their rank."""
        if not self.typed:
            return Population(inputs, apportion(n, self.ranked(len(inputs))))
        weights = {input_of(word): weight for word, weight in self.typed.items()}
        typed_inputs = np.array(list(weights), np.int64)
        return Population(typed_inputs, apportion(n, np.array(list(weights.values()))))


Truth = Annotated[
    TrueValues,
    parameter(
        f"{DISTRIBUTIONS}; or VALUE=WEIGHT, repeated for each value. zipf by default.",
        parse=TrueValues.parse,
        repeated=True,
        metavar="TRUTH",
    ),
]


ZIPF = TrueValues()


def apportion(n: int, weights: Floats) -> Ints:
    """Return whole numbers of devices that add up to n: the largest remainders are rounded up."""
    exact = weights / weights.sum() * n
    devices: Ints = np.floor(exact).astype(np.int64)
    largest = np.argsort(devices - exact, kind="stable")
    devices[largest[: n - int(devices.sum())]] += 1
    return devices


def _exponent(name: str, word: str) -> float:
    distribution, _, exponent = word.partition(":")
    if word == "uniform":
        return 0.0
    if distribution != "zipf":
        raise QueryError(name, word, f"give {DISTRIBUTIONS}, or VALUE=WEIGHT")
    return float(parse_number(name, exponent)) if exponent else EXPONENT


def _weight(name: str, word: str) -> tuple[str, float]:
    value, _, weight = word.rpartition("=")
    number = parse_number(name, weight) if value else 0
    if number <= 0:
        raise QueryError(name, word, "give VALUE=WEIGHT, a weight above 0")
    return value, float(number)
