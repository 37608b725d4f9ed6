"""Whether anything differs between two independent sides: one test of all their values at once.

Wald's test of the differences of all shares but the last, which the others determine, with their
covariance at the shares that both sides have together. Of a subset's members any two are supported
together with one of two probabilities, so this covariance has a formula; a naive chi-squared test
of debiased counts takes randomization for a difference.
"""

from __future__ import annotations

import numpy as np

from veilcount_shared.mechanisms import SubsetSelection

from ..scipy_modules import special
from .confidence_intervals import Floats
from .covered_supports import CoveredSupports, DilutedSupports
from .estimator import IntervalTarget
from .proportions import SupportCounts

MOST_VALUES = 300  # of more, the matrix of all pairs costs more than the answer is worth


def p_of_any(one: SupportCounts, two: SupportCounts, covariance: Floats) -> float:
    """Return the probability of differences as large as these where nothing differs.

    `covariance` is that of the differences of all shares.
    """
    difference = (one.points - two.points)[:-1]
    distance = difference @ np.linalg.solve(covariance[:-1, :-1], difference)
    return float(special.chdtrc(len(difference), distance))


def pooled(one: SupportCounts, two: SupportCounts) -> Floats:
    """Return the shares of both sides together: none negative, together 1."""
    shares = np.maximum(one.n * one.points + two.n * two.points, 0.0)
    composition: Floats = shares / shares.sum()
    return composition


def share_covariance(
    mechanism: SubsetSelection, evidence: SupportCounts, shares: Floats, target: IntervalTarget
) -> Floats:
    """Return the covariance of the estimated shares of all values, if these are the true ones."""
    k, w, n, gap = mechanism.k, mechanism.w, evidence.n, evidence.response.gap
    own, others = pair_supports(mechanism)
    together = others + (shares[:, np.newaxis] + shares) * (own - others)
    even = w * (w - 1) / (k * max(k - 1, 1))  # of a cover any two inputs are as likely
    if isinstance(evidence, DilutedSupports):
        together = evidence.part * together + (1 - evidence.part) * even
    covariance = _covariance(evidence.response.Q + gap * shares, together) / n
    if not target.sampled:
        covariance -= gap**2 * (np.diag(shares) - np.outer(shares, shares)) / n
    if isinstance(evidence, CoveredSupports):
        covariance += _covariance(np.full(k, w / k), np.full((k, k), even)) * evidence.covers / n**2
    return covariance / gap**2


def pair_supports(mechanism: SubsetSelection) -> tuple[float, float]:
    """Return how likely two inputs are both supported: one of them the reporter's own, or neither.

    A subset that has its own input draws w - 1 of the k - 1 others, any other draws w of them.
    """
    k, w, P = mechanism.k, mechanism.w, mechanism.P
    if w == 1:
        return 0.0, 0.0
    own = P * (w - 1) / (k - 1)
    return float(own), float((own * (w - 2) + (1 - P) * w * (w - 1) / (k - 1)) / (k - 2))


def _covariance(means: Floats, together: Floats) -> Floats:
    """Return the covariance of indicators with these means, pairs of which are 1 together."""
    second = together.copy()
    np.fill_diagonal(second, means)
    covariance: Floats = second - np.outer(means, means)
    return covariance
