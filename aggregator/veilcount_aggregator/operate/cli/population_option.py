"""The population of `veilcount simulate`: how many devices hold which value, as typed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import click
import numpy as np
from numpy.typing import NDArray

from veilcount_analysis.kinds.labels import no_value, places_of
from veilcount_analysis.simulation import Population
from veilcount_shared import Collection, SystemRandomSource
from veilcount_shared.domain import Number
from veilcount_shared.errors import format_value

from . import options

POINTS = 64  # evenly spread over a number's range, for a named distribution
EXPONENT = 1.3
DISTRIBUTIONS = "zipf, zipf:EXPONENT or uniform"

Weights = NDArray[np.float64]
Devices = NDArray[np.int64]


def simulate_population(collection: Collection, n: int, truth: Sequence[str]) -> Population:
    """Return n devices that hold values from a distribution, or from VALUE=WEIGHT each."""
    if is_distribution(truth):
        inputs = _all_inputs(collection)
        weights = ranked_weights(truth[0], len(inputs))
    else:
        typed = {_input(collection, value): weight for value, weight in typed_weights(truth)}
        inputs, weights = np.array(list(typed), np.int64), np.array(list(typed.values()))
    return Population(inputs, apportion(n, weights))


def is_distribution(truth: Sequence[str]) -> bool:
    """Whether a distribution is named, and not the weight of each value."""
    return len(truth) == 1 and "=" not in truth[0]


def ranked_weights(word: str, size: int) -> Weights:
    """Return the weights of so many values by a named distribution, the largest first."""
    return _distribution(word)(np.arange(1, size + 1, dtype=np.float64))


def apportion(n: int, weights: Weights) -> Devices:
    """Return whole numbers of devices that add up to n: the largest remainders are rounded up."""
    exact = weights / weights.sum() * n
    devices: Devices = np.floor(exact).astype(np.int64)
    largest = np.argsort(devices - exact, kind="stable")
    devices[largest[: n - int(devices.sum())]] += 1
    return devices


def _all_inputs(collection: Collection) -> Devices:
    """Return all inputs; of a number, evenly spread points."""
    domain = collection.domain
    if not isinstance(domain, Number):
        return np.arange(domain.size)
    step = (domain.high - domain.low) / (POINTS - 1)
    randomness = SystemRandomSource()  # unused for values of the grid
    return np.array(
        [domain.input(domain.low + step * place, randomness) for place in range(POINTS)]
    )


def _distribution(word: str) -> Callable[[Weights], Weights]:
    name, _, exponent = word.partition(":")
    if word == "uniform":
        return np.ones_like
    if name == "zipf":
        power = float(options.number(exponent)) if exponent else EXPONENT
        return lambda ranks: ranks**-power
    raise click.BadParameter(
        f"{format_value(word)}: give {DISTRIBUTIONS}, or VALUE=WEIGHT", param_hint="--truth"
    )


def typed_weights(words: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield each value as it was typed, and its weight."""
    for word in words:
        value, _, weight = word.rpartition("=")
        share = options.number(weight) if value else Fraction(0)
        if share <= 0:
            raise click.BadParameter(
                f"{format_value(word)}: give VALUE=WEIGHT, a weight above 0", param_hint="--truth"
            )
        yield value, float(share)


def _input(collection: Collection, value: str) -> int:
    """Return the input of a value as it was typed, which must be of the domain."""
    domain = collection.domain
    if isinstance(domain, Number):
        number = options.number(value)
        if not domain.low <= number <= domain.high:
            ends = f"{float(domain.low):g} to {float(domain.high):g}"
            raise click.BadParameter(f"{value}: give a number from {ends}", param_hint="--truth")
        return domain.input(number, SystemRandomSource())
    found = places_of(collection, [value])
    if found.unknown:
        raise no_value(collection, value, "truth")
    return int(found.places[0])
