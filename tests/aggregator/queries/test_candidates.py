"""Open strings, from counters in a store to rows: which candidates are found, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from veilcount_aggregator.queries import candidates
from veilcount_aggregator.queries.candidates import StoredSearches
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.store import Cell
from veilcount_analysis import mechanisms
from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import ShareEstimates
from veilcount_analysis.kinds.source import Tally
from veilcount_analysis.mechanisms.candidate_search import Candidates, open_domain
from veilcount_analysis.series.packed_rows import rows_from_messages
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.domain import OpenStrings

from ..web.api.deployment_fixtures import Deployment, deployment
from ..web.dashboard.page_fixtures import logged_in
from .simulated_reports import compare, counted, estimate, figures_of, send_inputs, send_rows

FILE = 'app = "acme"\n' + "".join(
    f'[{name}]\nquestion = "Which {name}?"\nepsilon = 4\nunit = "month"\nanswers = 1\n'
    f"from = 2026-11-01\nuntil = 2027-01-01\n{rest}\n"
    for name, rest in {
        "word": 'values = "open"\nsegments = {arm = ["A", "B"]}',
        "empty": 'values = "open"',
        "early": 'values = "open"\nsegments = {arm = ["A", "B"]}',
        "unseen": 'values = "open"',
        "paid": 'values = "open"',
        "letters": 'values = "open"\ndiscover = true',
        "theme": 'values = ["light", "dark"]',
    }.items()
)
HELD = {"walk": 2400, "ride": 1200, "bus  stop": 800, "café": 600}
RARE = [f"rare {number}" for number in range(1000)]  # each by one device
N = sum(HELD.values()) + len(RARE)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Some strings that many devices have, and many that one has."""
    now = datetime(2026, 12, 10, 12, tzinfo=UTC)
    with deployment(tmp_path_factory.mktemp("strings"), FILE, now=now) as made:
        domain = made.series("word").collection.domain
        assert isinstance(domain, OpenStrings)
        places = Candidates.from_texts(domain, [*HELD, *RARE]).places
        held = np.repeat(places, [*HELD.values(), *np.ones(len(RARE), int)])
        counted(send_inputs(made, "word", held[::2], period=0))
        counted(send_inputs(made, "word", held[1::2], period=1, segment=1, seed=2))
        yield made


def found(words: Deployment, name: str = "word", **params: Any) -> dict[str, tuple[float, float]]:
    """Return the interval of each string shown."""
    (series,) = estimate(words, name, **params).series
    return {str(row.of): (row.low, row.high) for row in figures_of(series.ranges[-1])}


def search(words: Deployment, **params: Any) -> dict[str, Any]:
    (series,) = estimate(words, "word", **params).series
    return series.facts


def test_candidates_that_many_devices_have_are_found_with_their_intervals(
    words: Deployment,
) -> None:
    """Space around a candidate and its Unicode form are those that a device removes."""
    named = ["walk", " ride ", "bus  stop", "cafe\u0301", "never", *RARE[:50]]

    shown = found(words, candidates=named)

    assert list(shown) == list(HELD)
    assert all(low < HELD[text] / N < high for text, (low, high) in shown.items())
    assert all(high - low < 0.06 for low, high in shown.values())
    assert search(words, candidates=named)["missing"] == ["never", *RARE[:50]]


def test_what_was_found_is_shown_without_candidates_and_nothing_is_tested_again(
    words: Deployment,
) -> None:
    assert list(found(words, candidates=list(HELD))) == list(HELD)
    tested = search(words)["tested"]

    assert list(found(words)) == list(HELD)
    assert search(words)["tested"] == tested
    assert search(words)["candidates"] == 0


def test_counters_are_estimated_without_a_store(words: Deployment) -> None:
    """What nobody named is not found; the contrast with a curator needs no list either."""
    series = words.series("word")
    store, texts = words.aggregator.store, ["never", "ride", "walk"]
    counters = store.counters(series, [Cell(0, 0), Cell(1, 1)])

    shares = mechanisms.estimate(series.collection, counters, candidates=texts)

    assert isinstance(shares, ShareEstimates)
    assert [texts[place] for place in shares.places] == ["walk", "ride"]
    assert shares.low[0] < HELD["walk"] / N < shares.high[0]
    assert mechanisms.estimate(series.collection, counters, candidates=["never"]).n == N
    for page in ("contrast", "budget", "privacy", "definition", "compare"):
        assert logged_in(words).get(f"/collections/word/{page}").status == 200, page


def test_a_comparison_states_that_no_string_is_found_yet(words: Deployment) -> None:
    counted(send_inputs(words, "early", np.arange(20) << 20, period=0))
    counted(send_inputs(words, "early", np.arange(20) << 20, period=0, segment=1))

    result = compare(words, "early", a="arm:A", b="arm:B")
    page = logged_in(words).get("/collections/early/compare")

    assert result.rows == []
    assert page.status == 200
    assert "No string is found yet: give values, the strings to compare." in page.text


def test_values_are_shown_whether_they_are_found_or_not(words: Deployment) -> None:
    shown = found(words, values=["ride", "never"])

    assert list(shown) == ["ride", "never"]
    low, high = shown["never"]
    assert low < 0 < high


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests are counted, and no counter is read."""
    nothing = np.array([], np.int64)
    monkeypatch.setattr(candidates, "found_places", lambda *_: nothing)


@pytest.mark.usefixtures("unread")
def test_a_test_counts_once_for_a_range_and_a_segment(words: Deployment) -> None:
    before = search(words)["tested"]
    new = [f"new {number}" for number in range(40)]

    first = search(words, candidates=new)["tested"]
    again = search(words, candidates=new[::-1])["tested"]
    other = search(words, candidates=new, to="2026-11-30")["tested"]
    segment = search(words, candidates=new, segment="arm:A")["tested"]

    assert first - before == pytest.approx(40, abs=1)
    assert again == first
    assert other - again == pytest.approx(40, abs=1)
    assert segment - other == pytest.approx(40, abs=1)


@pytest.mark.usefixtures("unread")
def test_a_call_spends_half_of_what_is_left_and_nothing_a_second_time(words: Deployment) -> None:
    """In any order of its candidates; one more is another call, and its chance is smaller."""
    searches = StoredSearches(words.aggregator.store, words.series("paid"))
    domain, nothing = open_domain(searches.series.collection), Tally(np.zeros(0, np.int64))
    many = [f"new {number}" for number in range(200)]

    def alpha(texts: list[str], period: int = 0) -> float:
        return searches.test(nothing, Candidates.from_texts(domain, texts), (period,)).alpha

    first, again, more, other = alpha(many), alpha(many[::-1]), alpha([*many, "x"]), alpha(many, 1)

    assert first == again == pytest.approx(0.125 / 200)
    assert more == pytest.approx(0.0625 / 201)
    assert other == pytest.approx(0.03125 / 200)


@pytest.mark.usefixtures("unread")
def test_many_tests_raise_the_share_that_is_found(words: Deployment) -> None:
    few = search(words)["least_share"] or 1

    many = search(words, candidates=[f"other {number}" for number in range(20_000)])

    assert (many["least_share"] or 0) > few * 1.05
    assert many["found"] == 0
    assert len(many["missing"]) == 100


def test_shares_over_time_and_of_segments_are_compared(words: Deployment) -> None:
    (series,) = estimate(words, "word", values="walk", by="month").series
    rows = [figures_of(each)[0] for each in series.ranges]
    difference = compare(words, "word", a="arm:A", b="arm:B", values=["walk", "ride"])

    assert [row.of for row in rows] == ["walk", "walk"]
    assert all(row.low < HELD["walk"] / N < row.high for row in rows)
    assert [row.value for row in difference.rows] == ["walk", "ride"]


@pytest.mark.parametrize(
    ("name", "params", "parameter", "fix"),
    [
        ("theme", {"candidates": "walk"}, "candidates", "lists its values"),
        ("theme", {"discover": "true"}, "discover", "lists its values"),
        ("word", {"discover": "true"}, "discover", "give candidates"),
        ("letters", {"candidates": "walk"}, "candidates", "discover=true"),
        ("letters", {"discover": "true", "values": "walk"}, "candidates", "either this or values"),
        ("word", {"candidates": ["a\u200b"]}, "candidates", "visible characters"),
        ("word", {"candidates": ["x" * 201]}, "candidates", "1 to 200"),
        ("word", {"values": ["\u202e"]}, "values", "visible characters"),
        ("word", {"candidates": "walk", "values": "walk"}, "candidates", "either this or values"),
        ("word", {"top": "3"}, "top", "give candidates or values"),
        ("word", {"group": "a:b"}, "group", "give candidates or values"),
        ("word", {"view": "consistent"}, "view", "view=raw"),
        ("word", {"page": "2"}, "page", "one page"),
        ("word", {"looks": "every"}, "looks", "looks=one"),
    ],
)
def test_a_query_that_open_strings_cannot_answer_is_refused_with_the_fix(
    words: Deployment, name: str, params: dict[str, str], parameter: str, fix: str
) -> None:
    with pytest.raises(QueryError) as refused:
        estimate(words, name, **params)

    assert refused.value.field == parameter
    assert fix in str(refused.value)


def test_strings_are_discovered_and_each_discovery_counts(words: Deployment) -> None:
    """Messages as devices make them; another dictionary is another test, the same one is not."""
    series = words.series("letters")
    draw, reports = SeededRandomSource(1), ["walk"] * 900 + ["ride"] * 600
    messages = [series.collection.randomize(text, draw) for text in reports]
    rows = rows_from_messages(series.collection, messages)
    counted(send_rows(words, "letters", rows))

    first = found(words, "letters", discover="true")
    again = estimate(words, "letters", discover="true").series[0]
    guided = estimate(words, "letters", discover="true", candidates=["walk", "hike"]).series[0]
    page = logged_in(words).get("/collections/letters?discover=true")

    assert list(first)[:2] == ["walk", "ride"]
    assert first["walk"][0] < 0.6 < first["walk"][1]
    assert first["ride"][0] < 0.4 < first["ride"][1]
    assert (again.facts["tested"], guided.facts["tested"]) == (1, 2)
    assert list(found(words, "letters"))[:2] == ["walk", "ride"]
    assert page.status == 200
    assert "A dictionary of likely strings" in page.text


def test_a_list_is_sent_as_a_body_and_a_page_takes_it_in_lines(words: Deployment) -> None:
    key = words.key(Role.ANALYST)
    body = json.dumps({"candidates": ["walk", "never"], "parameters": {"level": ["0.9"]}})

    answer = words.ask("POST", "/v1/collections/word/estimate", body.encode(), key=key)
    page = logged_in(words).get("/collections/word?candidates=walk%0Anever")

    assert answer.status == 200
    assert [row["of"] for row in answer.json["series"][0]["ranges"][0]["figures"]] == ["walk"]
    assert answer.json["level"] == 0.9
    assert page.status == 200, page.text
    assert "1 of 2 strings were found; not found: never" in page.text


def test_a_series_without_reports_or_strings_has_a_page(words: Deployment) -> None:
    assert found(words, "empty", candidates=["walk"]) == {}
    assert logged_in(words).get("/collections/empty").status == 200


def test_reports_of_strings_that_nobody_looked_for_have_a_page(words: Deployment) -> None:
    places = np.arange(3000) << 20
    counted(send_inputs(words, "unseen", places, period=0))
    counted(send_inputs(words, "unseen", places, period=1))

    page = logged_in(words).get("/collections/unseen")

    assert page.status == 200
    assert "No string is found yet" in page.text
    assert "No string is found yet" in logged_in(words).get("/").text
