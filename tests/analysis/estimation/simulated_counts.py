"""Populations of numbers with a known spread, and what their devices send, by the exact rows."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from veilcount_analysis.estimation.cdf import BucketHistogram
from veilcount_analysis.estimation.estimator import IntervalTarget
from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import DistributionMechanism, ProjectiveGeometry, RangeTree

BUCKETS = 256
DECILES = np.arange(1, 10) / 10
RANGE = Number(Fraction(0), Fraction(BUCKETS))  # so that a bucket is one wide, edges whole numbers

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@cache
def rows_of(mechanism: RangeTree | DistributionMechanism) -> Floats:
    """The probability of every message, for every bucket: from who owns what, one by one."""
    if isinstance(mechanism, DistributionMechanism):
        return np.array([[float(chance) for chance in row] for row in mechanism.transition_matrix])
    rows = np.empty((BUCKETS, mechanism.messages))
    for message in range(mechanism.messages):
        level = mechanism.levels[mechanism.level(message)]
        own = level.support_size if isinstance(level, ProjectiveGeometry) else 1
        inside = float(level.P / own / 4)
        outside = float((1 - level.P) / (level.messages - own) / 4)
        nodes = range(0, BUCKETS, BUCKETS // level.inputs)
        owned = [mechanism.supports(message, bucket) for bucket in nodes]
        rows[:, message] = np.repeat(np.where(owned, inside, outside), BUCKETS // level.inputs)
    return rows


def numbers(name: str, n: int, generator: Generator) -> Floats:
    """Numbers of [0, 1): one hump, two humps, a long tail, and spikes on an even ground."""
    if name == "one hump":
        return generator.beta(5, 2, n)
    if name == "long tail":
        return np.minimum(generator.lognormal(-2.3, 0.7, n), 1 - 1e-9)
    if name == "two humps":
        low, high = generator.normal(0.25, 0.05, n), generator.normal(0.7, 0.1, n)
        return np.clip(np.where(generator.random(n) < 0.4, low, high), 0, 1 - 1e-9)
    spikes = generator.choice([0.1, 0.2, 0.25, 0.5, 0.75, 0.8], n, p=[0.2, 0.2, 0.1, 0.3, 0.1, 0.1])
    return np.where(generator.random(n) < 0.5, spikes, generator.random(n))


SPREADS = ("one hump", "two humps", "long tail", "spikes")


def population(name: str, n: int, generator: Generator) -> Counts:
    """How many of n devices have a number in each bucket."""
    buckets = (numbers(name, n, generator) * BUCKETS).astype(np.int64)
    return np.bincount(buckets, minlength=BUCKETS)


def few(n: int) -> Counts:
    """Return n devices with numbers of five buckets."""
    held = np.zeros(BUCKETS, np.int64)
    held[[3, 64, 100, 130]] = np.array([0.2, 0.2, 0.3, 0.2]) * n
    held[BUCKETS - 1] = n - held.sum()
    return held


def draw(
    held: Counts,
    mechanism: RangeTree | DistributionMechanism,
    target: IntervalTarget,
    generator: Generator,
) -> Counts:
    """The counters of exactly these devices (a cohort), or of as many drawn like them."""
    n = int(held.sum())
    if target.sampled:
        chances = held / n @ rows_of(mechanism)
        return generator.multinomial(n, chances / chances.sum())
    some = np.flatnonzero(held)
    rows = rows_of(mechanism)[some]
    drawn = generator.multinomial(held[some], rows / rows.sum(axis=1, keepdims=True))
    counters: Counts = drawn.sum(axis=0)
    return counters


def curve_of(found: BucketHistogram) -> Floats:
    assert found.curve.share is not None
    return found.curve.share


def distances(curve: Floats, held: Counts) -> tuple[float, float]:
    """How far an estimated curve over the 257 edges is from the true one, for the range [0, 1].

    The first Wasserstein distance, and the mean error of the deciles.
    """
    true = np.concatenate([[0.0], np.cumsum(held) / held.sum()])
    off = np.searchsorted(curve, DECILES) - np.searchsorted(true, DECILES)
    return float(abs(curve - true)[1:].mean()), float(abs(off).mean() / BUCKETS)
