"""Estimates from the counters of one series. Several periods or segments: give their sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.domain import Number

from ..estimation.confidence_intervals import Counts, Floats
from ..estimation.confidence_sequences import LookCount
from ..estimation.estimator import Estimator, IntervalTarget
from ..estimation.fieller import ratios
from ..estimation.find_budget import chance_of_first
from ..estimation.poisoning import PoisoningTest, frequent_messages, nonzero_supports
from ..estimation.proportions import SupportCounts
from ..estimation.results import (
    ESTIMANDS,
    IntervalTerms,
    MeanEstimate,
    NoReports,
    ShareEstimates,
    View,
    estimate_average,
    estimate_frequencies,
    select_rows,
)
from .candidate_search import Candidates, found_places, open_domain, open_handler
from .handler import (
    JointHandler,
    NumberEstimate,
    NumberHandler,
    group_handler_of,
    joint_handler,
    number_handler,
    refuse_true_values,
    share_handler,
)

ALL_DEVICES = "of all devices"
ANSWERED = "of those who answered"
WITHIN_GROUP = "of those in the group"
COVERS_HOLD_ONCE = "among a shuffler's covers, intervals hold at one planned look: looks=one"

RequestedTarget = Literal["auto", "population", "cohort"]


class TermOptions(TypedDict, total=False):
    """What an interval is to cover.

    `contributions` is how many of these reports one person may have sent (default: as many as the
    campaign asks for); only if it is 1 can an interval be of the population. `simultaneous`
    intervals cover all at once. So many `covers` of a shuffler are among the reports.
    """

    target: RequestedTarget
    simultaneous: bool
    contributions: int | None
    looks: LookCount
    covers: int


class ShareOptions(TermOptions, total=False):
    """Which shares: where presence is hidden, those `among` all devices or those that answered.

    `values` are the places of a few values of a large domain. Of open strings, `candidates` are
    looked for, all at once, and `places` are those found among them.
    """

    among: Literal["all", "answered"]
    values: Sequence[int] | None
    candidates: Sequence[str]


def interval_terms(collection: Collection, level: float, options: TermOptions) -> IntervalTerms:
    """Return the terms of a collection's intervals."""
    target = target_of(collection, options.get("target", "auto"), options.get("contributions"))
    looks = options.get("looks", LookCount.ONE)
    if looks is LookCount.EVERY and options.get("covers", 0):
        raise ValueError(f"{collection.name}: {COVERS_HOLD_ONCE}")
    return IntervalTerms(level, target, options.get("simultaneous", False), looks)


def estimate(
    collection: Collection,
    counters: Counts,
    level: float = 0.95,
    view: Literal["raw", "consistent"] = "raw",
    **options: Unpack[ShareOptions],
) -> ShareEstimates | NumberEstimate:
    """Return the estimate that a collection is for: of shares, or of a number."""
    if not isinstance(collection.domain, Number):
        return estimate_shares(collection, counters, level, view, **options)
    handler, domain, terms = _number_terms(collection, level, options)
    return handler.estimate(domain, counters, terms, options.get("covers", 0))


def estimate_number(
    collection: Collection, counters: Counts, level: float = 0.95, **options: Unpack[TermOptions]
) -> NumberEstimate:
    """Return the mean of a number, or its distribution."""
    handler, domain, terms = _number_terms(collection, level, options)
    return handler.estimate(domain, counters, terms, options.get("covers", 0))


def estimate_mean(
    collection: Collection, counters: Counts, level: float = 0.95, **options: Unpack[TermOptions]
) -> MeanEstimate:
    """Return the mean of a number, whatever its measure, from at least one report."""
    handler, domain, terms = _number_terms(collection, level, options)
    covers = options.get("covers", 0)
    return estimate_average(handler.mean(domain, counters, terms.looks, covers), terms)


def _number_terms(
    collection: Collection, level: float, options: TermOptions
) -> tuple[NumberHandler[Any], Number, IntervalTerms]:
    handler, domain = number_handler(collection)
    terms = interval_terms(collection, level, options)
    if terms.looks is LookCount.EVERY and not handler.has_anytime_intervals:
        raise ValueError(f"{collection.name}: the bands of a distribution hold at one look alone")
    return handler, domain, terms


def estimate_shares(
    collection: Collection,
    counters: Counts,
    level: float = 0.95,
    view: Literal["raw", "consistent"] = "raw",
    **options: Unpack[ShareOptions],
) -> ShareEstimates | NoReports:
    """Return the shares of values."""
    handler, hidden = share_handler(collection), collection.has_absent
    terms, shown = interval_terms(collection, level, options), View(view)
    among, values = options.get("among", "all"), options.get("values")
    covers = options.get("covers", 0)
    if shown is View.CONSISTENT and values is not None:
        raise ValueError("a consistent view is of all values: ask for them all")
    if among == "answered" and not hidden:
        raise ValueError(f"{collection.name}: presence is public, so all devices here answered")
    if not handler.lists_values and values is None:
        candidates = options.get("candidates", ())
        return _found_strings(collection, counters, terms, candidates, covers)
    every = np.arange(handler.mechanism.k - hidden) if values is None else values
    places = np.array(every, np.int64)
    if not handler.is_estimable(counters, covers):
        return _no_reports(len(places), level)
    if hidden:
        everywhere = np.append(places, handler.mechanism.k - 1)
        everything = handler.support_counts(counters, everywhere, covers)
        if among == "all":
            return _of_all(everything, terms, shown, everywhere)
        evidence: Estimator = _of_answered(
            joint_handler(collection), counters, everything, places, covers
        )
        estimand = f"{ANSWERED}, {ESTIMANDS[terms.target]}"
        return estimate_frequencies(evidence, terms, places, estimand=estimand, view=shown)
    evidence = handler.evidence(counters, places, covers)
    return estimate_frequencies(evidence, terms, places, view=shown)


def _found_strings(
    collection: Collection,
    counters: Counts,
    terms: IntervalTerms,
    texts: Sequence[str],
    covers: int,
) -> ShareEstimates | NoReports:
    """Return the shares of the candidates that are found; `places` are theirs among all."""
    handler, named = open_handler(collection), Candidates.from_texts(open_domain(collection), texts)
    if handler.report_count(counters) <= covers:
        return _no_reports(0, terms.level)
    places = found_places(
        collection, counters, named, chance_of_first(max(len(named.texts), 1)), covers
    )
    evidence = handler.evidence(counters, named.places[places], covers)
    return estimate_frequencies(evidence, terms, places)


def estimate_sums(
    collection: Collection,
    counters: Counts,
    groups: Sequence[Sequence[int] | Counts],
    level: float = 0.95,
    *,
    within: Sequence[int] | Counts | None = None,
    **options: Unpack[TermOptions],
) -> ShareEstimates | NoReports:
    """Return the shares of groups of inputs; `within` another group, those of its members."""
    refuse_true_values(collection)
    handler = group_handler_of(collection.mechanism)
    terms, covers = interval_terms(collection, level, options), options.get("covers", 0)
    if handler.report_count(counters) <= covers:
        return _no_reports(len(groups), level)
    whole = None if within is None else np.unique(within)
    chosen = [np.unique(group) for group in groups]
    if whole is not None:
        chosen = [np.intersect1d(group, whole) for group in chosen]
    evidence = handler.group_sums(counters, chosen, covers)
    estimand = ESTIMANDS[terms.target]
    if whole is not None:
        joint, of_covers = _joint_supports(handler, counters, whole, covers)
        evidence = ratios(
            handler.response,
            joint,
            tuple(chosen),
            whole,
            parts=evidence,
            part_of=handler.group_sums(counters, [whole], covers),
            of_covers=of_covers,
        )
        estimand = f"{WITHIN_GROUP}, {estimand}"
    return estimate_frequencies(evidence, terms, np.arange(len(groups)), estimand=estimand)


def target_of(
    collection: Collection, requested: RequestedTarget, contributions: int | None
) -> IntervalTarget:
    """Return what an interval covers: the population only where no person answers twice."""
    most = collection.answering * collection.per_day if contributions is None else contributions
    if requested == "auto":
        return IntervalTarget.POPULATION if most == 1 else IntervalTarget.COHORT
    if IntervalTarget(requested) is IntervalTarget.POPULATION and most > 1:
        raise ValueError(
            f"{collection.name}: one person may have given {most} of these answers, so they are"
            " no sample of the population: ask for the cohort, or for a range with one answer each"
        )
    return IntervalTarget(requested)


def poisoning_test(collection: Collection, counters: Counts) -> PoisoningTest:
    """Test for what honest devices would hardly ever send, whatever their values are."""
    handler, nothing = share_handler(collection), np.array([], np.int64)
    if not handler.counts_messages:
        return PoisoningTest(False, nothing, nothing)
    n, mechanism = handler.report_count(counters), handler.mechanism
    messages = frequent_messages(counters, mechanism.messages, handler.max_message_probability)
    unused = nonzero_supports(handler.unused_supports(counters), n, float(mechanism.Q))
    return PoisoningTest(True, messages, mechanism.k + unused)


def _of_all(
    everything: SupportCounts, terms: IntervalTerms, view: View, everywhere: Counts
) -> ShareEstimates:
    """Return the shares of all devices, with those absent; these come last."""
    estimand = f"{ALL_DEVICES}, {ESTIMANDS[terms.target]}"
    shown = estimate_frequencies(everything, terms, everywhere, estimand=estimand, view=view)
    parts, rest = everything.rows(slice(-1)), everything.rows(slice(-1, None))
    return select_rows(shown, slice(-1), parts, select_rows(shown, slice(-1, None), rest))


def _of_answered(
    handler: JointHandler[Any],
    counters: Counts,
    everything: SupportCounts,
    places: Counts,
    covers: int,
) -> Estimator:
    """Return the estimator of the shares of the devices that answered."""
    absent = np.array([handler.mechanism.k - 1])
    joint, of_covers = _joint_supports(handler, counters, absent, covers)
    return ratios(
        handler.response,
        joint,
        places,
        absent,
        parts=everything.rows(slice(-1)),
        part_of=everything.rows(slice(-1, None)),
        inverted=True,
        of_covers=of_covers,
    )


def _joint_supports(
    handler: JointHandler[Any], counters: Counts, whole: Counts, covers: int
) -> tuple[Floats, Floats]:
    """Return the persons' mean joint supports, and for each of them the covers' covariance.

    A cover's are those of counters that all messages have in equal numbers.
    """
    joint = handler.joint_support(counters, whole)
    if not covers:
        return joint, np.zeros_like(joint)
    n = handler.report_count(counters) - covers
    evenly = np.full(len(counters), handler.counters_per_report)
    of_cover = handler.joint_support(evenly, whole)
    independent = handler.cover_support**2 * len(whole)
    return joint + covers / n * (joint - of_cover), covers / n * (of_cover - independent)


def _no_reports(size: int, level: float) -> NoReports:
    return NoReports(low=np.zeros(size), high=np.ones(size), level=level)
