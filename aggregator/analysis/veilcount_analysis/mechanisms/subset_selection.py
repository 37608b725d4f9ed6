"""Subset selection on the server: one element of a subset may be the input."""

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
from ..series.packed_rows import Counters
from .handler import GroupHandler, handles
from .sampling import Ints, Mixture, scattered
from .subset_messages import SubsetMessagesHandler


@handles(SubsetSelection)
class SubsetSelectionHandler(SubsetMessagesHandler[SubsetSelection], GroupHandler[SubsetSelection]):
    """Of one member, k-ary randomized response."""

    def describe(self) -> str:
        w = self.mechanism.w
        return f"subset: {w} value{'s' * (w > 1)} of {self.mechanism.k}"

    @property
    def message_supports(self) -> Callable[[int, int], bool] | None:
        """Whether an input is a member: of one member, the message itself says it."""
        if self.mechanism.w == 1:
            return None
        return lambda message, x: x in self.mechanism.members(message)

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

    @property
    def pair_supports(self) -> tuple[float, float]:
        return pair_supports(self.mechanism)

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

    def draw_members(self, inputs: Ints, generator: Generator) -> Ints:
        return members(self.mechanism, inputs, generator)

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
        """Return all counters jointly; of fewer devices than inputs, device by device."""
        m = self.mechanism
        if m.w == 1 or held.sum() >= m.k:
            return supports(m, held, generator)
        return super().draw_counters(held, generator)


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
