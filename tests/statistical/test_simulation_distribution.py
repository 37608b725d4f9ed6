"""Simulated devices and the client's reports follow one distribution, and reject a wrong one.

Each path gives rounds of tallies of one skewed population. What is tested is the sum over rounds of
(C - mean)' covariance^+ (C - mean), which is chi-square distributed where counts are large: it sees
the mean of every counter and every covariance at once. In directions without variance (the number
of members of all subsets together) nothing may be off. All seeds are fixed; ALPHA is the
probability that a fresh seed rejects a right distribution, on either side.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from veilcount_analysis import tally
from veilcount_analysis.simulation import simulate, simulate_messages
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection
from veilcount_shared.domain import GRID
from veilcount_shared.mechanisms import MeanMechanism, SubsetSelection

from ..analysis.estimation.collection_fixtures import of_number, of_values
from .distributions import ALPHA, HIGHER, LOWER, Floats, Ints, with_epsilon

ROUNDS = 80
DEVICES = 1_000


CASES = {
    "coin": of_values(2, "1"),
    "response": of_values(8, "2"),
    "mask": of_values(12, "1"),
    "packed": of_values(100, "3.2"),
    "mean": of_number(epsilon="1"),
    "wide mean": of_number(epsilon="4"),
}


def held(collection: Collection) -> Ints:
    """Two thirds of the devices on the first input, two ninths on the next, the rest last."""
    inputs = collection.mechanism.inputs
    counts: Ints = np.floor(DEVICES * 2 / 3.0 ** np.arange(1, inputs + 1)).astype(np.int64)
    counts[-1] += DEVICES - counts.sum()
    return counts


def grid(collection: Collection) -> Ints:
    """The inputs of the same devices; a mean's starts as the points of the grid that they are."""
    each = np.repeat(np.arange(collection.mechanism.inputs), held(collection))
    mechanism = collection.mechanism
    if not isinstance(mechanism, MeanMechanism):
        return each
    low, high = mechanism.means[0], mechanism.means[-1]
    points = [round((mean - low) / (high - low) * GRID) for mean in mechanism.means]
    return np.array(points)[each]


# -- moments of a tally ----------------------------------------------------------------------------


def moments(mechanism: SubsetSelection | MeanMechanism, x: int) -> tuple[Floats, Floats]:
    """The mean of one report's counters, and of their products, for input x."""
    if isinstance(mechanism, MeanMechanism):
        row = np.array([float(chance) for chance in mechanism.transition_matrix[x]])
        return row, np.diag(row)
    k, w, p = mechanism.k, mechanism.w, float(mechanism.P)
    others = (p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)) / ((k - 1) * max(k - 2, 1))
    products = np.full((k, k), others)
    products[x, :] = products[:, x] = p * (w - 1) / (k - 1)
    mean = np.full(k, float(mechanism.Q))
    mean[x] = p
    np.fill_diagonal(products, mean)
    return mean, products


def tally_moments(collection: Collection, factor: Fraction = Fraction(1)) -> tuple[Floats, Floats]:
    """The mean and the covariance of the tally, at epsilon x factor."""
    mechanism = collection.mechanism
    assert isinstance(mechanism, SubsetSelection | MeanMechanism)
    size = mechanism.inputs if isinstance(mechanism, SubsetSelection) else mechanism.messages
    mean, covariance = np.zeros(size), np.zeros((size, size))
    for x, devices in enumerate(held(collection).tolist()):
        one, products = moments(with_epsilon(mechanism, factor), x)
        mean += devices * one
        covariance += devices * (products - np.outer(one, one))
    return mean, covariance


def fits(rounds: Ints, mean: Floats, covariance: Floats) -> bool:
    """Whether the rounds pass for this distribution, at ALPHA on two sides."""
    off = rounds - mean
    spread, directions = np.linalg.eigh(covariance)
    spreads = spread > 1e-9 * spread.max()
    along = off @ directions
    found = float((along[:, spreads] ** 2 / spread[spreads]).sum())
    freedom = int(spreads.sum()) * len(rounds)
    low, high = (float(chi2.isf(tail, freedom)) for tail in (1 - ALPHA / 2, ALPHA / 2))
    return bool(low <= found <= high) and bool((abs(along[:, ~spreads]) < 1e-6).all())


# -- the paths -------------------------------------------------------------------------------------


def at_once(collection: Collection) -> Ints:
    generator = np.random.default_rng(1)
    return np.array([simulate(collection, held(collection), generator) for _ in range(ROUNDS)])


def by_messages(collection: Collection) -> Ints:
    generator, inputs = np.random.default_rng(2), grid(collection)
    return np.array(
        [tally(collection, simulate_messages(collection, inputs, generator)) for _ in range(ROUNDS)]
    )


def by_the_client(collection: Collection) -> Ints:
    randomness, inputs = SeededRandomSource(3), grid(collection).tolist()
    draw = collection.randomizer.randomize
    return np.array(
        [tally(collection, [draw(each, randomness) for each in inputs]) for _ in range(ROUNDS)]
    )


PATHS: dict[str, Callable[[Collection], Ints]] = {
    "at once": at_once,
    "messages": by_messages,
    "client": by_the_client,
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("path", PATHS)
def test_every_path_follows_the_joint_distribution_and_no_other(path: str, name: str) -> None:
    """Means and covariances together; 30 % less and 30 % more epsilon are both rejected."""
    rounds = PATHS[path](CASES[name])

    assert fits(rounds, *tally_moments(CASES[name]))
    assert not fits(rounds, *tally_moments(CASES[name], LOWER))
    assert not fits(rounds, *tally_moments(CASES[name], HIGHER))


@pytest.mark.parametrize("name", CASES)
def test_counters_drawn_one_by_one_are_rejected(name: str) -> None:
    """The right mean and variance of each counter by itself: only the covariances are wrong."""
    mean, covariance = tally_moments(CASES[name])
    generator = np.random.default_rng(4)
    alone = generator.normal(mean, np.sqrt(np.diag(covariance)), size=(ROUNDS, len(mean)))

    assert not fits(np.rint(alone).astype(np.int64), mean, covariance)
