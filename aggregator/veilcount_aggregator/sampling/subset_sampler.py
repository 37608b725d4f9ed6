"""Samples of many subsets: how many hold each input, and the subsets themselves.

The members of one subset are not independent, so neither are the supports: drawing each input's
count by itself would give the right means and the wrong covariances.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from veilcount_shared.mechanisms import SubsetSelection

from .mixture import Ints, Mixture, scattered


def mixture_of(mechanism: SubsetSelection) -> Mixture:
    """Return subsets as a mixture: their ratio of owned to all messages is w : k."""
    return Mixture(mechanism.P, mechanism.w, mechanism.k)


def supports(mechanism: SubsetSelection, held: Ints, generator: Generator) -> Ints:
    """Return how many of the reports hold each input, all inputs jointly."""
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
