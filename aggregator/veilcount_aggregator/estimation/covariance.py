"""The worst correlation of two estimates of a population to which the same persons contribute.

Randomization is drawn anew for every report, so the noise of two estimates is independent. Their
sampling errors are not if persons contribute to both: of n_a and n_b reports at most min(n_a, n_b)
come in pairs, so the covariance of the estimates is at least -c / max(n_a, n_b), where -c is the
least covariance of one person's two answers. For shares Fréchet's inequality bounds c, since both
answers hold with probability at least f_a + f_b - 1 [Fre35]; for numbers that of Cauchy and Schwarz
does.
"""

from __future__ import annotations

import numpy as np

from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import MeanMechanism

from .confidence_intervals import Floats
from .estimator import Estimator, IntervalTarget
from .mean_levels import least_noise


def correlation_of_shares(one: Estimator, two: Estimator) -> Floats:
    """Return the largest correlation of one estimate with the negated other, value by value."""
    first, second = (np.clip(each.points, 0.0, 1.0) for each in (one, two))
    covariance = np.minimum(first * second, (1 - first) * (1 - second))
    return _correlation(covariance, one, two)


def correlation_of_figures(
    one: Estimator, two: Estimator, persons: tuple[Floats, Floats]
) -> Floats:
    """Return the same for figures among persons who differ by these variances."""
    return _correlation(np.sqrt(persons[0] * persons[1]), one, two)


def _correlation(covariance: Floats, one: Estimator, two: Estimator) -> Floats:
    errors = one.error(IntervalTarget.POPULATION) * two.error(IntervalTarget.POPULATION)
    tiny = np.finfo(np.float64).tiny
    return np.minimum(covariance / max(one.n, two.n) / np.maximum(errors, tiny), 1.0)


def persons_variance(evidence: Estimator) -> Floats:
    """Return the variance among persons: of a sample's error, the part that a cohort's has not."""
    sampled, noise = (evidence.error(target) ** 2 for target in IntervalTarget)
    return evidence.n * np.maximum(sampled - noise, 0.0)


def persons_variance_of_mean(
    mechanism: MeanMechanism, domain: Number, evidence: Estimator
) -> Floats:
    """Return the most that it can be for a mean, whose noise has the mechanism's least variance."""
    least = least_noise(mechanism) * float(domain.high - domain.low) ** 2
    return np.maximum(evidence.n * evidence.error(IntervalTarget.POPULATION) ** 2 - least, 0.0)
