"""Whether a mean lies between two groups of numbers, where few are.

It is seen where fewer numbers surely lie in the mean's part of the range than in a part on each
side of it. Of one group, whose shares rise and then fall, no part has both: with a band that covers
all edges at once, as that of ranges, it is seen there no more often than the band fails. The band
of a histogram by EM covers one edge at a time; a part's interval adds those of both its edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..text.number_format import significant
from .headline import in_unit
from .results import Figure

PARTS = 8  # of the range, whose shares are compared
DIGITS = 2  # of a group's place


def equal_parts(figures: Sequence[Figure]) -> list[Figure]:
    """Return the shares of the parts of a range; nothing without a curve.

    A share's interval follows from the band of the curve: its range at the part's end minus its
    range at the part's start.
    """
    heights = [figure.figure for figure in figures if figure.kind == "bucket"]
    if not heights:
        return []
    step = len(heights) // PARTS
    shares = np.array(heights).reshape(PARTS, step).sum(axis=1).tolist()
    edges = [figure for figure in figures if figure.kind == "curve"][::step]
    return [_part(*ends, share) for ends, share in zip(pairwise(edges), shares, strict=True)]


def _part(start: Figure, end: Figure, share: float) -> Figure:
    low, high = (end.low or 0.0) - (start.high or 0.0), (end.high or 0.0) - (start.low or 0.0)
    of = {"from": start.at or 0.0, "below": end.at or 0.0}
    return Figure("part", of, share, max(low, 0), min(high, 1))


def two_groups(figures: Sequence[Figure], mean: float | None, unit: str | None) -> str:
    """Return where the groups on both sides of a mean are; empty: they are not seen."""
    parts = equal_parts(figures)
    if mean is None or not parts or not _is_between(parts, mean):
        return ""
    low, high = (in_unit(significant(place, DIGITS), unit) for place in _medians(figures, mean))
    return f"few are near it: two groups, around {low} and around {high}"


def _is_between(parts: Sequence[Figure], mean: float) -> bool:
    starts = [start for part in parts if isinstance(part.of, dict) for start in [part.of["from"]]]
    place = max(int(np.searchsorted(starts, mean, side="right")) - 1, 0)
    most = parts[place].interval[1]
    return all(
        any(part.interval[0] > most for part in side)
        for side in (parts[:place], parts[place + 1 :])
    )


def _medians(figures: Sequence[Figure], mean: float) -> tuple[float, float]:
    """Return the medians of the numbers below the mean, and of those above it."""
    curve = [figure for figure in figures if figure.kind == "curve"]
    edges = np.array([figure.at for figure in curve], float)
    shares = np.array([figure.figure for figure in curve], float)
    below = float(np.interp(mean, edges, shares))
    low, high = np.interp((below / 2, (1 + below) / 2), shares, edges)
    return float(low), float(high)
