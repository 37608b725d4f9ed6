"""The distribution of a message at a claimed epsilon, and the chi-square that rejects another."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from veilcount_shared.mechanisms import (
    DistributionMechanism,
    MeanMechanism,
    ProjectiveGeometry,
    RangeTree,
    SquareWave,
    SubsetSelection,
)

ALPHA = 1e-6  # that a fresh seed rejects a right distribution
LOWER, HIGHER = Fraction(7, 10), Fraction(13, 10)

Supporting = SubsetSelection | ProjectiveGeometry
Windowed = SquareWave | MeanMechanism | DistributionMechanism
AnyMechanism = Supporting | Windowed | RangeTree
Mechanism = TypeVar("Mechanism", bound=AnyMechanism)
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def with_epsilon(mechanism: Mechanism, factor: Fraction) -> Mechanism:
    """The same mechanism at a multiple of its epsilon: the same messages, another threshold."""
    return cast("Mechanism", _with_epsilon(mechanism, factor))


def _with_epsilon(mechanism: AnyMechanism, factor: Fraction) -> AnyMechanism:
    match mechanism:
        case SubsetSelection(k=k, w=w):
            return SubsetSelection.for_epsilon(mechanism.epsilon * factor, k, w)
        case ProjectiveGeometry(k=k, q=q, t=t):
            return ProjectiveGeometry.for_epsilon(mechanism.epsilon * factor, k, q, t)
        case SquareWave(levels=levels, width=width):
            return SquareWave.for_epsilon(mechanism.epsilon * factor, levels, width)
        case MeanMechanism():
            return MeanMechanism(with_epsilon(mechanism.window, factor), mechanism.values)
        case DistributionMechanism():
            return DistributionMechanism(with_epsilon(mechanism.window, factor))
        case RangeTree():
            return RangeTree(tuple(with_epsilon(level, factor) for level in mechanism.levels))


@cache
def messages(mechanism: AnyMechanism) -> list[int]:
    if isinstance(mechanism, SubsetSelection):
        return [m for m in range(1 << mechanism.bits) if mechanism.valid(m)]
    return list(range(mechanism.messages))


def supports(mechanism: AnyMechanism, message: int, x: int) -> bool:
    """Whether a message is one of those that input x, or row x, makes likelier."""
    if isinstance(mechanism, SubsetSelection):
        return x in mechanism.members(message)
    if isinstance(mechanism, ProjectiveGeometry | RangeTree):
        return mechanism.supports(message, x)
    window = mechanism if isinstance(mechanism, SquareWave) else mechanism.window
    return x <= message < x + window.width


def message_distribution(mechanism: AnyMechanism, x: int) -> Floats:
    """The probability of each message of input x, or of row x of a window."""
    own = np.array([supports(mechanism, message, x) for message in messages(mechanism)])
    if not isinstance(mechanism, RangeTree):
        return _split(own, float(mechanism.P))
    places = levels(mechanism)
    parts = [
        _split(own[places == place], float(level.P)) for place, level in enumerate(mechanism.levels)
    ]
    return np.concatenate(parts) / len(parts)


def levels(tree: RangeTree) -> Ints:
    return np.array([tree.level(message) for message in messages(tree)])


def _split(own: NDArray[np.bool_], p: float) -> Floats:
    chances: Floats = np.where(own, p / own.sum(), (1 - p) / (~own).sum())
    return chances


def fits(counts: Ints, distribution: Floats) -> bool:
    """Whether the counts of all messages may have this distribution: chi-square at ALPHA."""
    expected = counts.sum() * distribution
    statistic = float(((counts - expected) ** 2 / expected).sum())

    assert expected.min() >= 5, "enough of each for the chi-square"
    return statistic <= float(chi2.isf(ALPHA, len(counts) - 1))
