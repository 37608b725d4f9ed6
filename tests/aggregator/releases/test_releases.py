"""Releases: intervals of exact coverage; nothing that was not paid for leaves a curator."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest

import veilcount_aggregator.releases.curator as curating
from veilcount_aggregator.errors import ReleasesLocked
from veilcount_aggregator.releases.budget_ledger import load_releases, release_records
from veilcount_aggregator.releases.curator import Curator, DrawFailed
from veilcount_aggregator.releases.privacy_filter import PrivacyFilter
from veilcount_aggregator.store import Store
from veilcount_analysis.releases import NoiseKind, Release, draw_release, part_noise, quantile
from veilcount_shared.domain import Boolean, Choice

from ..curator_fixtures import AGE, OVER, curator, fill, series, wanted
from .release_fixtures import SUBSTITUTE, Counters, ask, collection, simulated, whole

AGES: Counters = np.array([0, 3, 0, 5, 2, 0, 7, 1])  # of 0..7; n = 18, sum = 71


def off_by(*steps: int) -> Callable[[Sequence[int], float], list[int]]:
    left = list(steps)

    def noise(true: Sequence[int], scale: float) -> list[int]:
        step = left.pop(0)
        return [each + step for each in true]

    return noise


def exact_distribution(scale: float, edge: int) -> dict[int, float]:
    q = np.exp(-1 / scale)
    return {x: float((1 - q) / (1 + q) * q ** abs(x)) for x in range(-edge, edge + 1)}


# -- contents --------------------------------------------------------------------------------------


def test_values_are_the_true_ones_and_their_noise() -> None:
    ages = collection(whole(0, 7))
    every = draw_release(ask(ages, "histogram"), AGES, noise=off_by(-2))
    some = draw_release(ask(ages, "age >= 4"), AGES, noise=off_by(3))
    total = draw_release(ask(ages, "sum"), AGES, noise=off_by(-5))

    assert every.labels == tuple(range(8))
    assert every.values == (-2, 1, -2, 3, 0, -2, 5, -1)
    assert (some.labels, some.values) == (("count",), (13,))
    assert total.values == (3 + 15 + 8 + 42 + 7 - 5,)


def test_a_mean_of_public_n_is_a_noised_sum_over_it() -> None:
    released = draw_release(
        ask(collection(whole(0, 7), SUBSTITUTE), "mean", month=1), AGES, noise=off_by(9)
    )

    assert released.n == 18
    assert released.values == pytest.approx((84 / 18,))
    assert released.noised == ((84,),)


def moved(*steps: int) -> Callable[[Sequence[int], float], list[int]]:
    """Return noise that moves each number by a step of its own."""
    return lambda true, scale: [one + step for one, step in zip(true, steps, strict=True)]


def test_a_mean_of_unknown_n_follows_from_the_distances_to_both_ends() -> None:
    released = draw_release(ask(collection(whole(0, 7)), "mean"), AGES, noise=moved(4, -2))

    assert released.n is None
    assert released.noised == ((75 + 4, 18 * 7 - 75 - 2),)
    assert released.values == pytest.approx((7 * 79 / (18 * 7 + 2),))


def test_no_mean_leaves_the_range_whatever_the_noise() -> None:
    ages = collection(whole(-3, 7))
    none: Counters = np.zeros(11, np.int64)
    for steps in ((900, 0), (-900, 0), (0, -50), (5, 0), (-900, 950), (950, -900)):
        released = draw_release(ask(ages, "mean"), none, noise=moved(*steps))

        assert -3 <= released.low[0] <= released.values[0] <= released.high[0] <= 7
    empty = draw_release(ask(collection(whole(-3, 7), SUBSTITUTE), "mean", month=1), none)
    assert (empty.low, empty.values, empty.high) == ((-3,), (2,), (7,))


def test_under_add_remove_nothing_says_how_many_answered() -> None:
    for query in ("histogram", "count", "sum", "mean", "age < 3"):
        question = ask(collection(whole(0, 7)), query)
        one, two = (
            draw_release(question, counters, noise=lambda true, scale: [4] * len(true))
            for counters in (AGES, AGES + np.eye(8, dtype=np.int64)[7])
        )

        assert one == two
        assert one.n is None


def test_a_release_is_plain_data() -> None:
    released = draw_release(
        ask(collection(Choice(("a", "b")), SUBSTITUTE), "histogram", "0.7"), AGES[:2]
    )
    document = json.loads(json.dumps(released.to_json()))

    assert Release.from_json(document) == released
    assert document["labels"] == ["a", "b"]
    assert document["micro_epsilon"] == 700_000
    assert document["person_epsilon"] == "21/10"
    assert document["adjacency"] == "substitute"
    assert document["noise"][0]["sensitivity"] == 2
    assert (document["first_period"], document["last_period"]) == (0, 2)


@pytest.mark.parametrize("counters", [AGES[:7], AGES - 1, AGES.reshape(2, 4)])
def test_counters_that_are_none_are_refused(counters: Counters) -> None:
    with pytest.raises(ValueError, match="8 counts"):
        draw_release(ask(collection(whole(0, 7)), "sum"), counters)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_is_a_probability(level: float) -> None:
    """95 % is 0.95."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        part_noise(ask(collection(Boolean()), "sum"), level)


# -- coverage, by the exact distribution -----------------------------------------------------------


def covers(released: Release, true: float) -> bool:
    return released.low[0] <= true <= released.high[0]


@pytest.mark.parametrize("epsilon", ["0.1", "0.7", "2"])
@pytest.mark.parametrize(("query", "true"), [("age >= 6", 8), ("sum", 75), ("age < 1", 0)])
def test_the_interval_of_a_count_or_sum_covers_with_95_percent(
    query: str, true: float, epsilon: str
) -> None:
    question = ask(collection(whole(0, 7)), query, epsilon)
    scale = part_noise(question)[0].scale
    chances = exact_distribution(scale, int(30 * scale) + 30)
    coverage = sum(
        chance
        for noise, chance in chances.items()
        if covers(draw_release(question, AGES, noise=off_by(noise)), true)
    )

    assert coverage >= 0.95


@pytest.mark.parametrize(
    "counters", [AGES, np.array([0, 0, 0, 0, 0, 0, 0, 2])], ids=["many", "top"]
)
def test_the_interval_of_a_mean_of_public_n_covers_with_95_percent(counters: Counters) -> None:
    question = ask(collection(whole(0, 7), SUBSTITUTE), "mean", month=1)
    true = float(counters @ np.arange(8)) / int(counters.sum())
    scale = part_noise(question)[0].scale
    coverage = sum(
        chance
        for noise, chance in exact_distribution(scale, int(30 * scale)).items()
        if covers(draw_release(question, counters, noise=off_by(noise)), true)
    )

    assert coverage >= 0.95


# -- quantiles -------------------------------------------------------------------------------------


def test_quantiles_of_exact_counts_are_the_quantiles() -> None:
    released = draw_release(ask(collection(whole(0, 7)), "histogram"), AGES, noise=off_by(0))
    wanted = {"1/100": 1, "1/6": 1, "1/4": 3, "4/9": 3, "1/2": 4, "3/4": 6, "99/100": 7}

    assert {share: quantile(released, Fraction(share)).value for share in wanted} == wanted


@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_a_quantile_s_interval_covers_with_95_percent(share: Fraction) -> None:
    """Seeded releases; Chernoff's bound leaves room, so misses stay well below 5 %."""
    counters: Counters = np.random.default_rng(7).multinomial(300, np.full(30, 1 / 30))
    question = ask(collection(whole(10, 39)), "histogram", "0.4")
    true = 10 + int(np.argmax(counters.cumsum() * share.denominator >= 300 * share.numerator))
    noise = simulated(NoiseKind.LAPLACE, 8)
    found = [quantile(draw_release(question, counters, noise=noise), share) for _ in range(100)]
    covered = sum(each.low <= true <= each.high for each in found)
    widths = [each.high - each.low for each in found]

    assert covered >= 0.95 * 100
    assert all(each.low <= each.value <= each.high for each in found)
    assert np.median(widths) < 15


def test_a_quantile_needs_the_histogram_of_a_number_and_a_share() -> None:
    themes = collection(Choice(("a", "b")))
    ages = collection(whole(0, 1))

    with pytest.raises(ValueError, match="histogram of a number"):
        quantile(draw_release(ask(themes, "histogram"), AGES[:2]), Fraction(1, 2))
    with pytest.raises(ValueError, match="histogram of a number"):
        quantile(draw_release(ask(ages, "sum"), AGES[:2]), Fraction(1, 2))
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantile(draw_release(ask(ages, "histogram"), AGES[:2]), Fraction(1))


def test_a_histogram_that_noise_has_emptied_knows_no_quantile() -> None:
    released = draw_release(ask(collection(whole(0, 7)), "histogram"), 0 * AGES, noise=off_by(-1))
    median = quantile(released, Fraction(1, 2))

    assert (median.low, median.high) == (0, 7)


# -- true counts leave a curator in a release alone ------------------------------------------------


TRUTH = (4241, 2203, 1009, 466)  # 7919 answers
MARKED = re.compile(rf"(?<![\w.])({'|'.join(map(str, (*TRUTH, sum(TRUTH))))})(?!\w)")


def test_nothing_is_released_from_a_store_that_lacks_acknowledged_reports(
    asker: Curator, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also not what was released before; and once the store is accepted, it is."""
    asker.answer(AGE, wanted("count", "0.25"), OVER, "")
    monkeypatch.setattr(store, "losses", lambda: ["shard 0: it lacks 1 of 9 acknowledged commits"])
    with pytest.raises(ReleasesLocked, match="veilcount store accept"):
        asker.answer(AGE, wanted("count", "0.25"), OVER, "")
    monkeypatch.undo()

    assert not asker.answer(AGE, wanted("count", "0.25"), OVER, "").charged


RECORDS_ONLY = {
    "losses",
    "records",
    "record_count",
    "generation",
    "generations",
    "change_records",
    "incarnation",
}


class Unreadable:
    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        assert name in RECORDS_ONLY, f"{name} reads answers"
        return getattr(self._store, name)


def test_a_dry_run_reads_no_answer_and_costs_nothing(asker: Curator, store: Store) -> None:
    asker.answer(AGE, wanted("count", "0.25"), OVER, "")
    blind = Curator(PrivacyFilter(Unreadable(store), asker.filter.journal))
    before = store.generation()
    dry = blind.dry_run(AGE, wanted("mean", "0.5", 0, 4))

    assert dry.question.charges == dict.fromkeys(range(5), 500_000)
    assert [part.name for part in dry.noise] == ["distances"]
    assert [account.remaining for account in dry.accounts] == [Fraction(3, 4), 1, 1, 1, 1]
    assert store.generation() == before
    with pytest.raises(DrawFailed, match="AssertionError"):
        blind.answer(AGE, wanted("mean", "0.5"), OVER, "")


def test_a_dry_run_shows_the_noise_of_the_release(asker: Curator) -> None:
    dry = asker.dry_run(AGE, wanted("histogram", "0.5"))
    result = asker.answer(AGE, wanted("histogram", "0.5"), OVER, "")

    assert dry.noise == result.release.noise
    assert dry.question.canonical == result.release.canonical


def test_a_period_of_no_answers_is_released_like_any(asker: Curator) -> None:
    result = asker.answer(AGE, wanted("histogram", 1, 5), OVER, "")

    assert len(result.release.values) == 4
    assert result.release.n is None


@pytest.mark.parametrize(("adjacency", "n"), [('"add-remove"', None), ('"substitute"', 7919)])
def test_n_is_released_only_where_all_neighbours_have_the_same(
    store: Store, journal: Path, adjacency: str, n: int | None
) -> None:
    which = series(adjacency=adjacency)
    fill(store, which, TRUTH)
    asker = curator(store, journal)
    result = asker.answer(which, wanted("mean", "0.00001"), OVER, "")
    sinks = repr((result, asker)) + journal.read_text() + repr(release_records(store))

    assert result.release.n == n
    assert [int(found) for found in MARKED.findall(sinks)] == [n] * sinks.count("7919")


def test_a_fault_between_counts_and_noise_carries_no_count(
    store: Store, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object, counters: np.ndarray[Any, Any]) -> None:
        raise ValueError(f"cannot add noise to {counters.tolist()}")

    fill(store, AGE, TRUTH)
    monkeypatch.setattr(curating, "draw_release", fail)
    with pytest.raises(DrawFailed) as failed:
        curator(store, journal).answer(AGE, wanted("histogram", 1), OVER, "")

    assert str(failed.value).startswith("ValueError at ")
    assert failed.value.__context__ is failed.value.__cause__ is None
    assert not MARKED.search(str(failed.value) + "".join(seen(failed.value.__traceback__)))
    assert load_releases(store) == []


def seen(trace: TracebackType | None) -> Iterator[str]:
    while trace is not None:
        if "veilcount_aggregator" in trace.tb_frame.f_code.co_filename:
            yield repr(trace.tb_frame.f_locals)
        trace = trace.tb_next
