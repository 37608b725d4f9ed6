"""The budget tab: the three epsilons, what they protect, who enforces them, how they compose."""

from __future__ import annotations

import re

import pytest

from tests.aggregator.api.deployment_fixtures import Deployment
from tests.aggregator.dashboard.page_fixtures import Page, Visitor, logged_in
from tests.aggregator.queries.simulated_reports import counted, send
from veilcount_aggregator.analysis.budget import budget
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.dashboard.budget import MOST_DRAWN, composition_chart


def big(page: Page) -> list[str]:
    """Return the three epsilons."""
    found = re.search(r'<dl class="facts big">(.*?)</dl>', page.html, re.DOTALL)

    assert found is not None
    return re.findall(r"<dd>([^<]*)<", found[1])


@pytest.mark.parametrize(
    ("name", "figures", "scope"),
    [
        ("theme", ["2", "2", "24"], "in which months a person answered is public"),
        ("opened", ["1", "1", "61"], "in which days a person answered is public"),
        ("once", ["1", "1", "1"], "whether a person answered is public"),
        ("quiet", ["2", "2", "4"], "hides use of the feature while the app runs, no more"),
        ("curated", ["1", "1", "1"], "values only"),
    ],
)
def test_event_day_and_user_are_shown_with_what_they_protect(
    analyst: Visitor, name: str, figures: list[str], scope: str
) -> None:
    page = analyst.get(f"/collections/{name}/budget")

    assert big(page) == figures
    assert scope in page.text
    assert "any 24 hours touch two" in page.text


def test_each_epsilon_bounds_what_an_attacker_guesses(analyst: Visitor) -> None:
    """Of three values at epsilon 2: e^2 / (e^2 + 2) and the like, never below a half."""
    text = analyst.get("/collections/theme/budget").text
    one, every = (
        float(re.search(pattern, text)[1])  # type: ignore[index] # it is there, or the test fails
        for pattern in (
            r"Whoever sees it guesses a constant yes or no right with at most (\S+) %",
            r"Whoever sees all 12 guesses a constant yes or no right with at most (\S+) %",
        )
    )

    assert 50 < one < 88.1 < every < 100


#: a claim: an address, and patterns of the text
CLAIMS = {
    "what device and server enforce, linked": (
        "theme/budget",
        "The device refuses before it draws: at most 12 answers",
        "The server refuses beyond epsilon 24 a pseudonym and campaign",
    ),
    "what the device alone enforces": (
        "opened/budget",
        "across days, under new pseudonyms, the device alone enforces",
    ),
    "one answer in total": (
        "once/budget",
        r"A person reveals at most epsilon 1 \(substitution\): one answer in the whole campaign\.",
    ),
    "units at one epsilon of a user": (
        "theme/budget",
        "The same epsilon of 24 a user",
        r"n = 12,000 persons \(pseudonyms of the campaign\)",
        "averaging altogether: one answer, frozen, however often it is sent",
    ),
    "delta": ("opened/budget?delta=0.000000001", "with delta = 0.000000001,"),
    "delta by default": ("opened/budget", "with delta = 0.000001,"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_page_states(analyst: Visitor, claim: str) -> None:
    path, *patterns = CLAIMS[claim]

    assert analyst.get(f"/collections/{path}").lacks(*patterns) == []


def test_mean_and_worst_are_for_analysts_and_the_histogram_for_admins(alone: Deployment) -> None:
    """A bar holds 20 pseudonyms or more."""
    counted(send(alone, "theme", [30, 10, 0], period=1))
    for person in range(25):
        for period in (1, 2):
            pseudonym = bytes([person]) * 16
            report = alone.report("theme", period=period, slot=period, pseudonym=pseudonym)
            counted(alone.verdicts(report))
    analyst, admin = logged_in(alone), logged_in(alone, Role.ADMIN)
    pages = [each.get("/collections/theme/budget") for each in (analyst, admin)]
    for page in pages:
        assert "65 pseudonyms have spent epsilon 2.76923 on average, 4 at most" in page.text
    assert "Only admins see the distribution." in pages[0].text
    assert "spent" not in pages[0].charts
    picture = pages[1].charts["spent"]
    assert picture["labels"] == ["1", "2"]
    assert picture["parts"][0]["values"] == [40, 25]


def test_one_bar_is_a_sentence(answered: Deployment) -> None:
    page = logged_in(answered, Role.ADMIN).get("/collections/theme/budget")

    assert "All of them: 1 answer, at most epsilon 2 each." in page.text
    assert "spent" not in page.charts


def test_figures_of_fewer_than_20_pseudonyms_are_withheld(alone: Deployment) -> None:
    counted(send(alone, "theme", [9, 10, 0], period=1))
    page = logged_in(alone, Role.ADMIN).get("/collections/theme/budget")

    assert "fewer than 20 pseudonyms: none is shown" in page.text
    assert "in the mean" not in page.text


def test_counts_of_a_central_collection_are_withheld(answered: Deployment) -> None:
    """Under add-remove it would reveal whether one person took part."""
    page = logged_in(answered, Role.ADMIN).get("/collections/visits/budget")

    assert big(page)[0] == "1"
    assert "pseudonyms have spent" not in page.text
    assert "n = 10,000 persons (assumed" in page.text


def test_the_plain_sum_is_an_upper_bound_of_the_composition(analyst: Visitor) -> None:
    picture = analyst.get("/collections/opened/budget").charts["composed"]
    plain, together = (part["values"] for part in picture["parts"])

    assert plain == picture["parts"][0]["x"]
    assert all(sum_ >= less for sum_, less in zip(plain, together, strict=True))
    assert together[-1] < plain[-1] == 61


def test_a_smaller_delta_costs_more_and_is_stated(analyst: Visitor) -> None:
    usual, strict = (
        analyst.get(f"/collections/opened/budget{query}") for query in ("", "?delta=0.000000001")
    )
    ends = [page.charts["composed"]["parts"][-1]["values"][-1] for page in (usual, strict)]

    assert ends[0] < ends[1]
    assert strict.field("delta") == "0.000000001"


def test_the_averaging_attack_grows_with_fresh_answers_and_not_with_a_frozen_one(
    analyst: Visitor,
) -> None:
    """A yes or no at epsilon 1: 73 % after one, 99.6 % after 30."""
    picture = analyst.get("/collections/opened/budget").charts["attack"]
    fresh, frozen = (part["values"] for part in picture["parts"])
    seen = picture["parts"][0]["x"]

    assert seen == [1, 7, 30, 61]
    assert fresh[:3] == pytest.approx([0.7311, 0.9106, 0.9961], abs=5e-5)
    assert frozen == [frozen[0]] * 4 == [fresh[0]] * 4


def test_one_answer_in_total_does_not_compose(analyst: Visitor) -> None:
    page = analyst.get("/collections/once/budget")

    assert not page.charts.keys() & {"composed", "attack"}


def test_the_line_of_very_many_answers_ends_early(alone: Deployment) -> None:
    long = 'app = "a"\n[long]\nquestion = "?"\nboolean = true\nepsilon = 0.1\nunit = "event"\n'
    alone.push(long + "per_day = 4\nfrom = 2026-11-01\nuntil = 2027-08-01\n")
    page = logged_in(alone).get("/collections/long/budget")

    assert page.status == 200
    assert page.charts["composed"]["parts"][0]["x"][-1] == MOST_DRAWN


def test_units_are_compared_at_one_epsilon_of_a_user(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme/budget")
    local, central = (part["values"] for part in page.charts["units"]["parts"])

    assert local[0] > local[2] > local[4]
    assert all(one > two for one, two in zip(local, central, strict=True) if one and two)


def test_errors_are_those_of_the_requested_n(analyst: Visitor) -> None:
    some, more = (
        analyst.get(f"/collections/theme/budget?n={n}").charts["units"]["parts"][0]["values"]
        for n in (1000, 4000)
    )

    assert some[4] == pytest.approx(2 * more[4])


def test_definitions_are_chosen_by_a_link(answered: Deployment, analyst: Visitor) -> None:
    newest, oldest = (
        each.fingerprint for each in answered.aggregator.known().catalog.by_name["once"]
    )
    page = analyst.get("/collections/once/budget")
    older = analyst.get(f"/collections/once/budget?series={oldest}")

    assert f'series={newest}" aria-current="true"' in page.html
    assert f'series={oldest}" aria-current="true"' in older.html
    assert "n = 4,000 persons" in older.text


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("delta=2&n=50", "delta : give at least 1e-30 and less than 1"),
        ("delta=x&n=50", "delta : give a number, such as 0.5"),
        ("n=0", "n : give at least one person"),
    ],
)
def test_an_error_names_the_field_and_the_fix(analyst: Visitor, query: str, message: str) -> None:
    page = analyst.get(f"/collections/theme/budget?{query}")

    assert page.status == 400
    assert message in page.text
    assert page.field("n") == query.rpartition("n=")[2]


def test_a_central_collection_has_no_composition(answered: Deployment) -> None:
    """Nothing is randomized on its devices."""
    collection = answered.series("curated").collection

    found = budget(collection)

    assert composition_chart(collection, found, found.composition.delta) is None
