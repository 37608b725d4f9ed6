"""Selections by noisy max: what they cost, how they are drawn, and that their intervals cover.

Statistical tests state alpha, and reject a selection by a wrong scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from math import exp, log

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from veilcount_analysis.errors import QueryError
from veilcount_analysis.releases import (
    NoiseKind,
    PricedQuery,
    Release,
    draw_release,
    part_noise,
    price_query,
)
from veilcount_analysis.releases.opendp_noise import Selector, select_noisy_max
from veilcount_shared.collection import Adjacency
from veilcount_shared.domain import Boolean, Choice, Number
from veilcount_shared.periods import Unit

from .release_fixtures import ADD_REMOVE, SUBSTITUTE, collection, exactly, simulated, whole

DELTA = Fraction(1, 10**6)
ALPHA = 1e-4
Counters = NDArray[np.int64]


def priced(
    query: str,
    adjacency: Adjacency = ADD_REMOVE,
    domain: Choice | Number | None = None,
    **cost: str,
) -> PricedQuery:
    each = collection(
        domain or whole(0, 29),
        adjacency,
        unit=Unit.USER,
        budget=Fraction(4),
        delta=DELTA if "rho" in cost else None,
    )
    return price_query({"query": query, **(cost or {"epsilon": "1"})}, each)


# -- sensitivity by brute force --------------------------------------------------------------------


def databases(inputs: int) -> Iterator[Counters]:
    for size in range(5):
        for database in combinations_with_replacement(range(inputs), size):
            yield np.bincount(database, minlength=inputs).astype(np.int64)


def neighbours(counters: Counters, adjacency: Adjacency) -> Iterator[Counters]:
    for place in np.flatnonzero(counters):
        fewer = counters.copy()
        fewer[place] -= 1
        if adjacency is ADD_REMOVE:
            yield fewer
        else:
            yield from (fewer + one for one in np.eye(len(counters), dtype=np.int64))


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, SUBSTITUTE])
@pytest.mark.parametrize(
    "query", ["most_frequent", "median point", "quantile 0.9 point", "quantile 0.25 point"]
)
def test_no_score_moves_farther_than_claimed_and_one_moves_as_far(
    query: str, adjacency: Adjacency
) -> None:
    """All parts; scores that are claimed to move the same way do."""
    question = priced(query, adjacency, whole(0, 3))
    parts = question.parts
    widths = [2] * len(parts)

    def scores(counters: Counters, part: int) -> Counters:
        drawn = ((1,),) * part
        return np.array(
            question.query.part_values(question.collection, counters, drawn, widths), np.int64
        )

    for place, part in enumerate(parts):
        moves = [
            scores(one, place) - scores(two, place)
            for one in databases(4)
            for two in neighbours(one, adjacency)
        ]

        assert max(int(abs(move).max()) for move in moves) == part.sensitivity
        if part.selection and part.selection.monotonic:
            assert all((move >= 0).all() for move in moves)


# -- the draw --------------------------------------------------------------------------------------


def gumbel_chances(scores: list[int], scale: float) -> list[float]:
    weights = [exp(score / scale) for score in scores]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize(("name", "cost"), [("epsilon", "1"), ("rho", "0.02")])
def test_a_selection_keeps_its_cost(name: str, cost: str) -> None:
    """Neighbours: the ratio of chances is within e^epsilon, and rho within epsilon^2 / 8."""
    plain, double = (
        part_noise(priced("most_frequent", each, None, **{name: cost}))[0].scale
        for each in (ADD_REMOVE, SUBSTITUTE)
    )
    half = float(Fraction(cost)) / 2
    wanted = 1 / half if name == "epsilon" else 1 / (8 * half) ** 0.5

    assert plain == pytest.approx(wanted)
    assert double == pytest.approx(2 * wanted)
    one, two = gumbel_chances([5, 4, 4], plain), gumbel_chances([4, 4, 4], plain)
    assert max(abs(log(a / b)) for a, b in zip(one, two, strict=True)) <= 1 / plain


def test_opendp_selects_as_the_exponential_mechanism_does_and_not_at_another_scale() -> None:
    """alpha = 1e-9: Gumbel noise makes it exact; exponential noise selects the best more often."""
    times, scores, scale = 4000, [9, 7, 4], 3.0
    chance = gumbel_chances(scores, scale)[0]
    found = sum(select_noisy_max(scores, scale, concentrated=True) == 0 for _ in range(times))
    better = sum(select_noisy_max(scores, scale, concentrated=False) == 0 for _ in range(times))

    assert binom.isf(1 - 1e-9, times, chance) <= found <= binom.isf(1e-9, times, chance)
    for wrong in (0.7, 1.4):
        other = gumbel_chances(scores, scale * wrong)[0]
        assert not binom.isf(1 - 1e-9, times, other) <= found <= binom.isf(1e-9, times, other)
    assert better >= binom.isf(1 - 1e-9, times, chance)


# -- coverage --------------------------------------------------------------------------------------


def selecting(seed: int, wrong: float = 1.0) -> Selector:
    """The exponential mechanism, which exponential noise is never worse than."""
    generator = np.random.default_rng(seed)

    def select(scores: object, scale: float) -> int:
        noise = generator.gumbel(size=len(scores)) * scale * wrong  # type: ignore[arg-type]
        return int(np.argmax(np.array(scores) + noise))

    return select


UNIFORM: Counters = np.random.default_rng(7).multinomial(3000, np.full(30, 1 / 30))
PEAKED: Counters = np.array([0] * 12 + [900, 0, 0, 950] + [3] * 14)


def quantile_of(counters: Counters, share: Fraction) -> int:
    return int(np.argmax(counters.cumsum() * share.denominator >= counters.sum() * share.numerator))


def misses(question: PricedQuery, counters: Counters, share: Fraction, wrong: float = 1.0) -> int:
    noise = simulated(question.cost.noise, 5, wrong)
    true = quantile_of(counters, share)
    drawn = (draw_release(question, counters, noise=noise) for _ in range(100))
    return sum(not each.low[0] <= true <= each.high[0] for each in drawn)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, SUBSTITUTE])
@pytest.mark.parametrize("counters", [UNIFORM, PEAKED, 0 * UNIFORM + (np.arange(30) == 29) * 40])
@pytest.mark.parametrize("share", ["0.5", "0.05", "0.99"])
def test_a_quantile_s_interval_covers(adjacency: Adjacency, counters: Counters, share: str) -> None:
    """alpha = 1e-4 for more misses than 5 %, also where a rank lies beyond all answers."""
    question = priced(f"quantile {share}", adjacency, epsilon="0.5")

    assert misses(question, counters, Fraction(share)) <= binom.isf(ALPHA, 100, 0.05)


def test_a_quantile_with_too_much_noise_misses() -> None:
    question = priced("median", epsilon="0.5")

    assert misses(question, UNIFORM, Fraction(1, 2), wrong=30) > binom.isf(ALPHA, 100, 0.05)


@pytest.mark.parametrize("query", ["median", "median point"])
def test_a_quantile_is_near_where_there_are_answers(query: str) -> None:
    """OpenDP's own draws: 3,000 answers at epsilon 0.5, in either currency."""
    for question in (priced(query, epsilon="0.5"), priced(query, rho="0.1")):
        released = draw_release(question, UNIFORM)

        assert abs(released.values[0] - quantile_of(UNIFORM, Fraction(1, 2))) <= 4
        if query == "median":
            assert released.high[0] - released.low[0] <= 6
        else:
            assert (released.low, released.high) == ((0,), (29,))


def three_selections(counters: Counters, epsilon: float, select: Selector) -> tuple[int, int]:
    """Return the ends that two noisy max aim at beyond the median's rank, a third of epsilon each.

    The median itself has the other third.
    """
    scale = 2 / (epsilon / 3)
    shift = 2 * (scale * log(len(counters) * 3 / 0.05) / 2) + 1
    up_to, n = counters.cumsum(), counters.sum()
    ends = []
    for aim in (-shift, shift):
        below, above = 2.0 * (up_to - counters) - n - aim, 2.0 * (n - up_to) - n + aim
        below[0], above[-1] = 0, 0
        ends.append(select((-np.maximum(0, np.maximum(below, above))).tolist(), scale))
    return ends[0], ends[1]


@pytest.mark.parametrize(("n", "epsilon"), [(300, "0.2"), (300, "1"), (5000, "0.2")])
def test_a_median_from_a_tree_has_a_much_narrower_interval_than_three_selections(
    n: int, epsilon: str
) -> None:
    """400 draws: coverage below .91 has a chance of 4e-4 at .95 (it is .98); widths of less than
    six tenths, where their ratio is .35 to .55."""
    ages = np.clip(np.rint(np.random.default_rng(n).gamma(4, 10, n)), 0, 99).astype(np.int64)
    counters: Counters = np.bincount(ages, minlength=100)
    question, true = priced("median", domain=whole(0, 99), epsilon=epsilon), np.sort(ages)[n // 2]
    noise, select = simulated(NoiseKind.LAPLACE, 4), selecting(4)
    drawn = [draw_release(question, counters, noise=noise) for _ in range(400)]
    low, high = (np.array([getattr(each, end)[0] for each in drawn]) for end in ("low", "high"))
    ends = np.array([three_selections(counters, float(epsilon), select) for _ in range(400)])

    assert true == quantile_of(counters, Fraction(1, 2))
    assert ((low <= true) & (true <= high)).mean() >= 0.91
    assert (high - low).mean() <= 0.6 * (ends[:, 1] - ends[:, 0]).mean()


def test_all_quantiles_of_one_release_are_those_of_the_answers() -> None:
    released = draw_release(priced("quantiles"), UNIFORM, noise=exactly)
    shares = [Fraction(label) for label in map(str, released.labels)]

    assert shares == [Fraction(share, 20) for share in range(1, 20)]
    assert released.values == tuple(quantile_of(UNIFORM, share) for share in shares)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, SUBSTITUTE])
@pytest.mark.parametrize("cost", [{"epsilon": "1"}, {"rho": "0.02"}], ids=str)
def test_no_answer_moves_the_tree_farther_than_claimed(
    adjacency: Adjacency, cost: dict[str, str]
) -> None:
    """All pairs of neighbours of five data sets; a sensitivity of 1 less is not enough."""
    question = priced("median", adjacency, whole(0, 19), **cost)
    (part,) = question.parts

    def tree(counters: Counters) -> Counters:
        return np.array(draw_release(question, counters, noise=exactly).noised[0], np.int64)

    base = np.ones(20, np.int64)
    with_one = [tree(base + one) for one in np.eye(20, dtype=np.int64)]
    others = [tree(base)] if adjacency is ADD_REMOVE else with_one
    moves = [abs(one - other) for one in with_one for other in others]

    assert part.sensitivity - 1 < max(int(move.sum()) for move in moves) <= part.sensitivity or (
        "rho" in cost
    )
    assert max(int((move**2).sum()) for move in moves) <= part.squared_sensitivity


def test_of_many_values_a_leaf_is_several_and_ends_are_its_own() -> None:
    """Of 2,000 numbers three are a leaf: the interval holds whole leaves."""
    counters: Counters = np.full(2000, 3)
    released = draw_release(
        priced("median", domain=whole(0, 1999)), counters, noise=simulated(NoiseKind.LAPLACE, 2)
    )

    assert released.low[0] <= 999 <= released.high[0]
    assert released.low[0] % 3 == 0
    assert released.high[0] % 3 == 2


def test_the_most_frequent_is_named_with_its_count() -> None:
    """Its loss is within the stated bound; the label is data, and is kept."""
    themes = Choice(("light", "dark", "system"))
    counters: Counters = np.array([300, 340, 10])
    question = priced("most_frequent", SUBSTITUTE, themes, epsilon="2")
    bound = part_noise(question)[0].half_width
    for _ in range(20):
        released = draw_release(question, counters)
        place = themes.labels.index(released.labels[0])

        assert counters.max() - counters[place] <= 2 * bound
        assert Release.from_json(released.to_json()) == released
        assert len(released.noised) == 2


def test_a_selection_s_loss_is_within_its_bound() -> None:
    """alpha = 1e-4: at most 5 % of selections lose more; those of twice the scale do."""
    question = priced("most_frequent", domain=whole(0, 63), epsilon="0.2")
    part = part_noise(question)[0]
    scores = [0] * 63 + [part.half_width]
    lost = [
        sum(selecting(3, wrong)(scores, part.scale) != 63 for _ in range(400)) for wrong in (1, 2)
    ]

    assert lost[0] <= binom.isf(ALPHA, 400, 0.025)
    assert lost[1] > binom.isf(ALPHA, 400, 0.025)


# -- variance --------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, SUBSTITUTE])
def test_a_variance_is_that_of_the_answers_and_its_interval_covers(adjacency: Adjacency) -> None:
    question = priced("variance", adjacency, epsilon="0.5")
    values = np.repeat(np.arange(30), UNIFORM)
    exact = draw_release(question, UNIFORM, noise=exactly)
    noise = simulated(NoiseKind.LAPLACE, 2)
    found = [draw_release(question, UNIFORM, noise=noise) for _ in range(100)]

    assert exact.values == pytest.approx((values.var(), values.std()))
    assert exact.labels == ("variance", "standard deviation")
    missed = sum(not each.low[0] <= values.var() <= each.high[0] for each in found)
    assert missed <= binom.isf(ALPHA, 100, 0.05)
    assert np.median([each.high[0] - each.low[0] for each in found]) < 20


@pytest.mark.parametrize(
    ("query", "domain", "says"),
    [
        ("median", Choice(("a", "b")), "no numbers to order"),
        ("median", Boolean(), "no numbers to order"),
        ("quantile 0.0", whole(0, 3), "above 0"),
        ("quantile 1.5", whole(0, 3), '"quantile 0.9"'),
        ("variance", Boolean(), "ask for the mean"),
        ("variance", whole(0, 70_000), "scale them"),
        ("most_frequent", whole(0, 70_000), "at most 65,536"),
        ("median", whole(0, 70_000), "at most 65,536"),
    ],
)
def test_a_query_without_meaning_is_refused(query: str, domain: Choice | Number, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        priced(query, domain=domain)


def test_one_quantile_has_one_canonical_form() -> None:
    forms = {priced(each).canonical for each in ("median", "quantile 0.5", " quantile  0.50 ")}

    assert len(forms) == 1
    assert all(one != two for one, two in pairwise([*forms, priced("quantile 0.51").canonical]))
