"""Open strings above a threshold: what one person has passes with delta at most; intervals cover.

Statistical tests state alpha, are seeded where the noise is not the system's, and reject a wrong
threshold and a wrong interval.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
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
from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection import Adjacency
from veilcount_shared.domain import OpenStrings
from veilcount_shared.periods import Unit

from ...vectors.conformance.reports import ListedRandomSource
from ..curator_fixtures import OPEN, OVER, curator, fill_strings
from ..store.engines import ENGINES
from .release_fixtures import ADD_REMOVE, SUBSTITUTE, collection, true_values, whole
from .test_queries import databases, neighbours

ALPHA = 1e-6
DOMAIN = OpenStrings("salt")
DELTA = Fraction(1, 1000)  # as large as can be, so that it is seen
Counters = NDArray[np.int64]


def strings(
    delta: Fraction = DELTA,
    *,
    adjacency: Adjacency = ADD_REMOVE,
    unit: Unit = Unit.USER,
    per_day: int = 1,
    answers: int | None = None,
) -> Collection:
    return collection(
        DOMAIN,
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


def counters_of(counts: dict[int, int]) -> Counters:
    return np.array([list(counts), list(counts.values())], np.int64)


# -- the threshold ---------------------------------------------------------------------------------


def too_often(passed: int, runs: int, allowed: float) -> bool:
    """Tell whether more than an allowed share passed, with an error of ALPHA."""
    return bool(binom.sf(passed - 1, runs, allowed) < ALPHA)


def test_the_string_of_one_person_passes_with_delta_at_most() -> None:
    """With OpenDP's own noise; a threshold half as high is found to let it pass too often."""
    question, runs, allowed = priced(strings()), 1 << 15, float(DELTA / 2)
    release = draw_release(question, counters_of(dict.fromkeys(range(runs), 1)))
    source = noise_distribution(NoiseKind.GAUSSIAN, release.noise[0].scale)
    noised = 1 + np.array(source.draw(runs, np.random.default_rng(1)))
    threshold = release.noise[0].threshold
    assert threshold is not None

    assert question.threshold_delta == pytest.approx(DELTA / 2, rel=1e-9)
    assert not too_often(len(release.labels), runs, allowed)
    assert too_often(int((noised >= threshold / 2).sum()), runs, allowed)


@pytest.mark.parametrize("delta", [DELTA, Fraction(1, 10**9)])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, SUBSTITUTE])
@pytest.mark.parametrize("form", [(Unit.MONTH, 1, 3), (Unit.EVENT, 2, 5)])
def test_however_a_person_spreads_answers_delta_holds(
    delta: Fraction, adjacency: Adjacency, form: tuple[Unit, int, int]
) -> None:
    """All of a person's answers in one place, or each in another; by the noise's exact tail."""
    unit, per_day, answers = form
    which = strings(delta, adjacency=adjacency, unit=unit, per_day=per_day, answers=answers)
    question = price_query({"query": "strings", "rho": Fraction(1, 10000)}, which)
    (part,) = part_noise(question)
    assert part.threshold is not None
    most = per_day * answers
    steps = np.arange(-int(60 * part.deviation), int(60 * part.deviation) + 1)
    weights = np.exp(-((steps / part.scale) ** 2) / 2)
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
    truth = counters_of({3: 1, 7: 10_000, 20: 12_345, 29: 2})
    release = draw_release(question, truth)
    (noised,) = release.noised

    assert noised[::2] == (7, 20)
    assert release.labels == (7, 20)
    assert len(release.values) == len(release.low) == len(release.high) == 2
    assert "29" not in json.dumps(release.to_json()["noised"])


# -- names -----------------------------------------------------------------------------------------

DICTIONARY = [f"word {n}" for n in range(3000)]
PEOPLE = 200_000


def tally(shares: NDArray[np.float64], seed: int) -> tuple[Counters, Counters]:
    """Draw how many have each word, and the counters that they make."""
    have = np.random.default_rng(seed).multinomial(PEOPLE, shares).astype(np.int64)
    places = Candidates.from_texts(DOMAIN, DICTIONARY[: len(shares)]).places
    return have, np.stack([places, have])


def test_strings_are_named_with_intervals_that_cover() -> None:
    """Each string is released and missed by its interval in at most one of twenty releases; an
    interval of a third of the width is rejected. Words that nobody has are not found."""
    which = strings(Fraction(1, 10**6))
    question = priced(which)
    weights = 1 / np.arange(1, 1001)
    have, counters = tally(weights / weights.sum(), 2)
    truth = dict(zip(DICTIONARY, have.tolist(), strict=False))
    wanted = Candidates.from_texts(DOMAIN, DICTIONARY)
    missed, narrow, named = 0, 0, 0
    for _ in range(20):
        found = name_strings(which, draw_release(question, counters), wanted)
        for each in found.found:
            named += 1
            missed += not each.low <= truth[each.text] <= each.high
            narrow += abs(each.figure - truth[each.text]) > (each.high - each.low) / 6

    least = max(part.threshold or 0 for part in part_noise(question))
    assert named >= 20 * np.count_nonzero(have > 2 * least)
    assert not too_often(missed, named, 0.05)
    assert too_often(narrow, named, 0.05)
    assert found.by_chance == pytest.approx(3000 * (len(found.found) + found.unnamed) / 2**40)
    assert found.candidates == len(DICTIONARY)


def test_a_candidate_is_found_if_all_bits_of_its_hash_were_released() -> None:
    """One with the first half of a frequent string's, and the second of another's, is none."""
    which = strings(delta=Fraction(1, 10**6))
    frequent, other, third = Candidates.from_texts(DOMAIN, ["menu", "key", "otter"]).places.tolist()
    mixed = other >> 20 << 20 | third & (1 << 20) - 1
    truth = counters_of({frequent: 50_000, mixed: 20_000})
    release = draw_release(priced(which), truth)
    found = name_strings(which, release, Candidates.from_texts(DOMAIN, ["key", "menu", "otter"]))

    assert [each.text for each in found.found] == ["menu"]
    assert found.unnamed == 1


def test_a_device_sends_the_forty_bits_of_its_string_and_draws_nothing() -> None:
    which, randomness = strings(), ListedRandomSource([])
    place = int(Candidates.from_texts(DOMAIN, ["otter"]).places[0])

    assert which.reveal("otter", randomness) == place
    assert which.pack(place) == hashlib.sha256(b"salt\0otter").digest()[:5]


def test_no_neighbour_is_farther_than_the_sensitivity_and_one_is_as_far() -> None:
    """All databases of up to three answers of three strings, and all their neighbours."""
    for adjacency in (ADD_REMOVE, SUBSTITUTE):
        question = priced(strings(adjacency=adjacency))
        (part,) = question.parts
        largest = {1: 0, 2: 0}
        for database in databases(3):
            for neighbour in neighbours(database, 3, adjacency):
                pair = [counts_of(question, each) for each in (database, neighbour)]
                gaps = [abs(pair[0][each] - pair[1][each]) for each in range(3)]
                largest = {
                    power: max(most, sum(gap**power for gap in gaps))
                    for power, most in largest.items()
                }

        assert largest == {1: part.sensitivity, 2: part.squared_sensitivity}


def counts_of(question: PricedQuery, database: tuple[int, ...]) -> Counter[int]:
    """Return the counts that noise is added to."""
    ((*turns,),) = true_values(question, counters_of(Counter(database)))
    return Counter(dict(zip(turns[::2], turns[1::2], strict=True)))


@pytest.mark.parametrize("query", ["histogram", "sum", "most_frequent", {"count": ["otter"]}])
def test_other_queries_of_open_strings_are_refused(query: object) -> None:
    with pytest.raises(QueryError, match="query"):
        price_query({"query": query, "epsilon": 1}, strings())


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
    (rare,) = truth[0, truth[1] == 1].tolist()

    assert truth.shape == (2, 10)
    assert len(release.labels) == 9
    assert Release.from_json(kept) == release
    assert str(rare) not in json.dumps(kept) + journal.read_text("utf-8")
