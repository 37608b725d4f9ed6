"""Differences of two estimates: segments, ranges of periods, or series of one question.

The interval of a difference is put together from the two intervals, so it holds where they do, at
small counts too [New98]; p is one less the level at which it would touch 0, so the two never
disagree. Several values at once are a family, with Holm's adjusted p [Hol79]. With each difference
comes the smallest that would have been detected.

The two must not share reports. If the same persons may have answered in both, their answers may
agree or disagree more than chance would have them: for a population the caller states the worst
correlation of the two errors, which widens the interval as far as that takes [ZD08]. Randomization
is drawn anew for every report, so the noise of two estimates is independent. Of n_a and n_b reports
at most min(n_a, n_b) come in pairs, so the covariance of the estimates is at least
-c / max(n_a, n_b), where -c is the least covariance of one person's two answers. For shares
Fréchet's inequality bounds c, since both answers hold with probability at least f_a + f_b - 1
[Fre35]; for numbers that of Cauchy and Schwarz does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import MeanMechanism

from ..scipy_modules import special
from .confidence_intervals import Bools, Ends, Floats, quantile
from .confidence_sequences import AnytimeEstimator, LookCount, difference, p_of_difference
from .estimator import Estimator, IntervalTarget
from .mean_noise import least_noise
from .results import ESTIMANDS, MeanEstimate, ShareEstimates


def correlation_of_shares(one: Estimator, two: Estimator) -> Floats:
    """Return the largest correlation of one estimate with the negated other, value by value."""
    first, second = (np.clip(estimate.points, 0.0, 1.0) for estimate in (one, two))
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
    mechanism: MeanMechanism, domain: Number, evidence: Estimator, cover_noise: float = 0.0
) -> Floats:
    """Return the most that it can be for a mean, whose noise has the mechanism's least variance.

    `cover_noise` is n times the variance that covers add, which is nobody's.
    """
    least = least_noise(mechanism) * float(domain.high - domain.low) ** 2 + cover_noise
    return np.maximum(evidence.n * evidence.error(IntervalTarget.POPULATION) ** 2 - least, 0.0)


POWER_QUANTILE = 0.8416212335729143  # the normal's at 0.8: found in 4 of 5
STEPS = np.linspace(0, 8, 21)  # of z, between which the interval is taken as linear: p to 1e-15


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceEstimate:
    """First less second, value by value.

    `low` and `high` are each value's own interval, `p` its own, `holm` the family's; a difference
    of `detectable` would have been found, in the family, four times out of five.
    """

    difference: Floats
    low: Floats
    high: Floats
    p: Floats
    holm: Floats
    detectable: Floats
    level: float
    looks: LookCount
    family: int
    target: IntervalTarget
    percent: bool

    @property
    def estimand(self) -> str:
        """What the intervals estimate."""
        return ESTIMANDS[self.target]

    @property
    def differs(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which differences are significant in the family, at the level."""
        return self.holm <= 1 - self.level

    def sentence(self, place: int, label: str, first: str, second: str) -> str:
        """Return one value's row in words."""
        ends = f"{self._rendered(self.low[place])} to {self._rendered(self.high[place])}"
        seen = f"{label}: {first} less {second} is {self._rendered(self.difference[place])}"
        interval = f"{100 * self.level:.4g} % interval {ends}, {self.estimand}, {self.looks.valid}"
        detectable = self._rendered(self.detectable[place]).removeprefix("+")
        power_note = (
            f"a difference of {detectable} would have been found in 4 of 5 such comparisons"
        )
        if self.differs[place]:
            return f"{seen} ({interval}): a difference, p = {self._p(place)}."
        if self.low[place] <= 0 <= self.high[place]:
            return f"{seen} ({interval}): not significant, the interval includes 0; {power_note}."
        among = f"among {self.family} compared values such an interval can be chance"
        return f"{seen} ({interval}), but {among}, p = {self._p(place)}; {power_note}."

    def _rendered(self, number: float) -> str:
        return f"{100 * number:+.3g} points" if self.percent else f"{number:+.4g}"

    def _p(self, place: int) -> str:
        return f"{self.holm[place]:.2g}" if self.holm[place] > 1e-14 else "below 1e-14"  # noqa: PLR2004 - what a float resolves


def compare(
    first: ShareEstimates | MeanEstimate,
    second: ShareEstimates | MeanEstimate,
    *,
    correlation: Floats | None = None,
) -> DifferenceEstimate:
    """Return how the first differs from the second, at the first's level.

    `correlation` is the largest that the first's error may have with the negated second's; None:
    the two are independent.
    """
    if isinstance(first, ShareEstimates) != isinstance(second, ShareEstimates) or (
        isinstance(first, ShareEstimates)
        and isinstance(second, ShareEstimates)
        and not np.array_equal(first.places, second.places)
    ):
        raise ValueError("compare estimates of the same values")
    both = {first.terms.target, second.terms.target}
    target = (
        IntervalTarget.POPULATION if both == {IntervalTarget.POPULATION} else IntervalTarget.COHORT
    )
    one, two, alpha = first.evidence, second.evidence, 1 - first.level
    looks = first.terms.looks
    pair = EstimatePair(
        first.terms.at_looks(one), first.terms.at_looks(two), target, correlation, looks
    )
    low, high = pair.interval(alpha)
    p = _p(pair, alpha)
    family = max(one.families, two.families)
    return DifferenceEstimate(
        difference=one.points - two.points,
        low=low,
        high=high,
        p=p,
        holm=holm(p, family),
        detectable=pair.width(alpha / family) + POWER_QUANTILE * pair.error,
        level=first.level,
        looks=looks,
        family=family,
        target=target,
        percent=isinstance(first, ShareEstimates),
    )


def holm(p: Floats, family: int) -> Floats:
    """Return each p as Holm's procedure sees it: the i-th smallest times the figures left."""
    order = np.argsort(p, kind="stable")
    left = np.maximum(family - np.arange(len(p)), 1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * left), 1.0)
    return adjusted


@dataclass(frozen=True, slots=True, eq=False)
class EstimatePair:
    """Two estimates of the same figures, and the worst correlation of their errors; None: none."""

    one: Estimator
    two: Estimator
    target: IntervalTarget
    correlation: Floats | None
    looks: LookCount

    @property
    def difference(self) -> Floats:
        """First less second."""
        return self.one.points - self.two.points

    @property
    def error(self) -> Floats:
        """The standard error of the difference."""
        return self._joined(self.one.error(self.target), self.two.error(self.target))

    @property
    def joint(self) -> tuple[AnytimeEstimator, AnytimeEstimator] | None:
        """Two independent confidence sequences; None: something else."""
        one, two = self.one, self.two
        if not (isinstance(one, AnytimeEstimator) and isinstance(two, AnytimeEstimator)):
            return None
        return (one, two) if self.correlation is None and one.single and two.single else None

    def width(self, alpha: float) -> Floats:
        """Return half the width of an interval where nothing differs."""
        if self.looks is LookCount.ONE:
            return quantile(alpha) * self.error
        low, high = self.interval(alpha)
        return (high - low) / 2

    def few(self, alpha: float) -> Bools:
        """Return whether either's counts are too small for the normal."""
        return self.one.few(alpha, self.target) | self.two.few(alpha, self.target)

    def interval(self, alpha: float) -> Ends:
        """Return the difference's interval from the distances of both figures to their ends.

        Where counts are small the distances are no normal's, nor are those for every look: what is
        possible within the two intervals, each with half the error probability, is the
        difference's, whatever the correlation.
        """
        few = self.few(alpha)
        if few.all():
            return self._possible(alpha)
        (low_one, high_one), (low_two, high_two) = self._ends(alpha)
        points_one, points_two = self.one.points, self.two.points
        low = self.difference - self._joined(points_one - low_one, high_two - points_two)
        high = self.difference + self._joined(high_one - points_one, points_two - low_two)
        if few.any():
            least, most = self._possible(alpha)
            low, high = np.where(few, least, low), np.where(few, most, high)
        return low, high

    def _possible(self, alpha: float) -> Ends:
        if self.joint is not None:
            return difference(*self.joint, alpha, self.target)
        (low_one, high_one), (low_two, high_two) = self._ends(alpha / 2)
        return low_one - high_two, high_one - low_two

    def _ends(self, alpha: float) -> tuple[Ends, Ends]:
        return self.one.interval(alpha, self.target), self.two.interval(alpha, self.target)

    def _joined(self, one: Floats, two: Floats) -> Floats:
        """Return the length of the sum of two errors with this correlation."""
        return np.sqrt(
            one**2
            + two**2
            + 2 * one * two * (0.0 if self.correlation is None else self.correlation)
        )


def _p(pair: EstimatePair, alpha: float) -> Floats:
    """Return for each row the error probability at which its interval touches 0.

    Between two steps the interval is taken as linear; where counts are small it may jump, and p is
    that of the step before.
    """
    if pair.joint is not None:
        return p_of_difference(*pair.joint, alpha, pair.target)
    steps = np.sort(np.append(STEPS, quantile(alpha)))
    difference, rows = pair.difference, np.arange(len(pair.difference))
    gaps, few = [], []  # from 0 to the near end, below 0 if the interval holds 0
    for z in steps:
        chance = 2 * float(special.ndtr(-z))
        low, high = pair.interval(chance)
        gaps.append(np.where(difference > 0, low, -high))
        few.append(pair.few(chance) & (pair.looks is LookCount.ONE))
        if (gaps[-1] <= 0).all():
            break
    narrowing = np.minimum.accumulate(np.array(gaps), axis=0)
    last = np.maximum((narrowing > 0).sum(axis=0) - 1, 0)
    after = np.minimum(last + 1, len(gaps) - 1)
    jumps = np.array(few)[after, rows]
    touched = [np.interp(0, -column, steps[: len(gaps)]) for column in narrowing.T]
    return np.asarray(2 * special.ndtr(-np.where(jumps, steps[last], touched)))
