"""The counters of one series to what they say. Several periods or segments: give their sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.collection import Presence
from veilcount_shared.domain import Number
from veilcount_shared.errors import TrustModelError
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    Identity,
    MeanMechanism,
    ProjectiveGeometry,
    RangeTree,
    SubsetSelection,
)

from .cdf import BucketHistogram
from .confidence_intervals import Counts
from .confidence_sequences import LookCount
from .estimator import IntervalTarget
from .fieller import ratios
from .group_sums import sums
from .mean import Decoded
from .mean_sequences import anytime_mean
from .postprocessing import View
from .proportions import SupportCounts
from .range_queries import ranges
from .response_distribution import ResponseDistribution
from .results import (
    OF,
    IntervalTerms,
    MeanEstimate,
    NoReports,
    ShareEstimates,
    average,
    frequencies,
    rows,
)
from .square_wave_em import distribution
from .support_counts import Shares, answers, supports

ALL_DEVICES = "of all devices"
ANSWERED = "of those who answered"
GIVEN = "of those given"

Asked = Literal["auto", "population", "cohort"]


def estimate(
    collection: Collection,
    counters: Counts,
    level: float = 0.95,
    view: Literal["raw", "consistent"] = "raw",
    *,
    target: Asked = "auto",
    simultaneous: bool = False,
    contributions: int | None = None,
    looks: LookCount = LookCount.ONE,
    among: Literal["all", "answered"] = "all",
    values: Sequence[int] | None = None,
) -> ShareEstimates | MeanEstimate | BucketHistogram | NoReports:
    """Return what the counters of one series say.

    `contributions` is how many of these answers one person may have given (unless told: as many as
    the campaign asks for); only if it is 1 can an interval be of the population. `simultaneous`
    intervals cover all at once. Where presence is hidden, shares are `among` all devices or among
    those that answered. `values` are the places of a few values of a large domain.
    """
    terms = IntervalTerms(level, target_of(collection, target, contributions), simultaneous, looks)
    mechanism, domain = collection.mechanism, collection.domain
    if isinstance(mechanism, Identity):
        raise TrustModelError(collection.name, "true values leave through releases alone")
    if isinstance(domain, Number):
        return _of_number(collection, domain, counters, terms)
    return _of_values(collection, counters, terms, View(view), among=among, values=values)


def estimate_sums(
    collection: Collection,
    counters: Counts,
    groups: Sequence[Sequence[int] | Counts],
    level: float = 0.95,
    *,
    given: Sequence[int] | Counts | None = None,
    target: Asked = "auto",
    simultaneous: bool = False,
    contributions: int | None = None,
    looks: LookCount = LookCount.ONE,
) -> ShareEstimates | NoReports:
    """Return the shares of groups of inputs; `given` another group, those within it."""
    mechanism = shares_of(collection)
    terms = IntervalTerms(level, target_of(collection, target, contributions), simultaneous, looks)
    if not answers(mechanism, counters):
        return _unanswered(len(groups), level)
    whole = None if given is None else np.unique(given)
    chosen = [np.unique(each) for each in groups]
    if whole is not None:
        chosen = [np.intersect1d(each, whole) for each in chosen]
    evidence = sums(mechanism, counters, chosen)
    of = OF[terms.target]
    if whole is not None:
        part_of = sums(mechanism, counters, [whole])
        evidence = ratios(
            mechanism, counters, tuple(chosen), whole, parts=evidence, part_of=part_of
        )
        of = f"{GIVEN}, {of}"
    return frequencies(evidence, terms, np.arange(len(groups)), of=of)


def target_of(collection: Collection, asked: Asked, contributions: int | None) -> IntervalTarget:
    """Return what an interval is of: the population only where each person answers at most once."""
    most = collection.answering * collection.per_period if contributions is None else contributions
    if asked == "auto":
        return IntervalTarget.POPULATION if most == 1 else IntervalTarget.COHORT
    if IntervalTarget(asked) is IntervalTarget.POPULATION and most > 1:
        raise ValueError(
            f"{collection.name}: one person may have given {most} of these answers, so they are"
            " no sample of the population: ask for the cohort, or for a range with one answer each"
        )
    return IntervalTarget(asked)


def shares_of(collection: Collection) -> Shares:
    """Return the design of a collection of values, or refuse any other."""
    mechanism = collection.mechanism
    if isinstance(mechanism, Identity):
        raise TrustModelError(collection.name, "true values leave through releases alone")
    if not isinstance(mechanism, SubsetSelection | ProjectiveGeometry):
        raise TypeError(f"{collection.name}: a number has no shares of values")
    return mechanism


def _of_values(
    collection: Collection,
    counters: Counts,
    terms: IntervalTerms,
    view: View,
    *,
    among: str,
    values: Sequence[int] | None,
) -> ShareEstimates | NoReports:
    mechanism, hidden = shares_of(collection), collection.presence is Presence.HIDDEN
    if view is View.CONSISTENT and values is not None:
        raise ValueError("a consistent view is of all values: ask for them all")
    if among == "answered" and not hidden:
        raise ValueError(f"{collection.name}: presence is public, so all devices here answered")
    size = collection.inputs - hidden
    places = np.arange(size) if values is None else np.array(values, np.int64)
    if not answers(mechanism, counters):
        return _unanswered(len(places), terms.level)
    if hidden:
        return _with_absent(mechanism, counters, terms, view, places=places, of_all=among == "all")
    return frequencies(_supports(mechanism, counters, places), terms, places, view=view)


def _with_absent(
    mechanism: Shares,
    counters: Counts,
    terms: IntervalTerms,
    view: View,
    *,
    places: Counts,
    of_all: bool,
) -> ShareEstimates:
    """Return the shares of all devices, `absent` beside them, or of those that answered."""
    absent = np.array([mechanism.k - 1])
    everywhere = np.append(places, absent)
    everything = _supports(mechanism, counters, everywhere)
    parts, rest = everything.rows(slice(-1)), everything.rows(slice(-1, None))
    of = OF[terms.target]
    if of_all:
        shown = frequencies(everything, terms, everywhere, of=f"{ALL_DEVICES}, {of}", view=view)
        return rows(shown, slice(-1), parts, rows(shown, slice(-1, None), rest))
    evidence = ratios(mechanism, counters, places, absent, parts=parts, part_of=rest, inverted=True)
    return frequencies(evidence, terms, places, of=f"{ANSWERED}, {of}", view=view)


def _supports(mechanism: Shares, counters: Counts, places: Counts) -> SupportCounts:
    """Return the evidence on some values; of two values, one share tells the other."""
    few = None if np.array_equal(places, np.arange(mechanism.k)) else places
    families = 1 if mechanism.k == 2 else mechanism.k  # noqa: PLR2004 - a share and its counterpart
    counts = supports(mechanism, counters, few)
    return SupportCounts(
        answers(mechanism, counters), counts, ResponseDistribution.of(mechanism), families
    )


def _of_number(
    collection: Collection, domain: Number, counters: Counts, terms: IntervalTerms
) -> MeanEstimate | BucketHistogram | NoReports:
    mechanism = collection.mechanism
    if terms.looks is LookCount.EVERY and not isinstance(mechanism, MeanMechanism):
        raise ValueError(f"{collection.name}: the bands of a distribution hold at one look alone")
    if isinstance(mechanism, DistributionMechanism):
        return distribution(mechanism, domain, counters, terms.level, target=terms.target)
    if isinstance(mechanism, RangeTree):
        return ranges(mechanism, domain, counters, terms.level, target=terms.target)
    assert isinstance(mechanism, MeanMechanism), "no number has another"  # noqa: S101 - told to the type checker
    if not counters.sum():
        ends = np.array([float(domain.low)]), np.array([float(domain.high)])
        return NoReports(low=ends[0], high=ends[1], level=terms.level)
    if terms.looks is LookCount.EVERY:
        return average(anytime_mean(mechanism, domain, counters), terms)
    return average(Decoded.of(mechanism, domain, counters), terms)


def _unanswered(size: int, level: float) -> NoReports:
    return NoReports(low=np.zeros(size), high=np.ones(size), level=level)
