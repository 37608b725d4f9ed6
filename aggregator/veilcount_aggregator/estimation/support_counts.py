"""Counters to supports: how many reports support each input, in integers."""

from __future__ import annotations

import numpy as np

from veilcount_shared.mechanisms import ProjectiveGeometry, SubsetSelection

from .confidence_intervals import Counts, Floats
from .projective_vectors import meets, vectors
from .response_distribution import ResponseDistribution
from .singer_cycle import cycle

BLOCK = 1 << 18  # cells looked at together

Shares = SubsetSelection | ProjectiveGeometry


def answers(mechanism: Shares, counters: Counts) -> int:
    """Return how many reports the counters count."""
    total = int(counters.sum())
    return total // mechanism.w if isinstance(mechanism, SubsetSelection) else total


def supports(mechanism: Shares, counters: Counts, places: Counts | None = None) -> Counts:
    """Return the supports of all inputs in their order, or of those asked for."""
    if isinstance(mechanism, SubsetSelection):
        return counters if places is None else counters[places]
    if places is not None and _cheaper(counters, places):
        return _cell_by_cell(mechanism, counters, places)
    found = cycle(mechanism.q, mechanism.t).supports(counters)
    return found[: mechanism.k].copy() if places is None else found[places]  # lets go of the rest


def padded(mechanism: ProjectiveGeometry, counters: Counts) -> Counts:
    """Return the supports of the points that are no input."""
    return cycle(mechanism.q, mechanism.t).supports(counters)[mechanism.k :]


def held(mechanism: ProjectiveGeometry, group: Counts) -> Counts:
    """Return for each message how many of a group of inputs its hyperplane holds.

    Point x lies on hyperplane u as point u lies on hyperplane x, so this decodes the group itself.
    """
    marked = np.zeros(mechanism.messages, np.int64)
    marked[group] = 1
    return cycle(mechanism.q, mechanism.t).supports(marked)


def joint(mechanism: Shares, counters: Counts, whole: Counts) -> Floats:
    """Return for each input the mean over the reports of [it is held] times how many of `whole`.

    A plane's messages tell this themselves. A subset's counters do not; there any two inputs are
    held together with one of two probabilities, by whether one of them is the answer.
    """
    n = answers(mechanism, counters)
    if isinstance(mechanism, ProjectiveGeometry):
        return supports(mechanism, counters * held(mechanism, whole)) / n
    marked = np.zeros(mechanism.k)
    marked[whole] = 1
    mean = counters / n
    if mechanism.w == 1:
        return mean * marked
    k, w, P = mechanism.k, mechanism.w, mechanism.P
    with_answer = P * (w - 1) / (k - 1)
    without = (with_answer * (w - 2) + (1 - P) * w * (w - 1) / (k - 1)) / (k - 2)
    share = ResponseDistribution.of(mechanism).share(mean)
    others = len(whole) - marked
    answered = others * share + float(share @ marked) - share * marked
    return marked * mean + float(without) * others + float(with_answer - without) * answered


def _cheaper(counters: Counts, places: Counts) -> bool:
    """Whether few inputs of few messages are asked for: below the work of a transform."""
    return len(places) * int(np.count_nonzero(counters)) < 4 * len(counters)


def _cell_by_cell(mechanism: ProjectiveGeometry, counters: Counts, places: Counts) -> Counts:
    found = np.zeros(len(places), np.int64)
    cells = np.flatnonzero(counters)
    for first in range(0, len(cells), BLOCK):
        block = cells[first : first + BLOCK]
        hyperplanes = vectors(mechanism.q, mechanism.t, block)
        for row, x in enumerate(places):
            found[row] += counters[block][meets(mechanism, hyperplanes, int(x))].sum()
    return found
