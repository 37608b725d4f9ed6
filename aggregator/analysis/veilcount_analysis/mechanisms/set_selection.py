"""Set selection on the server: counters of subsets, whose own elements are several."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb

import numpy as np
from numpy.random import Generator

from veilcount_shared.composition import Overlap
from veilcount_shared.mechanisms import SetSelection

from ..estimation.confidence_intervals import Counts, Floats
from .handler import handles
from .sampling import Flags, Ints, Mixture, ticked
from .subset_messages import SubsetMessagesHandler


@handles(SetSelection)
class SetSelectionHandler(SubsetMessagesHandler[SetSelection]):
    """The counters of the fillers are read by nobody."""

    def describe(self) -> str:
        m = self.mechanism
        return f"set: {m.w} of {m.k} values and {m.most} fillers, for at most {m.most} ticks"

    @property
    def message_supports(self) -> Callable[[int, int], bool] | None:
        """Whether a message meets a padded set."""
        m = self.mechanism
        return lambda message, x: not set(m.padded(x)).isdisjoint(m.members(message))

    # -- estimates ---------------------------------------------------------------------------------

    def supports(self, counters: Counts, places: Counts | None = None) -> Counts:
        return counters[: self.mechanism.k] if places is None else counters[places]

    @property
    def pair_supports(self) -> tuple[float, float]:
        """The probabilities that two values are supported, of which one is ticked, or neither."""
        m, meets = self.mechanism, self.mixture.P / self.mechanism.owned
        if m.w == 1:
            return 0.0, 0.0
        both, missing = comb(m.ground - 2, m.w - 2), comb(m.k - 2, m.w - 2)
        misses = (1 - self.mixture.P) / (m.messages - m.owned)
        return float(meets * both), float(meets * (both - missing) + misses * missing)

    def noise_variance(self) -> float:
        """Return n times the variance of the share of a value that nobody ticks.

        Shares do not add up to 1, so an average over all values would depend on them.
        """
        q = self.mechanism.Q
        return float(q * (1 - q) / (self.mechanism.P - q) ** 2)

    def overlaps(self) -> tuple[Overlap, ...]:
        """Return the overlap of two sets without a common element: any others have more of it."""
        m = self.mechanism
        alone = comb(m.k, m.w) - comb(max(m.k - m.most, 0), m.w)
        own = Fraction(m.owned, m.messages)
        return (Overlap(own, Fraction(alone, m.messages), self.mixture.P),)

    # -- simulated devices -------------------------------------------------------------------------

    @property
    def mixture(self) -> Mixture:
        """Sets as a mixture of the messages that meet them, and all."""
        m = self.mechanism
        inside = m.P * m.owned / comb(m.ground - 1, m.w - 1)
        return Mixture(inside, m.owned, m.messages)

    def draw_members(self, inputs: Ints, generator: Generator) -> Ints:
        """Return a subset for each mask, a column of its w members in any order."""
        m = self.mechanism
        ticks = ticked(inputs, m.k)
        fillers = np.arange(m.most) < m.most - ticks.sum(axis=1, keepdims=True)
        own = np.concatenate([ticks, fillers], axis=1)
        meets = generator.random(len(inputs)) < float(self.mixture.P)
        sizes = np.arange(1, min(m.most, m.w) + 1)
        ways = np.array([comb(m.most, j) * comb(m.k, m.w - j) / m.owned for j in sizes.tolist()])
        hits = np.where(meets, generator.choice(sizes, len(inputs), p=ways / ways.sum()), 0)
        order = generator.random(own.shape)
        chosen = _first(order, own, hits) | _first(order, ~own, m.w - hits)
        members: Ints = np.nonzero(chosen)[1].reshape(-1, m.w).T
        return members

    def draw_messages(self, inputs: Ints, generator: Generator) -> Ints:
        """Return the messages of subsets of one member."""
        messages: Ints = self.draw_members(inputs, generator)[0]
        return messages


def _first(order: Floats, among: Flags, sizes: Ints) -> Flags:
    """Return in each row the first elements of some by their order, so many of them."""
    ranks = np.where(among, order, 2.0).argsort(axis=1).argsort(axis=1)
    return among & (ranks < sizes[:, np.newaxis])
