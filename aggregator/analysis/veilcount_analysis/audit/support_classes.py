"""Small batches of messages that are too many to enumerate, counted in four classes.

A two-level randomizer sends any message of its value's set with one probability, any other with
another; covers are uniform. So of two values only the class of a message matters: which of the two
it supports. Exchanging messages of a class changes the probability of no batch, so the distribution
of the classes is exact. Their sizes are stated by the mechanism: samples of the code that devices
and shufflers run are held against them, which finds covers or reports of another distribution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log

from veilcount_shared import Collection, RandomSource
from veilcount_shared.composition import Overlap

from ..mechanisms import handler_of
from .audit_case import ABSENT
from .small_batches import BatchCheck, Distribution, Draw, SmallBatch, bounded, draw_of, values_of

CLASSES = range(4)
FIRST, LAST = 1, 2  # bits of a class: the value that a message supports


@dataclass(frozen=True, slots=True)
class ClassAudit:
    """The checks of the classes, and whose samples have another distribution; "": none."""

    checks: tuple[BatchCheck, ...]
    deviation: str


def class_batch(overlap: Overlap) -> SmallBatch:
    """Return the batch of two values over the classes of messages."""
    sizes = {0: 1 - overlap.own - overlap.alone, FIRST: overlap.alone, LAST: overlap.alone}
    sizes[FIRST | LAST] = overlap.own - overlap.alone
    own, other = overlap.P / overlap.own, (1 - overlap.P) / (1 - overlap.own)

    def report(value: int) -> Distribution:
        return _possible(
            {place: size * (own if place & value else other) for place, size in sizes.items()}
        )

    return SmallBatch((report(FIRST), report(LAST)), _possible(sizes))


def _possible(chances: dict[int, Fraction]) -> Distribution:
    return {place: chance for place, chance in chances.items() if chance}


def audit_classes(
    collection: Collection, randomness: RandomSource, samples: int, alpha: float
) -> ClassAudit | None:
    """Check small batches by classes; None: the mechanism has not two levels."""
    handler = handler_of(collection.mechanism)
    supports, overlaps = handler.message_supports, handler.overlaps()
    if supports is None or len(overlaps) > 1:
        return None
    batch, pair = class_batch(overlaps[0]), (values_of(collection)[0], values_of(collection)[-1])
    first, last = (_point(collection, value, randomness) for value in pair)

    def class_of(message: int) -> int:
        return FIRST * supports(message, first) + LAST * supports(message, last)

    draws = [*(draw_of(collection, value) for value in pair), collection.randomizer.cover]
    names = [*(f"reports of {_spelled(value)}" for value in pair), "covers"]
    distributions = (*batch.reports, batch.cover)
    deviating = [
        name
        for name, draw, stated in zip(names, draws, distributions, strict=True)
        if _deviates(_sampled(draw, class_of, randomness, samples), stated, alpha / len(names))
    ]
    return ClassAudit(bounded(batch, collection), ", ".join(deviating))


def _point(collection: Collection, value: object, randomness: RandomSource) -> int:
    if value is ABSENT:
        return collection.inputs - 1
    return collection.domain.input(value, randomness)


def _spelled(value: object) -> str:
    return "absence" if value is ABSENT else str(value)


def _sampled(
    draw: Draw, class_of: Callable[[int], int], randomness: RandomSource, samples: int
) -> Counter[int]:
    return Counter(class_of(draw(randomness)) for _ in range(samples))


def _deviates(counts: Counter[int], stated: Distribution, alpha: float) -> bool:
    """Whether a class has another frequency than stated; wrongly with probability alpha at most.

    By Chernoff's bound, n times the relative entropy of a frequency passes log(2 / alpha) with at
    most that probability; each class has its part of alpha.
    """
    n, line = counts.total(), log(2 * len(CLASSES) / alpha)
    return any(
        n * _relative_entropy(counts[place] / n, float(stated.get(place, 0))) > line
        for place in CLASSES
    )


def _relative_entropy(frequency: float, chance: float) -> float:
    pairs = ((frequency, chance), (1 - frequency, 1 - chance))
    return sum(a * (log(a / b) if b > 0 else inf) for a, b in pairs if a > 0)
