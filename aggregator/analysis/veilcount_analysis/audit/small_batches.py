"""Small batches of a shuffled collection, enumerated: what they reveal, exactly.

A batch is what a server is handed: one report of each device and covers, in random order. The
distributions of reports and covers are those of the code that devices and shufflers run, over every
outcome of its randomness. Nothing of the accounting is used, so that its bounds can be held against
the result.

Messages that have the same probability from every input, and as a cover, are alike: exchanging them
changes the probability of no batch, so they are counted together. A random order reveals the
multiset alone, since each of its orders is equally likely.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import exp, lcm
from typing import Any

from veilcount_shared import Collection, RandomSource
from veilcount_shared.domain import Boolean, Choice

from ..mechanisms import handler_of
from ..privacy.shuffled import cover_delta
from .audit_case import ABSENT
from .enumeration import enumerate_distribution

MOST_OUTCOMES = 30_000  # of the randomness of one report or cover
MOST_INPUTS = 4  # beyond, two inputs are compared, and all other reports are known to the server
MOST_REPORTS = 2  # of devices
MOST_COVERS = 3
QUARTERS = 4  # delta is compared at epsilons a quarter of the report's apart

Chance = int | Fraction  # a probability, or a count of so many
Distribution = Mapping[int, Chance]
View = tuple[Any, ...]  # messages
Views = dict[View, Chance]
ChanceOfView = Mapping[View, Chance]
Draw = Callable[[RandomSource], int]


class TooManyOutcomesError(ValueError):
    """A report or cover has more outcomes than are enumerated."""


def enumerated(draw: Draw) -> Distribution:
    """Return the distribution of a message, or refuse one of too many outcomes."""
    outcomes = 0

    def counted(randomness: RandomSource) -> int:
        nonlocal outcomes
        outcomes += 1
        if outcomes > MOST_OUTCOMES:
            raise TooManyOutcomesError(f"more than {MOST_OUTCOMES:,} outcomes of one report")
        return draw(randomness)

    return enumerate_distribution(counted)


def view_distribution(messages: Sequence[Mapping[Any, Chance]], *, mixed: bool = True) -> Views:
    """Return the probability of every view of independent messages; in order, if not mixed."""
    views: Views = {(): 1}
    for message in messages:
        grown: Views = {}
        for view, chance in views.items():
            for content, probability in message.items():
                longer = (*view, content)
                key = tuple(sorted(longer)) if mixed else longer
                grown[key] = grown.get(key, 0) + chance * probability
        views = grown
    return views


def delta(one: ChanceOfView, other: ChanceOfView, e_epsilon: Fraction) -> Fraction:
    """Return the least delta at which the first is within e^epsilon of the other."""
    more, less = e_epsilon.denominator, e_epsilon.numerator
    excess = (more * chance - less * other.get(view, 0) for view, chance in one.items())
    return Fraction(sum(part for part in excess if part > 0)) / more


@dataclass(frozen=True, slots=True)
class SmallBatch:
    """The distributions of a report, by input, and of a cover; `mixed`: the order is random."""

    reports: tuple[Distribution, ...]
    cover: Distribution
    mixed: bool = True

    def delta(self, e_epsilon: Fraction, covers: int, devices: int = 1) -> Fraction:
        """Return delta of one report, the largest over all values and data of other devices."""
        inputs = range(len(self.reports))
        return max(
            self._delta(pair, others, e_epsilon, covers)
            for pair in permutations(inputs, 2)
            for others in combinations_with_replacement(inputs, devices - 1)
        )

    def _delta(
        self, pair: tuple[int, int], others: tuple[int, ...], e_epsilon: Fraction, covers: int
    ) -> Fraction:
        involved = (*pair, *others)
        *reports, cover = _alike([*(self.reports[x] for x in involved), self.cover])
        whole = lcm(*(part.denominator for row in (*reports, cover) for part in row.values()))
        *reports, cover = (_counts(row, whole) for row in (*reports, cover))
        unchanged = [*reports[2:], *([cover] * covers)]
        one, other = (
            view_distribution([report, *unchanged], mixed=self.mixed) for report in reports[:2]
        )
        outcomes: int = whole ** (1 + len(unchanged))
        return delta(one, other, e_epsilon) / outcomes


def _counts(distribution: Distribution, whole: int) -> Distribution:
    """Return probabilities as counts of so many, which add and multiply without fractions."""
    return {key: int(part * whole) for key, part in distribution.items()}


def _alike(distributions: Sequence[Distribution]) -> list[Distribution]:
    """Return the distributions over classes of messages that none of them tells apart."""
    messages = sorted(set().union(*distributions))
    rows = {
        message: tuple(distribution.get(message, 0) for distribution in distributions)
        for message in messages
    }
    classes = {row: number for number, row in enumerate(dict.fromkeys(rows.values()))}
    sums: list[dict[int, Chance]] = [dict.fromkeys(classes.values(), 0) for _ in distributions]
    for row in rows.values():
        for distribution, probability in zip(sums, row, strict=True):
            distribution[classes[row]] += probability
    return [{key: part for key, part in total.items() if part} for total in sums]


# -- definitions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BatchCheck:
    """One size of batch at one epsilon: delta as it is, and as the accounting bounds it."""

    devices: int
    covers: int
    epsilon: float
    exact: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the bound is one."""
        return self.exact <= self.bound


def small_batch(collection: Collection) -> SmallBatch:
    """Return a definition's: of all values where they are few, else of the two most different."""
    reports = tuple(enumerated(draw_of(collection, value)) for value in values_of(collection))
    return SmallBatch(reports, enumerated(collection.randomizer.cover))


def values_of(collection: Collection) -> list[object]:
    """Return all values where they are few, else the two most different, and absence."""
    absent = [ABSENT] if collection.has_absent else []
    domain = collection.domain
    if isinstance(domain, Boolean | Choice) and collection.inputs <= MOST_INPUTS:
        return [*domain.labels, *absent]
    return [*collection.domain.extremes, *absent]


def draw_of(collection: Collection, value: object) -> Draw:
    """Return the message of a value, drawn as a device does."""
    if value is ABSENT:
        return collection.randomize_absent
    return lambda randomness: collection.randomize(value, randomness)


def check_batches(collection: Collection) -> tuple[BatchCheck, ...]:
    """Enumerate batches of up to three covers, and hold the accounting's bound against each."""
    return bounded(small_batch(collection), collection)


def bounded(batch: SmallBatch, collection: Collection) -> tuple[BatchCheck, ...]:
    """Hold the accounting's bound against each small batch of a collection."""
    own = float(collection.randomizer.epsilon)
    overlaps = handler_of(collection.mechanism).overlaps()
    few = len(batch.reports) <= MOST_INPUTS and len(batch.cover) <= MOST_INPUTS
    sizes = product(range(1, (MOST_REPORTS if few else 1) + 1), range(MOST_COVERS + 1))
    epsilons = [own * quarter / QUARTERS for quarter in range(QUARTERS)]

    def check(devices: int, covers: int, epsilon: float) -> BatchCheck:
        exact = batch.delta(Fraction(exp(epsilon)), covers, devices)
        bound = cover_delta(overlaps, covers, epsilon)
        return BatchCheck(devices, covers, epsilon, float(exact), bound)

    return tuple(check(*size, epsilon) for size in sizes for epsilon in epsilons)
