"""Subset selection on the server: a report adds to the counters of its subset's members."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from veilcount_shared.composition import Overlap
from veilcount_shared.mechanisms import SubsetSelection

from ..estimation.confidence_intervals import Counts, Floats
from ..estimation.covered_supports import CoveredSupports
from ..estimation.estimator import Estimator, IntervalTarget
from ..estimation.joint_difference import MOST_VALUES, pair_supports, share_covariance
from ..estimation.proportions import GroupSums, SupportCounts
from ..estimation.response_distribution import group_of_cover, group_response
from ..series.packed_rows import Counters, Packed
from .handler import Flags, ShareHandler, handles
from .sampling import Ints, Mixture, chunks, scattered

BLOCK = 1 << 20  # bytes of messages that are expanded to bits together
MAX_SYMBOL_BITS = 24  # the widest symbols that an audit counts


@handles(SubsetSelection)
class SubsetSelectionHandler(ShareHandler[SubsetSelection]):
    """Of one member, k-ary randomized response; of more, masks or packed members."""

    def describe(self) -> str:
        w = self.mechanism.w
        return f"subset: {w} value{'s' * (w > 1)} of {self.mechanism.k}"

    # -- reports become counters -------------------------------------------------------------------

    @property
    def counters_per_report(self) -> int:
        return self.mechanism.w

    @property
    def symbol_bits(self) -> tuple[int, ...]:
        m = self.mechanism
        packed = m.w > 1 and not m.masked and m.label_bits <= MAX_SYMBOL_BITS
        return (1, 8, m.label_bits) if packed else (1, 8)

    @property
    def message_supports(self) -> Callable[[int, int], bool] | None:
        """Whether an input is a member: of one member, the message itself says it."""
        if self.mechanism.w == 1:
            return None
        return lambda message, x: x in self.mechanism.members(message)

    def valid_rows(self, rows: Packed) -> Flags:
        """Return which rows are w-subsets, in their one encoding."""
        if self.mechanism.w == 1:
            return super().valid_rows(rows)
        return self._valid_masks(rows) if self.mechanism.masked else self._valid_members(rows)

    def _valid_masks(self, rows: Packed) -> Flags:
        """Exactly w bits, none of them beyond the k-th."""
        bits = np.unpackbits(rows, axis=1)
        unused = bits.shape[1] - self.mechanism.bits
        fits: Flags = (bits.sum(axis=1) == self.mechanism.w) & ~bits[:, :unused].any(axis=1)
        return fits

    def _valid_members(self, rows: Packed) -> Flags:
        """Ascending members below k, the smallest in the lowest bits, nothing beyond them."""
        m = self.mechanism
        bits = np.unpackbits(rows[:, ::-1], axis=1, bitorder="little")
        labels = bits[:, : m.bits].reshape(len(rows), m.w, m.label_bits)
        members = labels @ (1 << np.arange(m.label_bits))
        ascending = (np.diff(members, axis=1) > 0).all(axis=1)
        fits: Flags = ascending & (members[:, -1] < m.k) & ~bits[:, m.bits :].any(axis=1)
        return fits

    def tally(self, rows: Packed) -> Counters:
        if self.mechanism.w == 1:
            return super().tally(rows)
        total = np.zeros(self.mechanism.counters, np.int64)
        step = max(1, BLOCK // rows.shape[1])
        for first in range(0, len(rows), step):
            total += self._members_counted(rows[first : first + step])
        return total

    def _members_counted(self, rows: Packed) -> Counters:
        m = self.mechanism
        bits = np.unpackbits(rows[:, ::-1], axis=1, count=m.bits, bitorder="little")
        if m.masked:
            counted: Counters = bits.sum(axis=0, dtype=np.int64)
            return counted
        labels = bits.reshape(-1, m.label_bits)
        weights = 1 << np.arange(m.label_bits, dtype=np.int32)  # an input is below 2^20
        return np.bincount(labels @ weights, minlength=m.k).astype(np.int64)

    def increments(self, rows: Packed) -> tuple[list[int], list[int]]:
        """Return what messages add to which counters; one message adds to many of few."""
        if self.mechanism.w == 1:
            return super().increments(rows)
        counters = self.tally(rows)
        places = np.flatnonzero(counters)
        return places.tolist(), counters[places].tolist()

    # -- estimates ---------------------------------------------------------------------------------

    def supports(self, counters: Counts, places: Counts | None = None) -> Counts:
        return counters if places is None else counters[places]

    def group_sums(self, counters: Counts, groups: Sequence[Counts], covers: int = 0) -> Estimator:
        return GroupSums(tuple(self._group_sum(counters, group, covers) for group in groups))

    def _group_sum(self, counters: Counts, group: Counts, covers: int) -> SupportCounts:
        m, count, n = self.mechanism, counters[group].sum(keepdims=True), len(group)
        persons, response = self.report_count(counters) - covers, group_response(m, n)
        if not covers:
            return SupportCounts(persons, count, response, 1)
        return CoveredSupports(persons, count, response, 1, covers, *group_of_cover(m, n))

    def joint_support(self, counters: Counts, whole: Counts) -> Floats:
        """Return the expected joint supports: counters of subsets keep no pairs.

        Any two inputs are supported together with one of two probabilities, depending on whether
        one of them is the reporter's own.
        """
        marked = np.zeros(self.mechanism.k)
        marked[whole] = 1
        mean = counters / self.report_count(counters)
        with_own, without = pair_supports(self.mechanism)
        share = self.response.share(mean)
        others = len(whole) - marked
        own = others * share + float(share @ marked) - share * marked
        return marked * mean + without * others + (with_own - without) * own

    def share_covariance(
        self, evidence: SupportCounts, shares: Floats, target: IntervalTarget
    ) -> Floats | None:
        if self.mechanism.k > MOST_VALUES:
            return None
        return share_covariance(self.mechanism, evidence, shares, target)

    def incidence(self) -> Floats:
        """Return which messages of one member each input owns: its own."""
        return np.eye(self.mechanism.k)

    def overlaps(self) -> tuple[Overlap, ...]:
        """Return the overlap of any two inputs: all are alike."""
        k, w = self.mechanism.k, self.mechanism.w
        return (Overlap(Fraction(w, k), Fraction(w * (k - w), k * (k - 1)), self.mechanism.P),)

    # -- simulated devices -------------------------------------------------------------------------

    @property
    def mixture(self) -> Mixture:
        """Subsets as a mixture: an input owns w of k."""
        return mixture_of(self.mechanism)

    def draw_messages(self, inputs: Ints, generator: Generator) -> Ints:
        """Return the messages of subsets of one member."""
        return self.mixture.draw(inputs, lambda own: own, generator)

    def draw_rows(self, inputs: Ints, generator: Generator) -> Packed:
        """Return subsets in their one encoding: a mask, or ascending members from the low bits."""
        m = self.mechanism
        if m.w == 1:
            return super().draw_rows(inputs, generator)
        drawn = members(m, inputs, generator)
        bits = np.zeros((len(inputs), 8 * -(-m.bits // 8)), np.uint8)
        if m.masked:
            np.put_along_axis(bits, drawn.T, 1, axis=1)
        else:
            labels = np.sort(drawn, axis=0).T[:, :, np.newaxis]
            digits = labels >> np.arange(m.label_bits) & 1
            bits[:, : m.bits] = digits.reshape(len(inputs), m.bits)
        return np.packbits(bits, axis=1, bitorder="little")[:, ::-1]

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
        """Return all counters jointly; of fewer devices than inputs, device by device."""
        m = self.mechanism
        if m.w == 1 or held.sum() >= m.k:
            return supports(m, held, generator)
        inputs = np.repeat(np.arange(m.k), held)
        total = np.zeros(m.counters, np.int64)
        for part in chunks(len(inputs)):
            total += self.tally(self.draw_rows(inputs[part], generator))
        return total


def mixture_of(mechanism: SubsetSelection) -> Mixture:
    """Return subsets as a mixture: their ratio of owned to all messages is w : k."""
    return Mixture(mechanism.P, mechanism.w, mechanism.k)


def supports(mechanism: SubsetSelection, held: Ints, generator: Generator) -> Ints:
    """Return how many of the reports hold each input, all inputs jointly.

    The members of one subset are not independent, so neither are the supports: drawing each input's
    count by itself would give the right means and the wrong covariances.
    """
    informative = mixture_of(mechanism).informative_counts(held, generator)
    uninformative = int((held - informative).sum())
    if mechanism.w == 1:
        others: Ints = scattered(np.array([uninformative]), mechanism.k, generator)[0]
        return informative + others
    return _walked(mechanism, informative, uninformative, generator)


def _walked(
    mechanism: SubsetSelection, informative: Ints, uninformative: int, generator: Generator
) -> Ints:
    """Walk through the inputs, keeping only how many reports still want how many members.

    A report that wants j of the `left` inputs from here on takes this one with probability
    j / left, whoever sent it; so the numbers of reports that want j, for each j, are all one has
    to know of the past. An informative report has its own input for certain and wants w-1 others;
    until its input comes it chooses among one less, alike for every later input. Which reports have
    this input as their own is therefore a uniform choice among those whose input has not come.
    """
    k, w = mechanism.k, mechanism.w
    wants = np.arange(w + 1)
    free, waiting = np.zeros((2, w + 1), np.int64)
    free[w], waiting[w - 1] = uninformative, informative.sum()
    counts = informative.copy()
    for x in range(k):
        left = k - x
        own = generator.multivariate_hypergeometric(waiting, informative[x], method="marginals")
        waiting -= own
        took = generator.binomial(free, np.minimum(wants / left, 1))
        wait = generator.binomial(waiting, np.minimum(wants / max(left - 1, 1), 1))
        counts[x] += took.sum() + wait.sum()
        free += own + _fewer(took)
        waiting += _fewer(wait)
    return counts


def _fewer(took: Ints) -> Ints:
    """Return the change when these reports want one member less each."""
    return np.append(took[1:], 0) - took


def members(mechanism: SubsetSelection, x: Ints, generator: Generator) -> Ints:
    """Return a subset for each device, a column of its w members in any order."""
    informative = mixture_of(mechanism).informative_flags(len(x), generator)
    drawn = np.empty((mechanism.w, len(x)), np.int64)
    own = x[informative]
    others = _sample(mechanism.k - 1, mechanism.w - 1, len(own), generator)
    drawn[0, informative] = own
    drawn[1:, informative] = others + (others >= own)
    drawn[:, ~informative] = _sample(mechanism.k, mechanism.w, len(x) - len(own), generator)
    return drawn


def _sample(n: int, size: int, times: int, generator: Generator) -> Ints:
    """Return uniform subsets of 0..n-1, a column each, by Floyd's algorithm [BF87]."""
    drawn = np.empty((size, times), np.int64)
    for place, top in enumerate(range(n - size, n)):
        member = generator.integers(top + 1, size=times)
        taken = (drawn[:place] == member).any(axis=0)
        drawn[place] = np.where(taken, top, member)
    return drawn
