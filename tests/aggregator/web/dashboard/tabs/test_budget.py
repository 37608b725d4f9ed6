"""The budget tab: the three epsilons, what they protect, who enforces them, how they compose."""

from __future__ import annotations

import re

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.web.dashboard.budget import MOST_DRAWN

from ....queries.simulated_reports import counted, send
from ...api.deployment_fixtures import Deployment
from ..page_fixtures import Visitor, logged_in

#: an address, the epsilons of an event, a day and a user, and patterns of the text
PAGES = [
    (
        "theme/budget",
        ["2", "2", "24"],
        "in which months a person answered is public",
        "The device refuses before it draws: at most 12 answers",
        "One person can reveal at most epsilon 24 in the whole campaign: from all 12 answers, a",
        "Who enforces it The device",
        "Within any Epsilon In as long a time from any moment on month 2 4 3 months in a row 6 8",
        "Outlined: epsilon 24, which one person can reveal; filled: epsilon 2, which one pseudonym",
        "The server refuses beyond epsilon 24 a pseudonym and campaign",
        "The same epsilon of 24 a user",
        r"n = 12,000 persons \(pseudonyms of the campaign\)",
        "averaging altogether: one answer, frozen, however often it is sent",
        "All of them: 1 answer, at most epsilon 2 each",
    ),
    (
        "opened/budget",
        ["1", "1", "61"],
        "in which days a person answered is public",
        "across days, under new pseudonyms, the device alone enforces",
        "with delta = 0.000001,",
    ),
    ("opened/budget?delta=0.000000001", ["1", "1", "61"], "with delta = 0.000000001,"),
    (
        "once/budget",
        ["1", "1", "1"],
        "whether a person answered is public",
        r"from the one answer, a constant yes or no is guessed right at most [\d.]+ % of the time",
    ),
    ("quiet/budget", ["2", "2", "4"], "hides use of the feature while the app runs, no more"),
    (
        "curated/budget",
        ["1", "1", "1"],
        "values only",
        "Releases reveal at most epsilon 1 of one person in the whole campaign.",
    ),
    # under add-remove, a count would reveal whether one person took part
    (
        "visits/budget",
        ["1", "1", "30"],
        r"n = 10,000 persons \(assumed",
        "^(?!.*pseudonyms have spent)",
    ),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page[0])
def test_a_page_states(answered: Deployment, page: tuple[str, list[str], str]) -> None:
    path, figures, *patterns = page
    shown = logged_in(answered, Role.ADMIN).get(f"/collections/{path}")
    epsilons = re.search(r'<dl class="facts big">(.*?)</dl>', shown.html, re.DOTALL)

    assert epsilons is not None
    assert re.findall(r"<dd>([^<]*)<", epsilons[1]) == figures
    assert shown.lacks("any 24 hours touch two", *patterns) == []


def test_each_epsilon_bounds_what_an_attacker_guesses(analyst: Visitor) -> None:
    """Of three values at epsilon 2: e^2 / (e^2 + 2) and the like, never below a half."""
    text = analyst.get("/collections/theme/budget").text
    sees = r"Whoever sees {} guesses a constant yes or no right with at most (\S+) %"
    one, every = (float(re.findall(sees.format(what), text)[0]) for what in ("it", "all 12"))

    assert 50 < one < 88.1 < every < 100


def test_mean_and_worst_are_for_analysts_and_the_histogram_for_admins(alone: Deployment) -> None:
    """A figure is of 20 pseudonyms or more, and so is each bar."""
    analyst, admin = logged_in(alone), logged_in(alone, Role.ADMIN)
    path = "/collections/theme/budget"
    counted(send(alone, "theme", [9, 10, 0], period=1))
    few = admin.get(path)
    counted(send(alone, "theme", [21, 0, 0], period=1))
    for person in range(25):
        for period in (1, 2):
            pseudonym = bytes([person]) * 16
            report = alone.report("theme", period=period, slot=period, pseudonym=pseudonym)
            counted(alone.verdicts(report))
    pages = [each.get(path) for each in (analyst, admin)]

    assert "fewer than 20 pseudonyms: none is shown" in few.text
    assert "on average" not in few.text
    for page in pages:
        assert "65 pseudonyms have spent epsilon 2.76923 on average, 4 at most" in page.text
    assert "Only admins see the distribution." in pages[0].text
    assert "spent" not in pages[0].charts
    bars = pages[1].charts["spent"]
    assert (bars.x.labels, bars.parts[0].values) == (("1", "2"), (40, 25))


def test_composition_is_below_the_plain_sum_and_an_attack_grows_with_fresh_answers_alone(
    analyst: Visitor,
) -> None:
    """A smaller delta costs more. A yes or no at epsilon 1: 73 % after one, 99.6 % after 30.

    One answer in total and true values do not compose.
    """
    usual, strict, once, curated = (
        analyst.get(f"/collections/{path}").charts
        for path in (
            *("opened/budget", "opened/budget?delta=0.000000001"),
            *("once/budget", "curated/budget"),
        )
    )
    steps = usual["composed"].parts[0].x
    plain, together = (part.values for part in usual["composed"].parts)
    fresh, frozen = (part.values for part in usual["attack"].parts)

    assert plain == steps
    assert all(sum_ >= less for sum_, less in zip(plain, together, strict=True))
    assert together[-1] < strict["composed"].parts[-1].values[-1]
    assert together[-1] < plain[-1] == 61
    assert usual["attack"].parts[0].x == (1, 7, 30, 61)
    assert fresh[:3] == pytest.approx([0.7311, 0.9106, 0.9961], abs=5e-5)
    assert frozen == (frozen[0],) * 4 == (fresh[0],) * 4
    assert not (once.keys() | curated.keys()) & {"composed", "attack"}


def test_the_line_of_very_many_answers_ends_early(alone: Deployment) -> None:
    long = 'app = "a"\n[long]\nquestion = "?"\nboolean = true\nepsilon = 0.1\nunit = "event"\n'
    alone.push(long + "per_day = 4\nfrom = 2026-11-01\nuntil = 2027-08-01\n")
    page = logged_in(alone).get("/collections/long/budget")

    assert page.status == 200
    assert page.charts["composed"].parts[0].x[-1] == MOST_DRAWN


def test_units_are_compared_at_one_epsilon_of_a_user_and_the_requested_n(analyst: Visitor) -> None:
    (local, central), (more, _) = (
        [part.values for part in page.charts["units"].parts]
        for page in (analyst.get(f"/collections/theme/budget?n={n}") for n in (1000, 4000))
    )

    assert local[0] > local[2] > local[4] == pytest.approx(2 * more[4])
    assert all(one > two for one, two in zip(local, central, strict=True) if one and two)


def test_definitions_are_chosen_by_a_link(answered: Deployment, analyst: Visitor) -> None:
    newest, oldest = (
        each.fingerprint for each in answered.aggregator.known().catalog.by_name["once"]
    )
    page = analyst.get("/collections/once/budget")
    older = analyst.get(f"/collections/once/budget?series={oldest}")

    assert f'series={newest}" aria-current="true"' in page.html
    assert f'series={oldest}" aria-current="true"' in older.html
    assert "n = 4,000 persons" in older.text


def test_an_error_names_the_field_and_the_fix_and_the_form_is_kept(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme/budget?delta=2&n=50")

    assert page.status == 400
    assert "delta : give at least 1e-30 and less than 1" in page.text
    assert (page.field("n"), page.field("delta")) == ("50", "2")
