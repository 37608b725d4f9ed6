"""Privacy bugs that shipped elsewhere, planted for `veilcount audit --self-test` to detect.

A plant makes a device: `plant(randomness, repaired=...)` returns the function from a value to the
bytes sent, with the bug or, one line away, without it. All use veilcount's own randomness source
and thresholds, so that a repaired one keeps its claim exactly. No device runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from struct import Struct
from typing import Protocol, cast

from veilcount_shared.epsilon import exp_lower, threshold
from veilcount_shared.mechanisms import SubsetSelection
from veilcount_shared.mechanisms.selection import best_subset
from veilcount_shared.randomness import RandomSource

from .audit import AuditResult, audit

ONE = Fraction(1)
TWO = Fraction(2)

Emit = Callable[[object], bytes]


class Plant(Protocol):
    """Makes a device: with the bug, or repaired."""

    def __call__(self, randomness: RandomSource, *, repaired: bool) -> Emit:
        """Return the function from a value to the bytes that this device sends for it."""


@dataclass(frozen=True, slots=True)
class Bug:
    """A planted bug, and an audit of the two values that reveals it."""

    plant: Plant
    pair: tuple[object, object]
    claimed: float
    samples: int
    shown: float  # measured at least: the true loss where finite, less what the samples cost
    symbol_bits: tuple[int, ...] = (1, 8)

    def audit(
        self, randomness: RandomSource, *, repaired: bool, alpha: float = 0.001
    ) -> AuditResult:
        """Audit the device with the bug, or repaired."""
        return audit(
            self.plant(randomness, repaired=repaired),
            self.pair,
            self.claimed,
            samples=self.samples,
            alpha=alpha,
            symbol_bits=self.symbol_bits,
        )


# -- vectors of bits, one byte for each ------------------------------------------------------------

BITS = 16
KEEP = threshold(ONE / 2, 1, 2)  # a bit is kept with KEEP / 2^64: two bits that differ cost 1


def last_bit_in_clear(randomness: RandomSource, *, repaired: bool) -> Emit:
    """OpenDP's bit vector until 2026-04: the loop over the bits ends one too early."""
    noisy = BITS if repaired else BITS - 1

    def emit(value: object) -> bytes:
        bits = one_hot(value)
        for place in range(noisy):
            bits[place] ^= not randomness.bernoulli(KEEP)
        return bytes(bits)

    return emit


def true_bit_over_noise(randomness: RandomSource, *, repaired: bool) -> Emit:
    """pure-LDP's unary encoding up to 1.1.2: an `if` without its `else`.

    All bits are drawn as if they were 0, then the true one is set with probability p and otherwise
    left as it was drawn: it is 1 with p + (1 - p) q, not p.
    """

    def emit(value: object) -> bytes:
        bits = [not randomness.bernoulli(KEEP) for _ in range(BITS)]
        if randomness.bernoulli(KEEP):
            bits[cast("int", value)] = True
        elif repaired:
            bits[cast("int", value)] = False
        return bytes(bits)

    return emit


def one_hot(value: object) -> list[int]:
    """Return the bits of a value, of which one is 1."""
    return [int(place == value) for place in range(BITS)]


# -- subsets ---------------------------------------------------------------------------------------


def true_value_first(k: int) -> Plant:
    """multi-freq-ldpy's subset selection: right as a set, but sent in the order it was made."""
    mechanism = subset_mechanism(k)
    pack = Struct(f">{mechanism.w}{'B' if k <= 1 << 8 else 'H'}").pack

    def plant(randomness: RandomSource, *, repaired: bool) -> Emit:
        def emit(value: object) -> bytes:
            x = cast("int", value)
            members = [x] if randomness.bernoulli(mechanism.a) else []
            others = draw_distinct(k - 1, mechanism.w - len(members), randomness)
            members += [other + (other >= x) for other in others]
            return pack(*(sorted(members) if repaired else members))

        return emit

    return plant


def subset_mechanism(k: int) -> SubsetSelection:
    """Return the subset selection of k values at epsilon 1."""
    return SubsetSelection.for_epsilon(ONE, k, best_subset(k, exp_lower(ONE)))


def draw_distinct(k: int, size: int, randomness: RandomSource) -> list[int]:
    """Return `size` of 0..k-1 in uniform order: the beginning of a shuffle [Fisher-Yates]."""
    deck = list(range(k))
    for place in range(size):
        other = place + randomness.below(k - place)
        deck[place], deck[other] = deck[other], deck[place]
    return deck[:size]


# -- time ------------------------------------------------------------------------------------------

REPORTS = 200


def redrawn(randomness: RandomSource, *, repaired: bool) -> Emit:
    """A permanent answer that is never found in the memo, so each of 200 reports draws afresh."""
    coin = SubsetSelection.for_epsilon(TWO, 2, 1)

    def emit(value: object) -> bytes:
        memo: dict[int, int] = {}
        reports = bytearray()
        for day in range(REPORTS):
            key = 0 if repaired else day
            if key not in memo:
                memo[key] = coin.randomize(cast("int", value), randomness)
            reports.append(memo[key])
        return bytes(reports)

    return emit


#: by what went wrong, with the true loss
BUGS: dict[str, Bug] = {
    "last bit in clear (infinite)": Bug(last_bit_in_clear, (3, 15), 1, 20_000, 7.0),
    "unary encoding, wrong p (1.68)": Bug(true_bit_over_noise, (3, 9), 1, 20_000, 1.5),
    "true value first, k=64 (4.1)": Bug(true_value_first(64), (3, 40), 1, 20_000, 3.5),
    "true value first, k=1024 (6.9)": Bug(true_value_first(1024), (5, 900), 1, 3_000, 4.2, (16,)),
    "permanent answer redrawn (400)": Bug(redrawn, (0, 1), 2, 8_000, 6.0),
}
