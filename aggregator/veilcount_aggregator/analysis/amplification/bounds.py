"""The three bounds side by side, each the least epsilon that it can show, rounded up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import nextafter

from veilcount_shared.composition import shuffle_amplification
from veilcount_shared.epsilon import EPSILON_GRAIN, exp_upper
from veilcount_shared.mechanisms import Randomizer

from ...mechanisms import handler_of
from .blanket import blanket_delta
from .clones import clones_delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Amplified:
    """What n reports of one design would give behind an independent shuffler.

    It strips pseudonym, slot and timing; n counts honest reporters of one batch, one report each.
    """

    reports: int
    delta: Fraction
    local: Fraction
    closed: Fraction
    clones: Fraction
    blanket: Fraction

    @property
    def epsilon(self) -> Fraction:
        """The best of the three: each holds on its own."""
        return min(self.closed, self.clones, self.blanket)


def amplified(mechanism: Randomizer, reports: int, delta: Fraction) -> Amplified:
    """Return all three bounds."""
    return Amplified(
        reports=reports,
        delta=delta,
        local=mechanism.epsilon,
        closed=shuffle_amplification(mechanism.epsilon, reports, delta),
        clones=clones_epsilon(mechanism.epsilon, reports, delta),
        blanket=blanket_epsilon(mechanism, reports, delta),
    )


def clones_epsilon(epsilon: Fraction, reports: int, delta: Fraction) -> Fraction:
    """Return the epsilon that any epsilon-LDP randomizer has behind a shuffler [FMT21]."""
    ratio = nextafter(float(exp_upper(epsilon)), float("inf"))
    return _least(
        lambda at: clones_delta(ratio, reports, at), epsilon, reports=reports, delta=delta
    )


def blanket_epsilon(mechanism: Randomizer, reports: int, delta: Fraction) -> Fraction:
    """Return the epsilon that this design has behind a shuffler [BBGN19]."""
    pairs = handler_of(mechanism).overlaps()
    return _least(
        lambda at: blanket_delta(pairs, reports, at),
        mechanism.epsilon,
        reports=reports,
        delta=delta,
    )


def _least(
    delta_of: Callable[[float], float], local: Fraction, *, reports: int, delta: Fraction
) -> Fraction:
    """Return the least epsilon, in millionths, whose delta is small enough; at most the local one.

    One report more or less than none has nobody to hide among.
    """
    if reports < 2:  # noqa: PLR2004 - alone
        return local
    low, high = -1, int(local * EPSILON_GRAIN)
    while high - low > 1:
        middle = (low + high) // 2
        if delta_of(middle / EPSILON_GRAIN) <= delta:
            high = middle
        else:
            low = middle
    return min(Fraction(high, EPSILON_GRAIN), local)
