"""Differences of two estimates: segments, ranges of periods, or series of one question.

The interval of a difference is put together from the two intervals, so it holds where they do, at
small counts too [New98]; p is the error probability at which it would touch 0, so the two never
disagree. Several values at once are a family, with Holm's adjusted p [Hol79]. With each difference
comes the smallest that this very test would have detected.

The two must not share reports. If the same persons may have answered in both, their answers may
agree or disagree more than chance would have them: for a population the caller states the worst
correlation of the two errors, which widens the interval as far as that takes [ZD08]. Randomization
is drawn anew for every report, so the noise of two estimates is independent. Of n_a and n_b reports
at most min(n_a, n_b) come in pairs, so the covariance of the estimates is at least
-c / max(n_a, n_b), where -c is the least covariance of one person's two answers. For shares
Fréchet's inequality bounds c, since both answers hold with probability at least f_a + f_b - 1
[Fre35]; for numbers that of Cauchy and Schwarz does.

The smallest difference that a comparison would have detected in four of five.

Of shares it is worked out at the counts that are expected: a value's share among all, moved apart
in either direction until the near end of the interval is as far from 0 as the power asks for.
The test is the interval's own, so what is promised is what is found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import MeanMechanism

from ..text.difference_words import direction, ends, would_have_been_seen
from ..text.number_format import in_unit
from .confidence_intervals import Alpha, Counts, Ends, Floats, quantile, score
from .confidence_sequences import LookCount
from .estimate_pair import EstimatePair
from .estimator import Estimator, IntervalTarget
from .mean_noise import least_noise
from .proportions import SupportCounts
from .results import ESTIMANDS, MeanEstimate, ShareEstimates
from .roots import last_positive

POWER_QUANTILE = 0.8416212335729143  # the normal's at POWER


def detectable(pair: EstimatePair, alpha: float) -> Floats:
    """Return each figure's, by a test at this error probability; infinite: no share has it."""
    one, two = pair.one, pair.two
    if isinstance(one, SupportCounts) and isinstance(two, SupportCounts):
        return _of_shares(pair, one, two, alpha)
    low, high = pair.interval(alpha)
    difference = pair.difference
    if pair.looks is LookCount.ONE:
        half = np.maximum(difference - low, high - difference)
    else:
        half = (high - low) / 2
    return half + POWER_QUANTILE * pair.error


def _of_shares(pair: EstimatePair, one: SupportCounts, two: SupportCounts, alpha: float) -> Floats:
    n = one.n + two.n
    common = np.clip((one.n * one.points + two.n * two.points) / n, 0.0, 1.0)
    signs = np.repeat([1.0, -1.0], len(common))
    middle = np.tile(common, 2)
    rho = None if pair.correlation is None else np.tile(pair.correlation, 2)
    both = replace(pair, correlation=rho)

    def lacking(size: Floats) -> Floats:
        """Return how much nearer to 0 the interval's near end lies than it must."""
        least, most = np.maximum(signs * size, 0.0), 1 + np.minimum(signs * size, 0.0)
        first = np.clip(middle + signs * size * two.n / n, least, most)
        second = first - signs * size
        low_one, high_one = _expected(one, first, alpha, pair.target)
        low_two, high_two = _expected(two, second, alpha, pair.target)
        near = both.joined(
            np.where(signs > 0, first - low_one, high_one - first),
            np.where(signs > 0, high_two - second, second - low_two),
        )
        error = both.joined(_error(one, first, pair.target), _error(two, second, pair.target))
        lack: Floats = near + POWER_QUANTILE * error - size
        return lack

    zero, whole = np.zeros_like(middle), np.ones_like(middle)
    values = lacking(zero), lacking(whole)
    never = values[1] > 0
    size = last_positive(lacking, zero, np.where(never, zero, whole), values)
    larger: Floats = np.where(never, np.inf, size).reshape(2, -1).max(axis=0)
    return larger


def _error(evidence: SupportCounts, shares: Floats, target: IntervalTarget) -> Floats:
    return np.sqrt(evidence.noise.variance(shares, sampled=target.sampled) / evidence.n)


def _expected(
    evidence: SupportCounts, shares: Floats, alpha: Alpha, target: IntervalTarget
) -> Ends:
    """Return the ends at the counts expected of these shares.

    Exact ends of a cohort, or among covers, take seconds: there the normal's are taken.
    """
    if target.sampled and type(evidence) is SupportCounts:
        counts = evidence.n * (evidence.response.Q + evidence.response.gap * shares)
        expected = cast("Counts", counts)  # fractions, which no exact interval minds
        return replace(evidence, counts=expected).interval(alpha, target)
    z, sampled = quantile(alpha), target.sampled
    return score(shares, evidence.n, evidence.noise, z, sampled=sampled)


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


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceEstimate:
    """First less second, value by value.

    `low` and `high` are each value's own interval, `p` its own, `holm` the family's; a difference
    of `detectable` would have been found, in the family, four times out of five; infinite: none.
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

    def sentence(
        self, place: int, label: str, first: str, second: str, unit: str | None = None
    ) -> str:
        """Return one value's row in words; a mean's with its unit, if there is one."""
        low, high = float(self.low[place]), float(self.high[place])
        interval = f"{100 * self.level:.4g} % interval, {self.estimand}, {self.looks.valid}"
        size = float(self.detectable[place])
        power_note = would_have_been_seen(size, of_shares=self.percent, unit=unit)
        if low <= 0 <= high:
            range_ = in_unit(ends(low, high, of_shares=self.percent), unit)
            less = f"{first} less {second} is {range_}"
            return f"{label}: no difference seen; {power_note}. {less} ({interval})."
        amount = direction(low, high, of_shares=self.percent, unit=unit)
        higher = f"{label}: {first} is {amount}"
        seen = f"{higher} than {second} ({interval})"
        if self.differs[place]:
            return f"{seen}: a difference, p = {self._p(place)}."
        among = f"among {self.family} compared values such an interval can be chance"
        return f"{seen}, but {among}, p = {self._p(place)}; {power_note}."

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
    p = pair.p_value(alpha)
    family = max(one.families, two.families)
    return DifferenceEstimate(
        difference=one.points - two.points,
        low=low,
        high=high,
        p=p,
        holm=holm(p, family),
        detectable=detectable(pair, alpha / family),
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
