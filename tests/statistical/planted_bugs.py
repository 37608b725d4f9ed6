"""More privacy bugs that shipped elsewhere, planted like those of `veilcount audit --self-test`."""

from __future__ import annotations

from typing import cast

from veilcount_analysis.audit.known_bugs import (
    KEEP,
    ONE,
    Bug,
    Emit,
    Plant,
    draw_distinct,
    one_hot,
    subset_mechanism,
)
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.mechanisms import ProjectiveGeometry
from veilcount_shared.randomness import WORDS, RandomSource

Record = tuple[int, ...]


def ones_never_cleared(randomness: RandomSource, *, repaired: bool) -> Emit:
    """pure-LDP's RAPPOR: noise sets bits that are 0, and leaves the bits that are 1."""

    def emit(value: object) -> bytes:
        bits = one_hot(value)
        for place, bit in enumerate(bits):
            if repaired or not bit:
                bits[place] ^= not randomness.bernoulli(KEEP)
        return bytes(bits)

    return emit


def off_by_one(randomness: RandomSource, *, repaired: bool) -> Emit:
    """A k-subset sampler that steps over x one too late: x + 1 is never among the noise."""
    k = 64
    mechanism = subset_mechanism(k)

    def emit(value: object) -> bytes:
        x = cast("int", value)
        inside = randomness.bernoulli(mechanism.a)
        mask = int(inside) << x
        for other in draw_distinct(k - 1, mechanism.w - inside, randomness):
            mask |= 1 << other + (other >= x if repaired else other > x)
        return mask.to_bytes(k // 8, "big")

    return emit


# -- the plane -------------------------------------------------------------------------------------

PLANE = ProjectiveGeometry.for_epsilon(ONE, 31, 5, 3)


def zero_rejected_too_early(randomness: RandomSource, *, repaired: bool) -> Emit:
    """A plane's sampler with one loop around everything.

    A hyperplane that misses x has a product <u, x> other than 0, so a zero draw is rejected: but by
    starting again at the first draw. Then 1/q of the misses become another chance to hit, and the
    odds of a hit grow by q / (q - 1), here 5/4.
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


# -- records ---------------------------------------------------------------------------------------


def whole_record(attributes: int) -> Plant:
    """RS+FD: one attribute of d, drawn secretly, is sent at ln(d (e^eps - 1) + 1), the rest faked.

    The higher epsilon is paid for by the secret of which one it is [ACBX21]. That holds between
    records that differ in one attribute; between records that differ in all, nothing is hidden.
    """

    def plant(randomness: RandomSource, *, repaired: bool) -> Emit:
        odds = exp_lower(ONE) if repaired else attributes * (exp_lower(ONE) - 1) + 1
        keep = int(WORDS * odds / (odds + 1))

        def emit(value: object) -> bytes:
            record = cast("Record", value)
            kept = randomness.below(attributes)
            return bytes(
                bit ^ (not randomness.bernoulli(keep)) if place == kept else randomness.below(2)
                for place, bit in enumerate(record)
            )

        return emit

    return plant


#: by what went wrong, with the true loss
PLANTED_BUGS: dict[str, Bug] = {
    "RAPPOR never clears a 1 (infinite)": Bug(ones_never_cleared, (3, 9), 1, 20_000, 6.0),
    "subset off by one (infinite)": Bug(off_by_one, (3, 4), 1, 20_000, 6.0),
    "plane, zero rejected too early (1.22)": Bug(zero_rejected_too_early, (5, 20), 1, 40_000, 1.1),
    "RS+FD, 2 attributes (1.49)": Bug(whole_record(2), ((0,) * 2, (1,) * 2), 1, 20_000, 1.35),
    "RS+FD, 5 attributes (2.26)": Bug(whole_record(5), ((0,) * 5, (1,) * 5), 1, 40_000, 1.75),
}
