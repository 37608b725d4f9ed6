"""Strings named and counted in (epsilon, delta): exact enumerations of what one person changes.

Every outcome of the noise is released by the product; probabilities are decimals of 60 digits. Each
check rejects a planted fault: a threshold one lower, delta / c, noise that is clamped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import combinations_with_replacement
from math import factorial, prod
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy.stats import chi2

from veilcount_aggregator.errors import InsufficientBudget
from veilcount_aggregator.releases.budget_ledger import ReleasePrice, load_releases, require_budget
from veilcount_aggregator.store import open_store
from veilcount_analysis.errors import QueryError
from veilcount_analysis.releases import PricedQuery, draw_release, part_noise, price_query
from veilcount_analysis.releases.opendp_noise import add_noise
from veilcount_analysis.releases.person_loss import person_losses
from veilcount_analysis.releases.price import period_budget
from veilcount_analysis.releases.truncated_laplace import noise_reach, truncated
from veilcount_analysis.series.series import Series
from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection import Adjacency, Noise
from veilcount_shared.domain import OpenStrings
from veilcount_shared.periods import Unit

from ..curator_fixtures import OPEN, OVER, curator, fill_strings
from ..store.engines import ENGINES
from .release_fixtures import ADD_REMOVE, SUBSTITUTE, collection

DELTA = Fraction(1, 10**6)
ALPHA = 1e-6
#: outcomes of a count's release, and their probabilities; None: it is not released
Outcomes = dict[int | None, Decimal]
EXACT = Context(prec=60)


@pytest.fixture(autouse=True)
def sixty_digits() -> Iterator[None]:
    with localcontext(EXACT):
        yield


def strings(
    budget: Fraction = Fraction(1),
    adjacency: Adjacency = ADD_REMOVE,
    *,
    per_day: int = 1,
    answers: int | None = None,
    unit: Unit = Unit.USER,
    noise: Noise | None = Noise.LAPLACE,
) -> Collection:
    return collection(
        OpenStrings("salt"),
        adjacency,
        unit=unit,
        budget=budget,
        delta=DELTA,
        per_day=per_day,
        answers=answers,
        noise=noise,
    )


def ask(which: Collection, epsilon: object, **days: str) -> PricedQuery:
    return price_query({"query": "strings", "epsilon": epsilon, **days}, which)


def person_of(answers: int, epsilon: Fraction, adjacency: Adjacency = ADD_REMOVE) -> PricedQuery:
    """Return the query where a person of so many answers has (epsilon, DELTA) in all."""
    unit = Unit.USER if answers == 1 else Unit.EVENT
    each = Fraction(int(epsilon / answers * 10**6), 10**6)
    which = strings(
        each, adjacency, unit=unit, per_day=answers, answers=None if answers == 1 else 1
    )
    question = ask(which, each)
    assert question.person_contributions == answers
    assert question.person_epsilon == each * answers
    assert question.threshold_delta == DELTA
    return question


# -- the distribution of a release ----------------------------------------------------------------

Distribution = dict[int, Decimal]


def redrawn(scale: float, reach: int) -> Distribution:
    """Return the noise as it should be: the discrete Laplace distribution within the reach."""
    weights = {x: (-abs(x) / Decimal(scale)).exp() for x in range(-reach, reach + 1)}
    whole = sum(weights.values())
    return {x: weight / whole for x, weight in weights.items()}


def clamped(scale: float, reach: int) -> Distribution:
    """Return a planted fault: what is beyond the reach is moved to it."""
    distribution = redrawn(scale, 40 * reach)
    ends = {
        sign * reach: sum(p for x, p in distribution.items() if sign * x >= reach)
        for sign in (-1, 1)
    }
    return {x: distribution[x] for x in range(-reach + 1, reach)} | {
        x: Decimal(p) for x, p in ends.items()
    }


def outcomes(
    question: PricedQuery, count: int, distribution: Distribution, lower: int = 0
) -> Outcomes:
    """Release as many strings of this count as there is noise; `lower`: a planted fault.

    A string that nobody has is no counter, so it is not released under any noise.
    """
    (part,) = part_noise(question)
    released: dict[int, int] = {}
    if count and lower:
        passing = ((place, count + x) for place, x in enumerate(distribution))
        released = {place: n for place, n in passing if n >= (part.threshold or 0) - lower}
    elif count:
        counters = np.array([range(len(distribution)), [count] * len(distribution)])
        (turns,) = draw_release(question, counters, noise=lambda *_: list(distribution)).noised
        released = dict(zip(turns[::2], turns[1::2], strict=True))
    chances: Outcomes = {}
    for place, chance in enumerate(distribution.values()):
        outcome = released.get(place)
        chances[outcome] = chances.get(outcome, Decimal(0)) + chance
    return chances


def distribution_of(
    question: PricedQuery, kind: Callable[[float, int], Distribution] = redrawn
) -> Distribution:
    (part,) = part_noise(question)
    assert part.threshold is not None
    return kind(part.scale, part.threshold - 1)


def loss(one: Outcomes, other: Outcomes, epsilon: Fraction) -> Decimal:
    """Return the delta at epsilon: the hockey-stick divergence, the larger of both ways."""
    factor = (Decimal(epsilon.numerator) / epsilon.denominator).exp()

    def way(p: Outcomes, q: Outcomes) -> Decimal:
        zero = Decimal(0)
        return sum((max(zero, p[o] - factor * q.get(o, zero)) for o in p), zero)

    return max(way(one, other), way(other, one))


def worst(
    question: PricedQuery,
    epsilon: Fraction,
    answers: int,
    distribution: Distribution,
    lower: int = 0,
) -> Decimal:
    """Return the largest delta of `answers` more answers in one string, over all counts."""
    reach = max(distribution)
    distributions = [
        outcomes(question, count, distribution, lower) for count in range(3 * reach + answers + 1)
    ]
    return max(
        loss(distributions[n], distributions[n + answers], epsilon) for n in range(3 * reach + 1)
    )


def spread(
    question: PricedQuery, epsilon: Fraction, answers: int, distribution: Distribution, count: int
) -> Decimal:
    """Return the delta of one more answer in each of several strings of this count.

    By the losses of one: few differ, so the products of all are enumerated by how often each is.
    """
    one, two = outcomes(question, count, distribution), outcomes(question, count + 1, distribution)
    factor = (Decimal(epsilon.numerator) / epsilon.denominator).exp()
    zero, largest = Decimal(0), Decimal(0)
    for p, q in ((one, two), (two, one)):
        masses: dict[Decimal, list[Decimal]] = {}  # by q / p, rounded: those that are equal
        for outcome, mass in p.items():
            other = q.get(outcome, zero)
            group = masses.setdefault(round(other / mass, 40), [zero, zero])
            group[0], group[1] = group[0] + mass, group[1] + other
        delta = zero
        for chosen in combinations_with_replacement(list(masses.values()), answers):
            times = Counter(map(id, chosen))
            ways = factorial(answers) // prod(map(factorial, times.values()))
            left, right = prod(g[0] for g in chosen), prod(g[1] for g in chosen)
            delta += ways * max(zero, left - factor * right)
        largest = max(largest, delta)
    return largest


# -- one answer a person --------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "people"), [("1", 15), ("0.5", 26), ("2", 8), ("0.1", 110)])
def test_a_release_keeps_epsilon_and_delta_whatever_the_count(epsilon: str, people: int) -> None:
    """By all counts up to three reaches. A threshold one lower, and noise that is clamped, do not
    keep it: the second where steps are small."""
    question, exact = person_of(1, Fraction(epsilon)), Fraction(epsilon)
    distribution = distribution_of(question)

    assert max(distribution) + 1 == people
    found = worst(question, exact, 1, distribution)
    assert 0 < found <= DELTA
    if epsilon == "1":
        assert float(found) == pytest.approx(3.8426e-7, rel=1e-4)
    assert worst(question, exact, 1, distribution, lower=1) > DELTA
    assert (
        worst(question, exact, 1, redrawn(part_noise(question)[0].scale, max(distribution) - 1))
        > DELTA
    )
    if epsilon == "0.1":
        assert worst(question, exact, 1, distribution_of(question, clamped)) > DELTA


def test_the_reach_is_the_least_that_keeps_delta() -> None:
    for epsilon in ("0.01", "0.3", "1", "3"):
        for delta in (DELTA, Fraction(1, 10**9), Fraction(1, 1000)):
            scale = float(1 / Fraction(epsilon))
            reach = noise_reach(scale, delta)

            assert redrawn(scale, reach)[reach] <= Decimal(delta.numerator) / delta.denominator
            assert redrawn(scale, reach - 1)[reach - 1] > delta.numerator / Decimal(
                delta.denominator
            )


def test_noise_that_is_out_of_reach_is_drawn_again() -> None:
    """Each draw that is too far, and no other; the planted source draws 9 first."""
    drawn = [[9, 1, -9], [3, -9], [-3]]
    calls: list[Sequence[int]] = []

    def draw(true: Sequence[int], scale: float) -> list[int]:
        calls.append(true)
        return [one + two for one, two in zip(true, drawn[len(calls) - 1], strict=True)]

    assert truncated(draw, 3)([10, 20, 30], 1.0) == [13, 21, 27]
    assert calls == [[0, 0, 0], [0, 0], [0]]


def test_the_exact_sampler_draws_this_distribution() -> None:
    """Of 20,000 draws by OpenDP; rejects with ALPHA, and always rejects what is clamped."""
    runs, reach = 20_000, 3
    drawn = Counter(truncated(add_noise, reach)([0] * runs, 5.0))

    def statistic(distribution: Distribution) -> float:
        return sum(
            (drawn[x] - runs * float(p)) ** 2 / (runs * float(p)) for x, p in distribution.items()
        )

    limit = float(chi2.isf(ALPHA, 2 * reach))
    assert statistic(redrawn(5.0, reach)) < limit
    assert statistic(clamped(5.0, reach)) > limit


# -- several answers a person ---------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "answers"), [("1", 4), ("4", 12)])
def test_however_answers_are_spread_a_person_has_delta(epsilon: str, answers: int) -> None:
    """All in one string, or one in each of several. A reach of delta / c loses more in one."""
    question = person_of(answers, Fraction(epsilon))
    exact = question.person_epsilon
    assert exact is not None
    distribution = distribution_of(question)
    (part,) = part_noise(question)
    divided = noise_reach(part.scale, DELTA / answers)

    assert worst(question, exact, answers, distribution) <= DELTA
    for count in range(0, max(distribution) + 3, 5 if answers == 4 else 9):
        assert spread(question, exact, answers, distribution, count) <= DELTA
    planted = {1: 1.32e-6, 4: 9.6e-6}[int(epsilon)]
    lowered = planted_loss(part.scale, divided, answers, exact)
    assert float(lowered) == pytest.approx(planted, rel=0.01)
    assert float(DELTA) < lowered


def planted_loss(scale: float, reach: int, answers: int, epsilon: Fraction) -> Decimal:
    """Return the largest delta of answers in one string, released above this reach."""
    distribution, zero = redrawn(scale, reach), Decimal(0)

    def released(count: int) -> Outcomes:
        found: Outcomes = {None: zero}
        for noise, chance in distribution.items():
            key = count + noise if count and count + noise > reach else None
            found[key] = found.get(key, zero) + chance
        return found

    distributions = [released(count) for count in range(3 * reach + answers + 1)]
    return max(
        loss(distributions[n], distributions[n + answers], epsilon) for n in range(3 * reach + 1)
    )


def test_a_substitute_takes_an_answer_away_and_gives_another() -> None:
    """Of two strings, with half of epsilon and of delta each: 28 people."""
    question = person_of(1, Fraction(1), SUBSTITUTE)
    distribution = distribution_of(question)
    half = worst(question, Fraction(1, 2), 1, distribution)

    assert max(distribution) + 1 == 28
    assert half <= DELTA / 2
    assert worst(question, Fraction(1, 2), 1, redrawn(2.0, max(distribution) - 1)) > DELTA / 2


# -- the ledger -----------------------------------------------------------------------------------


def price_of(question: PricedQuery) -> ReleasePrice:
    """Return the charge as a ledger has it."""
    charges = {str(period): charge for period, charge in question.charges.items()}
    return ReleasePrice(question.canonical, charges, b"")


def test_releases_add_up_to_epsilon_and_to_delta_and_no_further() -> None:
    """Chosen by what is left, at random: of both sums the budget is the end, for a person of all
    periods too. Full deltas, a planted fault, would be many."""
    which = strings(unit=Unit.MONTH, answers=2)
    series, chance = Series(which), Random(3)
    charged: list[PricedQuery] = []
    refused = None
    while refused is None:
        epsilon = Fraction(chance.randrange(1, 300_000), 10**6)
        question = ask(which, epsilon, **{"from": "2026-02-01", "to": "2026-02-28"})
        try:
            require_budget(series, question.charges, list(map(price_of, charged)))
            charged.append(question)
        except InsufficientBudget as error:
            refused = error

    assert refused.remaining < epsilon
    assert sum(each.cost.amount for each in charged) <= period_budget(which) == 1
    deltas = [each.threshold_delta for each in charged]
    assert len(charged) > 3
    assert sum(deltas) * which.answering <= DELTA
    assert len(deltas) * DELTA > DELTA
    (loss_,) = person_losses({which: [Fraction(1)] * which.periods}, [which])
    assert (loss_.epsilon, loss_.rho, loss_.delta) == (Fraction(2), Fraction(0), DELTA)
    assert loss_.most_epsilon == 2


@pytest.mark.parametrize(
    ("noise", "request_", "field", "says"),
    [
        (Noise.LAPLACE, {"query": "strings", "rho": "0.01"}, "rho", "paid in epsilon"),
        (None, {"query": "strings", "epsilon": "0.1"}, "epsilon", 'noise = "laplace"'),
    ],
)
def test_a_budget_is_of_one_unit_and_the_other_is_refused_by_name(
    noise: Noise | None, request_: dict[str, object], field: str, says: str
) -> None:
    with pytest.raises(QueryError, match=says) as refused:
        price_query(request_, strings(noise=noise))

    assert refused.value.field == field


def test_a_count_of_these_answers_pays_epsilon_too() -> None:
    question = price_query({"query": "count", "epsilon": "0.25"}, strings())

    assert question.charges == {0: 250_000}
    assert question.rho is None


@pytest.mark.parametrize("engine", ["sqlite", "redis", "redis-cluster"])
def test_strings_are_released_from_a_store_in_epsilon(engine: str, tmp_path: Path) -> None:
    """Of fifty, one and no answers: what few have is in no record."""
    text = OPEN + 'noise = "laplace"\n'
    which = Series(parse_collections(text, lambda _: [])["word"])
    request = {"query": "strings", "epsilon": "1", "from": "2026-12-01", "to": "2026-12-01"}
    with ENGINES[engine](tmp_path) as empty:
        store = open_store(empty(), make=True)
        fill_strings(store, which, {"otter": 150, "rare": 1})
        fill_strings(store, which, {"otter": 7}, period=1)
        release = curator(store, tmp_path / "journal").answer(which, request, OVER, "test").release
        again = curator(store, tmp_path / "journal").answer(which, request, OVER, "test")
        (kept,) = load_releases(store, which.fingerprint)
        store.close()

    assert release.labels == (which.collection.domain.buckets("otter"),)  # type: ignore[union-attr]
    assert release.epsilon == 1
    assert abs(release.values[0] - 150) < 60
    assert (again.charged, again.release) == (False, release)
    assert kept.charges == {"0": 1_000_000}
