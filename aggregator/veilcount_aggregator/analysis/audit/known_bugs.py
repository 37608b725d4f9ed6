"""Privacy bugs that shipped elsewhere, planted again: each beside its repair, one line away.

A plant makes a device: `plant(coins, repaired=...)` returns the function from a value to the bytes
sent. All are written on veilcount's own coins and thresholds, so a repaired one keeps its claim
exactly. They are here to be caught, by `veilcount audit --self-test`: no device runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from struct import Struct
from typing import Protocol, cast

from veilcount_shared.epsilon import exp_lower, threshold
from veilcount_shared.mechanisms import ProjectiveGeometry, SubsetSelection
from veilcount_shared.mechanisms.selection import best_subset
from veilcount_shared.randomness import WORDS, RandomSource

ONE = Fraction(1)
TWO = Fraction(2)

Emit = Callable[[object], bytes]
Record = tuple[int, ...]


class Plant(Protocol):
    """Makes a device: with the bug, or repaired."""

    def __call__(self, randomness: RandomSource, *, repaired: bool) -> Emit:
        """Return the function from a value to the bytes that this device sends for it."""


# -- vectors of bits, one byte for each ----------------------------------------------------------

BITS = 16
KEEP = threshold(ONE / 2, 1, 2)  # a bit is kept with KEEP / 2^64: two bits that differ cost 1


def last_bit_in_clear(randomness: RandomSource, *, repaired: bool) -> Emit:
    """OpenDP's bit vector until 2026-04: the loop over the bits ends one too early."""
    noisy = BITS if repaired else BITS - 1

    def emit(value: object) -> bytes:
        bits = _one_hot(value)
        for place in range(noisy):
            bits[place] ^= not randomness.bernoulli(KEEP)
        return bytes(bits)

    return emit


def ones_never_cleared(randomness: RandomSource, *, repaired: bool) -> Emit:
    """pure-LDP's RAPPOR: noise sets bits that are 0, and leaves the bits that are 1."""

    def emit(value: object) -> bytes:
        bits = _one_hot(value)
        for place, bit in enumerate(bits):
            if repaired or not bit:
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


def _one_hot(value: object) -> list[int]:
    return [int(place == value) for place in range(BITS)]


# -- subsets -------------------------------------------------------------------------------------


def true_value_first(k: int) -> Plant:
    """multi-freq-ldpy's subset selection: right as a set, but sent in the order it was made."""
    mechanism = _subset(k)
    pack = Struct(f">{mechanism.w}{'B' if k <= 1 << 8 else 'H'}").pack

    def plant(randomness: RandomSource, *, repaired: bool) -> Emit:
        def emit(value: object) -> bytes:
            x = cast("int", value)
            members = [x] if randomness.bernoulli(mechanism.a) else []
            others = _drawn(k - 1, mechanism.w - len(members), randomness)
            members += [other + (other >= x) for other in others]
            return pack(*(sorted(members) if repaired else members))

        return emit

    return plant


def off_by_one(randomness: RandomSource, *, repaired: bool) -> Emit:
    """A k-subset sampler that steps over x one too late: x + 1 is never among the noise."""
    k = 64
    mechanism = _subset(k)

    def emit(value: object) -> bytes:
        x = cast("int", value)
        inside = randomness.bernoulli(mechanism.a)
        mask = int(inside) << x
        for other in _drawn(k - 1, mechanism.w - inside, randomness):
            mask |= 1 << other + (other >= x if repaired else other > x)
        return mask.to_bytes(k // 8, "big")

    return emit


def _subset(k: int) -> SubsetSelection:
    return SubsetSelection.for_epsilon(ONE, k, best_subset(k, exp_lower(ONE)))


def _drawn(k: int, size: int, randomness: RandomSource) -> list[int]:
    """Return `size` of 0..k-1 in uniform order: the beginning of a shuffle [Fisher-Yates]."""
    deck = list(range(k))
    for place in range(size):
        other = place + randomness.below(k - place)
        deck[place], deck[other] = deck[other], deck[place]
    return deck[:size]


# -- the plane -----------------------------------------------------------------------------------

PLANE = ProjectiveGeometry.for_epsilon(ONE, 31, 5, 3)


def zero_rejected_too_early(randomness: RandomSource, *, repaired: bool) -> Emit:
    """A plane's sampler with one loop around everything.

    A hyperplane that misses x has a product <u, x> other than 0, so a zero draw is rejected: but by
    starting again at the coin. Then 1/q of the misses become another chance to hit, and the odds of
    a hit grow by q / (q - 1), here 5/4.
    """

    def emit(value: object) -> bytes:
        message = None
        while message is None:
            message = plane_attempt(cast("int", value), randomness, repaired=repaired)
        return bytes([message])

    return emit


def plane_attempt(x: int, randomness: RandomSource, *, repaired: bool) -> int | None:
    """Return the hyperplane of one pass through the loop, or None to start again."""
    q, point = PLANE.q, PLANE.point(x)
    pivot = point.index(1)
    if randomness.bernoulli(PLANE.a):
        product, normal = 0, PLANE.point(randomness.below(PLANE.support_size), PLANE.t - 1)
    else:
        product = 1 + randomness.below(q - 1) if repaired else randomness.below(q)
        if product == 0:
            return None
        normal = [randomness.below(q) for _ in range(PLANE.t - 1)]
    normal.insert(pivot, 0)
    normal[pivot] = (product - sum(map(int.__mul__, normal, point))) % q
    return PLANE.number(normal)


# -- records -------------------------------------------------------------------------------------


def whole_record(attributes: int) -> Plant:
    """RS+FD: one attribute of d, drawn secretly, is told at ln(d (e^eps - 1) + 1), the rest faked.

    The higher epsilon is paid for by the secret of which one it is [ACBX21]. That holds between
    records that differ in one attribute; between records that differ in all, nothing is hidden.
    """

    def plant(randomness: RandomSource, *, repaired: bool) -> Emit:
        odds = exp_lower(ONE) if repaired else attributes * (exp_lower(ONE) - 1) + 1
        keep = int(WORDS * odds / (odds + 1))

        def emit(value: object) -> bytes:
            record = cast("Record", value)
            told = randomness.below(attributes)
            return bytes(
                bit ^ (not randomness.bernoulli(keep)) if place == told else randomness.below(2)
                for place, bit in enumerate(record)
            )

        return emit

    return plant


# -- time ---------------------------------------------------------------------------------------

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
