"""Whether a mean lies between two groups of numbers, where few are.

It is seen where fewer numbers surely lie around the mean than in a window of the same width on each
side of it. Of one group, whose density rises and then falls, that is so nowhere: with a band that
covers all edges at once, as that of ranges, it is seen there no more often than the band fails. The
band of a histogram by EM covers one edge at a time; a window's interval adds those of both edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..text.number_format import in_unit, significant
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
    curve = [figure for figure in figures if figure.kind == "curve" and figure.figure is not None]
    if mean is None or not curve or not _is_between(curve, mean):
        return ""
    low, high = (in_unit(significant(place, DIGITS), unit) for place in _medians(curve, mean))
    return f"few are near it: two groups, around {low} and around {high}"


def _is_between(curve: Sequence[Figure], mean: float) -> bool:
    """Whether windows on both sides of the mean's surely hold more numbers than that."""
    lows, highs = np.array([figure.interval for figure in curve]).T
    edges = np.array([figure.at for figure in curve], float)
    width = (len(curve) - 1) // PARTS
    least, most = lows[width:] - highs[:-width], highs[width:] - lows[:-width]
    middle = int(np.searchsorted(edges, mean)) - width // 2
    start = min(max(middle, 0), len(most) - 1)
    sides = least[: max(start - width, 0) + 1], least[start + width :]
    return all(len(side) and side.max() > most[start] for side in sides)


def _medians(curve: Sequence[Figure], mean: float) -> tuple[float, float]:
    """Return the medians of the numbers below the mean, and of those above it."""
    edges = np.array([figure.at for figure in curve], float)
    shares = np.array([figure.figure for figure in curve], float)
    below = float(np.interp(mean, edges, shares))
    low, high = np.interp((below / 2, (1 + below) / 2), shares, edges)
    return float(low), float(high)
