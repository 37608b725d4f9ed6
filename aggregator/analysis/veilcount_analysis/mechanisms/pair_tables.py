"""Tables of two questions on the server: each pair's subsets, counted one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.composition import Overlap
from veilcount_shared.mechanisms import PairTables

from ..estimation.confidence_intervals import Counts
from ..estimation.covered_supports import persons_part
from ..estimation.question_shares import group_noise
from ..estimation.two_way_tables import TableShape, TwoWayTable
from ..series.packed_rows import Counters, Packed, numbers
from .handler import Flags, MechanismHandler, handles, typed_handler
from .sampling import Ints, scattered, summed
from .subset_selection import SubsetSelectionHandler


@handles(PairTables)
class PairTablesHandler(MechanismHandler[PairTables]):
    """A device draws a pair of its answers, and reports the cell of their table."""

    def describe(self) -> str:
        pairs, questions = len(self.mechanism.pairs), len(self.mechanism.sizes)
        largest = max(self.subsets, key=lambda subset: subset.mechanism.k)
        return f"pairs: one of {pairs} tables of {questions} questions; {largest.describe()}"

    @property
    def subsets(self) -> list[SubsetSelectionHandler]:
        """The handlers of the pairs' subset selections."""
        return [SubsetSelectionHandler(subset) for subset in self.mechanism.subsets]

    # -- reports become counters -------------------------------------------------------------------

    @property
    def counters_per_report(self) -> int:
        """The most counters that a report adds to."""
        return max(subset.w for subset in self.mechanism.subsets)

    @property
    def message_supports(self) -> Callable[[int, int], bool]:
        return self.mechanism.supports

    def valid_rows(self, rows: Packed) -> Flags:
        """Return which rows name a pair and have a message of it, with zeros before."""
        valid = np.zeros(len(rows), np.bool_)
        for chosen, subset, padding, own in self._by_pair(rows):
            valid[chosen] = ~padding.any(axis=1) & subset.valid_rows(own)
        return valid

    def tally(self, rows: Packed) -> Counters:
        return np.concatenate([subset.tally(own) for _, subset, _, own in self._by_pair(rows)])

    def increments(self, rows: Packed) -> tuple[list[int], list[int]]:
        counters = self.tally(rows)
        places = np.flatnonzero(counters)
        return places.tolist(), counters[places].tolist()

    def report_count(self, counters: Counts) -> int:
        return sum(self.reports_of_pairs(counters))

    def reports_of_pairs(self, counters: Counts) -> list[int]:
        """Return how many reports each pair has."""
        parts = zip(self.subsets, self._split(counters), strict=True)
        return [subset.report_count(part) for subset, part in parts]

    def _by_pair(
        self, rows: Packed
    ) -> Iterator[tuple[Ints, SubsetSelectionHandler, Packed, Packed]]:
        """Yield each pair's rows: their places, the padding, and the pair's own messages."""
        for pair, subset in enumerate(self.subsets):
            chosen = np.flatnonzero(rows[:, 0] == pair)
            begin = 1 + self.mechanism.width - -(-subset.mechanism.bits // 8)
            yield chosen, subset, rows[chosen, 1:begin], rows[chosen, begin:]

    def _split(self, counters: Counts) -> list[Counts]:
        return np.split(counters, self.mechanism.starts[1:])

    # -- estimates ---------------------------------------------------------------------------------

    def tables(self, counters: Counts, covers: int = 0) -> list[TwoWayTable] | None:
        """Return the table of each pair; None: a pair has no report.

        So many of the reports are a shuffler's covers, which draw their pair as devices do.
        """
        reports, sizes = self.reports_of_pairs(counters), self.mechanism.sizes
        received = sum(reports)
        if not all(reports) or received <= covers:
            return None
        persons = persons_part(received - covers, covers)
        return [
            TwoWayTable(subset, TableShape(sizes[one], sizes[two]), n, part, persons, received / n)
            for (one, two), subset, part, n in zip(
                self.mechanism.pairs,
                self.mechanism.subsets,
                self._split(counters),
                reports,
                strict=True,
            )
        ]

    def noise_variance(self) -> float:
        """Return that of a cell of the largest table; few devices report it."""
        return len(self.mechanism.pairs) * max(subset.noise_variance() for subset in self.subsets)

    def share_variance(self) -> float:
        """Return n times the noise variance of an answer's share; of the question that errs most.

        The tables of its pairs are averaged by their precision; few devices report each.
        """
        pairs, sizes = (
            list(zip(self.mechanism.pairs, self.subsets, strict=True)),
            self.mechanism.sizes,
        )
        precisions = [
            sum(
                1 / group_noise(subset.mechanism, subset.mechanism.k // size)
                for pair, subset in pairs
                if question in pair
            )
            for question, size in enumerate(sizes)
        ]
        return len(pairs) / min(precisions)

    def cover_variance(self) -> float:
        """Return that of a cell of the largest table; few covers are of it."""
        return len(self.mechanism.pairs) * max(subset.cover_variance() for subset in self.subsets)

    def reach(self) -> tuple[float, float]:
        """Return that of reports that all choose one pair."""
        pushes, pulls = zip(*(subset.reach() for subset in self.subsets), strict=True)
        return len(self.mechanism.pairs) * max(pushes), len(self.mechanism.pairs) * max(pulls)

    def overlaps(self) -> tuple[Overlap, ...]:
        """Return the overlaps of answers that differ in every pair."""
        return tuple(overlap for subset in self.subsets for overlap in subset.overlaps())

    # -- simulated devices -------------------------------------------------------------------------

    def draw_inputs(self, points: Ints, generator: Generator) -> Ints:
        """Return the counter of each device's cell in the pair that it draws."""
        m = self.mechanism
        drawn, answers = generator.integers(len(m.pairs), size=len(points)), digits(m, points)
        one, two = np.array(m.pairs)[drawn].T
        devices, sizes = np.arange(len(points)), np.array(m.sizes)
        cells = answers[one, devices] * sizes[two] + answers[two, devices]
        counters: Ints = np.array(m.starts)[drawn] + cells
        return counters

    def count_inputs(self, points: Ints, devices: Ints, generator: Generator) -> Ints:
        m = self.mechanism
        drawn, answers = scattered(devices, len(m.pairs), generator), digits(m, points)
        parts = [
            summed(answers[one] * m.sizes[two] + answers[two], drawn[:, pair], subset.k)
            for pair, ((one, two), subset) in enumerate(zip(m.pairs, m.subsets, strict=True))
        ]
        return np.concatenate(parts)

    def draw_messages(self, inputs: Ints, generator: Generator) -> Ints:
        """Return messages as numbers, of definitions whose messages have at most seven bytes."""
        return numbers(self.draw_rows(inputs, generator))

    def draw_rows(self, inputs: Ints, generator: Generator) -> Packed:
        m = self.mechanism
        rows = np.zeros((len(inputs), 1 + m.width), np.uint8)
        rows[:, 0] = np.searchsorted(m.starts, inputs, side="right") - 1
        for pair, subset in enumerate(self.subsets):
            chosen = np.flatnonzero(rows[:, 0] == pair)
            own = subset.draw_rows(inputs[chosen] - m.starts[pair], generator)
            rows[chosen, 1 + m.width - own.shape[1] :] = own
        return rows

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
        parts = zip(self.subsets, self._split(held), strict=True)
        return np.concatenate([subset.draw_counters(part, generator) for subset, part in parts])


def digits(mechanism: PairTables, points: Ints) -> Ints:
    """Return the answer to each question, a row a question, of inputs that are one number."""
    return np.array(np.unravel_index(points, mechanism.sizes))


def tables_handler(collection: Collection) -> PairTablesHandler:
    """Return the handler of a collection of questions, or refuse any other."""
    return typed_handler(collection, PairTablesHandler, "it has no tables")
