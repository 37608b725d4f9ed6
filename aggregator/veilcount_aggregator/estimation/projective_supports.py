"""Counters of hyperplanes to supports of points, in integers."""

from __future__ import annotations

import numpy as np

from veilcount_shared.mechanisms import ProjectiveGeometry

from .confidence_intervals import Counts
from .projective_vectors import meets, vectors
from .singer_cycle import cycle

BLOCK = 1 << 18  # cells per block


def supports(
    mechanism: ProjectiveGeometry, counters: Counts, places: Counts | None = None
) -> Counts:
    """Return how many reported hyperplanes hold each input, or each of those at `places`."""
    if places is not None and _cheaper(counters, places):
        return _cell_by_cell(mechanism, counters, places)
    found = cycle(mechanism.q, mechanism.t).supports(counters)
    return found[: mechanism.k].copy() if places is None else found[places]  # frees the rest


def unused_supports(mechanism: ProjectiveGeometry, counters: Counts) -> Counts:
    """Return the supports of the points that are no input."""
    return cycle(mechanism.q, mechanism.t).supports(counters)[mechanism.k :]


def points_held(mechanism: ProjectiveGeometry, group: Counts) -> Counts:
    """Return for each message how many of a group of inputs its hyperplane holds.

    Point x lies on hyperplane u as point u lies on hyperplane x, so this decodes the group itself.
    """
    marked = np.zeros(mechanism.messages, np.int64)
    marked[group] = 1
    return cycle(mechanism.q, mechanism.t).supports(marked)


def _cheaper(counters: Counts, places: Counts) -> bool:
    """Whether few inputs of few messages are requested: below the work of a transform."""
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
