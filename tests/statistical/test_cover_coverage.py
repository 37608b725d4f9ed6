"""Figures of every kind hold among a shuffler's covers, and do not if these are left in.

Batches are drawn: persons by the simulation's exact distributions, covers by the mechanism's own
`cover`; `test_cover_outcomes` enumerates shares of few values, and means. Seeds are fixed; a
setting fails only if its true coverage is below .94 with confidence 1 - alpha, for all settings of
a kind together (alpha = .001).

A planted mistake must be rejected by the same check: covers that count as persons, and covers whose
mean is taken off while what they vary by is not allowed for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, cast

import numpy as np
import pytest

from veilcount_analysis.estimation import IntervalTarget, ShareEstimates
from veilcount_analysis.estimation.cdf import BucketHistogram
from veilcount_analysis.estimation.confidence_intervals import Counts, Floats
from veilcount_analysis.estimation.moments import means
from veilcount_analysis.estimation.range_queries import TreeReports
from veilcount_analysis.mechanisms.candidate_search import found_places, open_handler
from veilcount_analysis.mechanisms.estimates import (
    estimate_mean,
    estimate_number,
    estimate_shares,
    estimate_sums,
)
from veilcount_analysis.mechanisms.handler import (
    NumberHandler,
    handler_of,
    number_handler,
    tally,
)
from veilcount_analysis.mechanisms.moments import moments_handler
from veilcount_analysis.mechanisms.range_tree import tree_reading
from veilcount_analysis.simulation import Population, simulate
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection
from veilcount_shared.domain import GRID
from veilcount_shared.mechanisms import Randomizer, RangeTree

from ..analysis.estimation.test_covered_supports import shuffled
from .coverage_harness import ALPHA, LEVEL, Coverage
from .test_open_strings import WORD, named

LEAST, RUNS = 0.94, 400
SIZES, SHARES = (300, 1000), (0.0, 0.002, 0.05)
Ends = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Question:
    """A question, how its persons' reports are drawn, and its figure at a share of holders."""

    collection: Collection
    covers: int
    persons: Callable[[int, int, np.random.Generator], Counts]
    interval: Callable[[Counts, int, IntervalTarget], Ends]
    true: Callable[[float], float] = float

    @property
    def expected(self) -> Floats:
        """The counters that its covers have on average."""
        handler, size = handler_of(self.collection.mechanism), self.collection.mechanism.counters
        if isinstance(handler, NumberHandler):
            return self.covers * handler.cover_chances
        return np.full(size, self.covers * handler.counters_per_report / size)


def reports_of(
    collection: Collection, holders: int, n: int, generator: np.random.Generator
) -> Counts:
    """The counters of persons of whom so many hold the first value, the rest the last one."""
    last = collection.inputs - 1
    return simulate(
        collection, Population(np.array([0, last]), np.array([holders, n - holders])), generator
    )


def ends_of_numbers(
    collection: Collection, holders: int, n: int, generator: np.random.Generator
) -> Counts:
    """The counters of persons whose numbers are at the two ends, so many at the upper one."""
    people = Population(np.array([0, GRID]), np.array([n - holders, holders]))
    return simulate(collection, people, generator)


def number(
    measure: str, covers: int, interval: Callable[..., Ends], true: Callable[[float], float] = float
) -> Question:
    collection = shuffled(f"range = [0, 1]\nmeasure = '{measure}'\npresence = 'public'", covers)
    persons = partial(ends_of_numbers, collection)
    return Question(collection, covers, persons, partial(interval, collection), true)


def mean(collection: Collection, counters: Counts, covers: int, target: IntervalTarget) -> Ends:
    shown = estimate_mean(
        collection, counters, LEVEL, target=target.value, contributions=1, covers=covers
    )
    return shown.low, shown.high


def upper_quarter(
    collection: Collection, counters: Counts, covers: int, target: IntervalTarget
) -> Ends:
    """The share of a range alone: a histogram takes longer."""
    (handler, domain), tree = number_handler(collection), collection.mechanism
    assert isinstance(tree, RangeTree)
    among = handler.cover_reports(covers)
    share = TreeReports(tree_reading(tree).weights, domain, counters, LEVEL, target, among)
    quarter = share.between(0.75, 1)
    return quarter.low, quarter.high


def of_buckets(share: float) -> float:
    """The mean of the middles of the buckets."""
    return share * 255 / 256 + 1 / 512


FEATURES = shuffled(
    "features = {x = [-1, 1], y = [-1, 1]}\nmeasure = 'moments'\npresence = 'public'", 142
)


def feature_reports(holders: int, n: int, generator: np.random.Generator) -> Counts:
    handler, points = moments_handler(FEATURES), np.zeros((n, 2), np.int64)
    points[:holders] = GRID
    messages = handler.draw_messages(handler.draw_moments(points, generator), generator)
    return np.bincount(messages, minlength=FEATURES.mechanism.counters)


def first_mean(counters: Counts, covers: int, _: IntervalTarget) -> Ends:
    figures = moments_handler(FEATURES).means(counters, covers).figures(means, LEVEL)
    return float(figures.low[0]), float(figures.high[0])


def values(size: int) -> str:
    return f"values = {[f'v{place}' for place in range(size)]}\npresence = 'public'"


def group(size: int, covers: int) -> Question:
    """The first three values together, held by those who hold the first."""
    collection = shuffled(values(size), covers)

    def interval(counters: Counts, among: int, target: IntervalTarget) -> Ends:
        shown = group_share(collection, counters, among, target)
        return float(shown.low[0]), float(shown.high[0])

    return Question(collection, covers, partial(reports_of, collection), interval)


def group_share(
    collection: Collection, counters: Counts, covers: int, target: IntervalTarget
) -> ShareEstimates:
    shown = estimate_sums(
        collection,
        counters,
        [[0, 1, 2]],
        LEVEL,
        target=target.value,
        contributions=1,
        covers=covers,
    )
    assert isinstance(shown, ShareEstimates)
    return shown


HIDDEN = shuffled("boolean = true", 110)


def half_answered(holders: int, n: int, generator: np.random.Generator) -> Counts:
    """Half of the devices answered, and so many of these with the first value."""
    answered = n // 2
    people = np.array([round(holders / 2), answered - round(holders / 2), n - answered])
    return simulate(HIDDEN, Population(np.arange(3), people), generator)


def string_reports(holders: int, n: int, generator: np.random.Generator) -> Counts:
    """So many hold one string, the rest others that they have in common."""
    places = named(["walk", "bus", "ride"]).places
    half = (n - holders) // 2
    people = Population(places, np.array([holders, half, n - holders - half]))
    return simulate(WORD, people, generator)


def first_share(
    collection: Collection, counters: Counts, covers: int, target: IntervalTarget, **options: Any
) -> Ends:
    shown = estimate_shares(
        *(collection, counters, LEVEL),
        target=target.value,
        contributions=1,
        covers=covers,
        **options,
    )
    return float(shown.low[0]), float(shown.high[0])


AMONG_ANSWERED = partial(first_share, HIDDEN, among="answered")
OF_STRING = partial(first_share, WORD, values=named(["walk"]).places.tolist())

QUESTIONS: dict[str, Callable[[], Question]] = {
    "distribution": lambda: number("distribution", 400, mean, of_buckets),
    "mean of ranges": lambda: number("ranges", 336, mean, of_buckets),
    "ranges": lambda: number("ranges", 336, upper_quarter),
    "features": lambda: Question(
        FEATURES, 142, feature_reports, first_mean, lambda share: 2 * share - 1
    ),
    "group of subsets": lambda: group(100, 430),
    "group of planes": lambda: group(4000, 400),
    "answered": lambda: Question(HIDDEN, 110, half_answered, AMONG_ANSWERED),
    "strings": lambda: Question(WORD, 463, string_reports, OF_STRING),
}


@cache
def question(name: str) -> Question:
    return number("mean", 142, mean) if name == "mean" else QUESTIONS[name]()


@cache
def cover_counters(name: str) -> list[Counts]:
    """The counters of the covers of many batches, as devices and shufflers draw them."""
    example, randomness = question(name), SeededRandomSource(1)
    cover = cast("Randomizer", example.collection.mechanism).cover
    return [
        tally(example.collection, [cover(randomness) for _ in range(example.covers)])
        for _ in range(RUNS)
    ]


def batches(name: str, share: float, n: int, target: IntervalTarget) -> Iterator[Counts]:
    example, generator = question(name), np.random.default_rng(2)
    for covers in cover_counters(name):
        holders = generator.binomial(n, share) if target.sampled else round(share * n)
        yield example.persons(holders, n, generator) + covers


Plant = Callable[[Question, Counts], tuple[Any, int]]


def subtracted(example: Question, counters: Counts) -> tuple[Counts, int]:
    return counters, example.covers


def kept_in(_: Question, counters: Counts) -> tuple[Counts, int]:
    """Planted: covers count as persons."""
    return counters, 0


def certain(example: Question, counters: Counts) -> tuple[Floats, int]:
    """Planted: what covers have on average is taken off, and nothing is added to the variance."""
    return counters - example.expected + 1e-9, 0


def coverage(
    name: str, n: int, share: float, target: IntervalTarget, plant: Plant = subtracted
) -> Coverage:
    example = question(name)
    figure = example.true(share if target.sampled else round(share * n) / n)
    hits = 0
    for counters in batches(name, share, n, target):
        low, high = example.interval(*plant(example, counters), target)
        hits += low - 1e-9 <= figure <= high + 1e-9
    return Coverage(hits, RUNS)


COHORT, POPULATION = IntervalTarget.COHORT, IntervalTarget.POPULATION
SETTINGS = [(n, share, COHORT) for n in SIZES for share in SHARES] + [(300, 0.05, POPULATION)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("n", "share", "target"), SETTINGS)
@pytest.mark.parametrize("name", QUESTIONS)
def test_intervals_cover(name: str, n: int, share: float, target: IntervalTarget) -> None:
    assert coverage(name, n, share, target).could_be(LEAST, ALPHA / len(SETTINGS))


#: where each mistake shows: n and the share of holders
PLANTED: dict[str, list[tuple[Plant, int, float]]] = {
    "distribution": [(kept_in, 300, 0.05), (certain, 300, 0.5)],
    "mean of ranges": [(kept_in, 300, 0.05), (certain, 300, 0.5)],
    "ranges": [(kept_in, 1000, 0.05)],
    "features": [(kept_in, 300, 0.05)],
    "group of subsets": [(kept_in, 300, 0.5)],
    "group of planes": [(kept_in, 300, 0.5)],
    "answered": [(kept_in, 300, 0.05), (certain, 300, 0.05)],
    "strings": [(kept_in, 300, 0.05), (certain, 300, 0.05)],
}


@pytest.mark.parametrize(
    ("name", "plant", "n", "share"),
    [(name, *mistake) for name, mistakes in PLANTED.items() for mistake in mistakes],
)
def test_planted_mistakes_do_not_cover(name: str, plant: Plant, n: int, share: float) -> None:
    assert not coverage(name, n, share, COHORT, plant).could_be(LEAST, ALPHA)


@pytest.mark.parametrize("name", ["group of subsets", "group of planes"])
def test_the_stated_error_of_a_group_is_that_of_its_share(name: str) -> None:
    """Within 14 %, four standard errors of 400; without the covers' variance it is not."""
    example = question(name)
    every = list(batches(name, 0.05, 300, COHORT))
    shown = [
        group_share(example.collection, counters, example.covers, COHORT) for counters in every
    ]
    plants: list[tuple[Any, int]] = [certain(example, counters) for counters in every]
    planted = [group_share(example.collection, *plant, COHORT) for plant in plants]
    deviation = float(np.std([shares.frequency[0] for shares in shown]))

    def stated(estimates: list[ShareEstimates]) -> float:
        return float(np.mean([shares.evidence.error(COHORT)[0] for shares in estimates]))

    assert stated(shown) == pytest.approx(deviation, rel=0.14)
    assert stated(planted) < 0.86 * deviation


def test_the_stated_error_of_a_moment_is_that_of_its_mean() -> None:
    """Within 14 %, four standard errors of 400; that of the persons' own reports is smaller."""
    example, generator = question("features"), np.random.default_rng(2)
    handler = moments_handler(FEATURES)
    shown = [handler.means(counters, 142) for counters in batches("features", 0.05, 300, COHORT)]
    alone = [handler.means(example.persons(15, 300, generator)) for _ in shown]
    deviation = float(np.std([estimates.points[0] for estimates in shown]))
    stated, planted = (
        float(np.sqrt(np.mean([estimates.variances[0] for estimates in every])))
        for every in (shown, alone)
    )

    assert stated == pytest.approx(deviation, rel=0.14)
    assert planted < 0.86 * deviation


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize(("n", "target"), [(300, POPULATION), (1000, POPULATION), (1000, COHORT)])
def test_the_mean_covers_among_drawn_covers(n: int, share: float, target: IntervalTarget) -> None:
    assert coverage("mean", n, share, target).could_be(LEAST, ALPHA / 9)


# -- what is no interval of one figure -------------------------------------------------------------


def test_the_curve_of_a_distribution_is_the_persons_alone() -> None:
    """Nobody is in the lower half of the range, where half of the covers are."""
    example, generator = question("distribution"), np.random.default_rng(3)
    points = np.linspace(0.55, 0.95, 64) * GRID
    people = Population(np.rint(points).astype(np.int64), np.full(64, 30))
    counters = simulate(example.collection, people, generator) + cover_counters("distribution")[0]

    def below_half(covers: int) -> float:
        shown = estimate_number(example.collection, counters, covers=covers)
        assert isinstance(shown, BucketHistogram)
        assert shown.curve.share is not None
        return float(shown.curve.share[len(shown.curve.share) // 2])

    assert below_half(example.covers) < 0.04
    assert below_half(0) > 0.06, "planted: covers count as persons"


def test_strings_are_found_among_covers_and_few_by_chance() -> None:
    """Of 25 batches about 0.3 decoys in each; 20 in all come by chance with less than alpha."""
    generator, covers = np.random.default_rng(4), question("strings").covers
    candidates = named(["walk", "bus", "ride", *[f"nobody {number}" for number in range(2000)]])
    by_chance = 0
    for among in cover_counters("strings")[:25]:
        counters = string_reports(100, 1000, generator) + among
        found = found_places(WORD, counters, candidates, 1e-4, covers)
        assert set(found[:3].tolist()) == {0, 1, 2}
        by_chance += len(found) - 3

    assert by_chance <= 20


@pytest.mark.parametrize(("n", "share"), [(n, share) for n in SIZES for share in (*SHARES, 0.3)])
def test_shares_by_the_last_beginnings_cover(n: int, share: float) -> None:
    """Persons and covers draw their part; how many reports of it are of persons is not known."""
    found = shuffled("values = 'open'\ndiscover = true\npresence = 'public'", 428)
    handler, generator, covers = open_handler(found), np.random.default_rng(5), 428
    parts, response = handler.mechanism.parts, handler.response

    def covered(subtracted: int) -> Coverage:
        hits = 0
        for _ in range(RUNS):
            of_persons, of_covers = generator.binomial((n, covers), 1 / parts)
            holders = generator.binomial(of_persons, share)
            count = generator.binomial(
                (holders, of_persons - holders, of_covers),
                (response.P, response.Q, handler.cover_support),
            ).sum(keepdims=True)
            last = of_persons + of_covers
            sizes = np.array([n + covers - last, 0, 0, 0, last])
            evidence = handler.evidence_of(sizes, [count], subtracted)
            low, high = evidence.interval(1 - LEVEL, POPULATION)
            hits += bool(low[0] <= share <= high[0])
        return Coverage(hits, RUNS)

    assert covered(covers).could_be(LEAST, ALPHA / 8)
    if share > 0.1:
        assert not covered(0).could_be(LEAST, ALPHA), "planted: covers count as persons"
