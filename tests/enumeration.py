"""The largest ratio of exact distributions; the product's audit enumerates them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from veilcount_analysis.audit.enumeration import (
    EnumeratedRandomSource,
    enumerate_branches,
    enumerate_distribution,
)

__all__ = [
    "Distribution",
    "EnumeratedRandomSource",
    "enumerate_branches",
    "enumerate_distribution",
    "max_likelihood_ratio",
]

Distribution = dict[int, Fraction]


def max_likelihood_ratio(distributions: Sequence[Distribution]) -> Fraction:
    """Return the largest ratio of two inputs' probabilities of one message.

    A message that one input can send and another cannot has no bound: it fails loudly.
    """
    messages = set().union(*distributions)
    assert all(messages == set(distribution) for distribution in distributions), (
        "an input has a message of its own"
    )
    return max(
        _spread(distribution[message] for distribution in distributions) for message in messages
    )


def _spread(probabilities: Iterable[Fraction]) -> Fraction:
    listed = list(probabilities)
    return max(listed) / min(listed)
