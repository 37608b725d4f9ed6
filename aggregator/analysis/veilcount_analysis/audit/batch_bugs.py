"""Faults of a shuffler, planted for `veilcount audit --self-test` to detect by enumeration.

Each is a batch of one report among covers, with the fault or repaired, and the delta that the
accounting claims for it. A claim that is below the exact delta is refuted: no sample is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp

from veilcount_shared.domain import GRID
from veilcount_shared.mechanisms import Randomizer, RangeTree, SubsetSelection

from ..mechanisms import handler_of
from ..privacy.shuffled import cover_delta
from .small_batches import MOST_COVERS, Draw, SmallBatch, enumerated

FOUR = Fraction(4)
EPSILON = 1.0  # at which delta is claimed


@dataclass(frozen=True, slots=True)
class BatchFinding:
    """The delta that is claimed for a batch, and the exact one."""

    claimed: float
    exact: float

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted."""
        return self.exact > self.claimed


@dataclass(frozen=True, slots=True)
class BatchBug:
    """A planted fault: a repaired batch, and what is wrong with the planted one."""

    mechanism: Randomizer
    plant: Callable[[SmallBatch], SmallBatch]
    covers: int = MOST_COVERS  # of the planted batch; as many as are claimed are in the repaired

    def check(self, *, repaired: bool) -> BatchFinding:
        """Hold the claim against the batch with the fault, or repaired."""
        batch = honest_batch(self.mechanism)
        planted = batch if repaired else self.plant(batch)
        covers = MOST_COVERS if repaired else self.covers
        exact = planted.delta(Fraction(exp(EPSILON)), covers)
        claimed = cover_delta(handler_of(self.mechanism).overlaps(), MOST_COVERS, EPSILON)
        return BatchFinding(claimed, float(exact))


def honest_batch(mechanism: Randomizer) -> SmallBatch:
    """Return the batch of a mechanism's first input and last one, as its code draws them."""
    ends = (0, mechanism.inputs - 1)
    if isinstance(mechanism, RangeTree):
        ends = (0, GRID)
    reports = tuple(enumerated(_report(mechanism, x)) for x in ends)
    return SmallBatch(reports, enumerated(mechanism.cover))


def _report(mechanism: Randomizer, x: int) -> Draw:
    return lambda randomness: mechanism.randomize(x, randomness)


# -- faults ----------------------------------------------------------------------------------------


def as_it_is(batch: SmallBatch) -> SmallBatch:
    """Return the batch: its number of covers is the fault."""
    return batch


def order_kept(batch: SmallBatch) -> SmallBatch:
    """A shuffler that hands over in the order of arrival, its covers last."""
    return replace(batch, mixed=False)


def uniform_covers(batch: SmallBatch) -> SmallBatch:
    """Covers that are uniform among all messages, where a device draws a level beforehand."""
    return replace(batch, cover=_uniform(list(batch.cover)))


def covers_of_values(batch: SmallBatch) -> SmallBatch:
    """Covers that are drawn from the listed values: the last input, absence, has none."""
    return replace(batch, cover=_uniform(sorted(batch.cover)[:-1]))


def _uniform(messages: list[int]) -> dict[int, Fraction]:
    return dict.fromkeys(messages, Fraction(1, len(messages)))


THREE = SubsetSelection.for_epsilon(FOUR, 4, 1)  # three values and absence

#: by what went wrong
BATCH_BUGS: dict[str, BatchBug] = {
    "a cover too few": BatchBug(THREE, as_it_is, MOST_COVERS - 1),
    "order kept": BatchBug(THREE, order_kept),
    "covers drawn from values, never absent": BatchBug(THREE, covers_of_values),
    "covers of ranges uniform over messages": BatchBug(RangeTree.for_epsilon(FOUR), uniform_covers),
}
