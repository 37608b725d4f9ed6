"""Open strings above a threshold: what one person has passes with delta at most; intervals cover.

Statistical tests state alpha, are seeded where the noise is not the system's, and reject a wrong
threshold and a wrong interval.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from veilcount_aggregator.queries.named_strings import name_strings
from veilcount_aggregator.releases.budget_ledger import load_releases
from veilcount_aggregator.store import open_store
from veilcount_analysis.errors import QueryError
from veilcount_analysis.mechanisms.candidate_search import Candidates
from veilcount_analysis.releases import NoiseKind, PricedQuery, Release, draw_release, part_noise
from veilcount_analysis.releases.noise import noise_distribution
from veilcount_analysis.releases.person_loss import person_losses
from veilcount_analysis.releases.price import period_budget
from veilcount_analysis.releases.priced_query import price_query
from veilcount_analysis.series.series import Series
from veilcount_shared import Collection, SystemRandomSource, parse_collections
from veilcount_shared.collection import Adjacency
from veilcount_shared.domain import OpenStrings
from veilcount_shared.periods import Unit

from ..curator_fixtures import OPEN, OVER, curator, fill_strings
from ..store.engines import ENGINES
from .release_fixtures import ADD_REMOVE, SUBSTITUTE, collection, whole

ALPHA = 1e-6
SMALL = OpenStrings("salt", 4)
DELTA = Fraction(1, 1000)  # as large as can be, so that it is seen
Counters = NDArray[np.int64]


def strings(
    domain: OpenStrings = SMALL,
    delta: Fraction = DELTA,
    *,
    adjacency: Adjacency = ADD_REMOVE,
    unit: Unit = Unit.USER,
    per_day: int = 1,
    answers: int | None = None,
) -> Collection:
    return collection(
        domain,
        adjacency,
        unit=unit,
        budget=Fraction(1),
        delta=delta,
        per_day=per_day,
        answers=answers,
    )


def priced(which: Collection, part: Fraction = Fraction(1), **days: str) -> PricedQuery:
    """Return the query at a part of a period's budget, rounded down to its grain."""
    rho = Fraction(int(period_budget(which) * part * 10**12), 10**12)
    return price_query({"query": "strings", "rho": rho, **days}, which)


def counters_of(which: Collection, counts: dict[int, int]) -> Counters:
    found = np.zeros(which.inputs, np.int64)
    for place, count in counts.items():
        found[place] = count
    return found


# -- the threshold ---------------------------------------------------------------------------------


def too_often(passed: int, runs: int, allowed: float) -> bool:
    """Tell whether more than an allowed share passed, with an error of ALPHA."""
    return bool(binom.sf(passed - 1, runs, allowed) < ALPHA)


def test_the_string_of_one_person_passes_with_delta_at_most() -> None:
    """With OpenDP's own noise; a threshold half as high is found to let it pass too often."""
    question = priced(strings(OpenStrings("salt", 14)))
    runs, allowed = question.collection.inputs, float(DELTA / 2)
    release = draw_release(question, np.ones(runs, np.int64))  # each by somebody else
    source = noise_distribution(NoiseKind.GAUSSIAN, release.noise[0].scale)
    noised = 1 + np.array(source.draw(runs, np.random.default_rng(1)))
    threshold = release.noise[0].threshold
    assert threshold is not None

    assert question.threshold_delta == pytest.approx(DELTA / 2, rel=1e-9)
    assert not too_often(len(release.labels), runs, allowed)
    assert too_often(int((noised >= threshold / 2).sum()), runs, allowed)


@pytest.mark.parametrize("cost", ["rho", "epsilon"])
@pytest.mark.parametrize("delta", [DELTA, Fraction(1, 10**9)])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, SUBSTITUTE])
@pytest.mark.parametrize("form", [(Unit.MONTH, 1, 3), (Unit.EVENT, 2, 5)])
def test_however_a_person_spreads_answers_delta_holds(
    cost: str, delta: Fraction, adjacency: Adjacency, form: tuple[Unit, int, int]
) -> None:
    """All of a person's answers in one place, or each in another; by the noise's exact tail."""
    unit, per_day, answers = form
    which = strings(delta=delta, adjacency=adjacency, unit=unit, per_day=per_day, answers=answers)
    amount = Fraction(1, 100) if cost == "epsilon" else Fraction(1, 10000)
    question = price_query({"query": "strings", cost: amount}, which)
    (part,) = part_noise(question)
    assert part.threshold is not None
    most = per_day * answers
    steps = np.arange(-int(60 * part.deviation), int(60 * part.deviation) + 1)
    exponent = np.abs(steps) / part.scale if cost == "epsilon" else (steps / part.scale) ** 2 / 2
    weights = np.exp(-exponent)
    for places in range(1, most + 1):
        count = most - places + 1  # the fullest place; the others have one answer each
        passes = [weights[steps >= part.threshold - each].sum() for each in (count, 1)]
        chance = (passes[0] + (places - 1) * passes[1]) / weights.sum()
        assert chance <= float(question.threshold_delta)


def test_releases_share_delta_as_they_share_the_budget() -> None:
    """All of a period's releases together have the threshold's half, over all of a person's."""
    which = strings(unit=Unit.MONTH, answers=2)
    days = {"from": "2026-01-10", "to": "2026-01-31"}
    shares = [priced(which, Fraction(part, 10), **days).threshold_delta for part in (1, 2, 7)]
    (loss,) = person_losses({which: [Fraction(0)] * which.periods}, [which])

    assert sum(shares) * which.answering == pytest.approx(DELTA / 2, rel=1e-9)
    assert loss.delta == DELTA


def test_what_is_below_the_threshold_is_nowhere_in_a_release() -> None:
    question = priced(strings(delta=Fraction(1, 10**12)))
    truth = counters_of(question.collection, {3: 1, 7: 10_000, 20: 12_345, 29: 2})
    release = draw_release(question, truth)
    (noised,) = release.noised

    assert noised[::2] == (7, 20)
    assert release.labels == ((1, 7), (2, 4))
    assert len(release.values) == len(release.low) == len(release.high) == 2
    assert "29" not in json.dumps(release.to_json()["noised"])


# -- names -----------------------------------------------------------------------------------------

DICTIONARY = [f"word {n}" for n in range(3000)]
PEOPLE = 200_000


def tally(which: Collection, shares: NDArray[np.float64], seed: int) -> tuple[Counters, Counters]:
    """Draw how many have each word, and the counters that they make."""
    generator = np.random.default_rng(seed)
    have = generator.multinomial(PEOPLE, shares)
    first = generator.binomial(have, 0.5)
    places = Candidates.from_texts(OpenStrings("salt"), DICTIONARY[: len(shares)]).places
    counters = np.zeros(which.inputs, np.int64)
    np.add.at(counters, places >> 20, first)
    np.add.at(counters, (1 << 20) + (places & (1 << 20) - 1), have - first)
    return have.astype(np.int64), counters


def test_strings_are_named_with_intervals_that_cover() -> None:
    """Each string is released and missed by its interval in at most one of twenty releases; an
    interval of a third of the width is rejected. Words that nobody has are not found."""
    which = strings(OpenStrings("salt"), Fraction(1, 10**6))
    question = priced(which)
    weights = 1 / np.arange(1, 1001)
    have, counters = tally(which, weights / weights.sum(), 2)
    truth = dict(zip(DICTIONARY, have.tolist(), strict=False))
    wanted = Candidates.from_texts(OpenStrings("salt"), DICTIONARY)
    missed, narrow, named = 0, 0, 0
    for _ in range(20):
        found = name_strings(which, draw_release(question, counters), wanted)
        for each in found.found:
            named += 1
            missed += not each.low <= truth[each.text] <= each.high
            narrow += abs(each.figure - truth[each.text]) > (each.high - each.low) / 6

    least = max(part.threshold or 0 for part in part_noise(question))
    assert named >= 20 * np.count_nonzero(have > 3 * least)
    assert not too_often(missed, named, 0.05)
    assert too_often(narrow, named, 0.05)
    assert found.by_chance < 0.1
    assert found.candidates == len(DICTIONARY)


def test_a_candidate_that_shares_a_bucket_with_a_frequent_string_is_not_named() -> None:
    """Its other half is of another string, too: both pass, and differ by more than chance."""
    which = strings(delta=Fraction(1, 10**6))
    frequent, other, planted = "menu", "key", ""
    places = dict.fromkeys((frequent, other), 0)
    for text in places:
        places[text] = SMALL.buckets(text)
    wanted = places[frequent] >> 4 << 4 | places[other] & 15
    planted = next(text for n in range(9999) if SMALL.buckets(text := f"word {n}") == wanted)
    truth = {
        places[frequent] >> 4: 50_000,
        16 + (places[frequent] & 15): 50_000,
        places[other] >> 4: 20_000,
        16 + (places[other] & 15): 20_000,
    }
    release = draw_release(priced(which), counters_of(which, truth))
    found = name_strings(which, release, Candidates.from_texts(SMALL, [planted, other, frequent]))

    assert [each.text for each in found.found] == [frequent, other]
    assert found.unnamed == 0
    only = name_strings(which, release, Candidates.from_texts(SMALL, [frequent]))
    assert only.unnamed == 2


def test_a_device_sends_one_bucket_of_either_half() -> None:
    which, randomness = strings(OpenStrings("salt")), SystemRandomSource()
    place = int(Candidates.from_texts(OpenStrings("salt"), ["otter"]).places[0])
    expected = {place >> 20, (1 << 20) + (place & (1 << 20) - 1)}
    sent = [which.reveal("otter", randomness) for _ in range(400)]

    assert set(sent) == expected
    assert binom.cdf(min(map(sent.count, expected)), 400, 0.5) > ALPHA / 2


@pytest.mark.parametrize("query", ["histogram", "sum", "most_frequent", {"count": ["otter"]}])
def test_other_queries_of_open_strings_are_refused(query: object) -> None:
    with pytest.raises(QueryError, match="query"):
        price_query({"query": query, "epsilon": 1}, strings(OpenStrings("salt")))


def test_listed_values_have_no_threshold() -> None:
    with pytest.raises(QueryError, match="histogram"):
        price_query({"query": "strings", "epsilon": 1}, collection(whole(0, 3), delta=DELTA))


@pytest.mark.parametrize("engine", ["sqlite", "redis"])
def test_neither_store_nor_journal_holds_a_rare_string(engine: str, tmp_path: Path) -> None:
    """Nine strings that hundreds have are released; that of one person is in no record of it."""
    which, journal = Series(parse_collections(OPEN, lambda _: [])["word"]), tmp_path / "journal"
    request = {"query": "strings", "rho": "0.01", "from": "2026-12-01", "to": "2026-12-01"}
    with ENGINES[engine](tmp_path) as empty:
        store = open_store(empty(), make=True)
        fill_strings(store, which, {f"word {n}": 300 + 20 * n for n in range(9)} | {"rare": 1})
        release = curator(store, journal).answer(which, request, OVER, "test").release
        truth = store.counters(which, list(store.report_counts(which)))
        (kept,) = (release.answer for release in load_releases(store, which.fingerprint))
        store.close()
    (rare,) = np.flatnonzero(truth == 1).tolist()

    assert np.count_nonzero(truth) == 19
    assert len(release.labels) == 18
    assert Release.from_json(kept) == release
    assert str(rare) not in json.dumps(kept) + journal.read_text("utf-8")
