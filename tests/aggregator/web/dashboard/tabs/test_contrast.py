"""The contrast tab: local, shuffled and central models of one question."""

from __future__ import annotations

import re
from math import log10
from typing import Any

import pytest

from veilcount_aggregator import queries

from ....queries.simulated_reports import snapshot
from ...api.deployment_fixtures import Deployment
from ..page_fixtures import Visitor, logged_in


def slope(part: Any) -> float:
    rise, run = (log10(places[-1] / places[0]) for places in (part.values, part.x))
    return rise / run


def test_rows_have_their_errors_and_guarantees_and_lines_their_slopes(
    answered: Deployment, analyst: Visitor
) -> None:
    """The local error falls with the root of n, the central one with n."""
    page = analyst.get("/collections/theme/contrast")
    question = queries.ContrastQuery.parse({})
    (series,) = queries.contrast(snapshot(answered), "theme", question).series
    picture = page.charts["scaling"]
    local, shuffled, central = picture.parts

    for line in series.contrast.lines:
        assert f"{line.devices_as_central:,}" in page.text
        assert line.guarantee[1:] in page.text
    assert slope(local) == pytest.approx(-0.5, abs=0.001)
    assert slope(central) == pytest.approx(-1, abs=0.001)
    rows = zip(local.values, shuffled.values, central.values, strict=True)
    assert all(a >= b >= c for a, b, c in rows)
    assert picture.rule == (8000, "n = 8,000")
    assert (picture.x.logarithmic, picture.y.logarithmic) == (True, True)


def test_a_paired_collection_is_drawn_with_both_intervals(analyst: Visitor) -> None:
    """A quarter is dark in both halves."""
    page = analyst.get("/collections/local/contrast")
    picture = page.charts["paired"]
    local, central = picture.parts

    assert "local (n = 4,000) uses local privacy" in page.text
    assert "curated (n = 4,000) a trusted curator" in page.text
    assert "of a release that cost epsilon 0.5" in page.text
    assert picture.labels == ("false", "true")
    assert local.low[1] < 0.25 < local.high[1]
    assert central.high[1] - central.low[1] < local.high[1] - local.low[1]


def test_without_a_release_the_local_half_is_shown_alone(alone: Deployment) -> None:
    page = logged_in(alone).get("/collections/local/contrast")

    assert "Nothing comparable was released yet" in page.text
    assert "paired" not in page.charts
    assert "n = 10,000: assumed: no report is counted yet" in page.text


#: an address, and patterns of the text
PAGES = [
    (
        "theme/contrast",
        r"Without a trusted curator, this question needs \d[\d,]* times the people for the same",
        r"every true value needs n = 8,000; with nobody trusted, .* takes n = \d[\d,]+\.",
        "People needed for the error of a trusted curator, on a logarithmic scale",
        r"n = 8,000: reports of the fullest period \(1 to 30 Nov 2026, UTC\)",
        r"No trust is needed\.",
        r"The curator holds every true value\.",
    ),
    ("curated/contrast", "n = 4,000"),  # a public count of a central collection
    ("visits/contrast", "n = 10,000"),  # a secret one
    (
        "minutes/contrast?n=50",
        r"n = 50: as \w+\. Predicted",
        r"this question needs [\d.]+ times the people",
        "^(?!.*points)",
    ),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page[0])
def test_a_page_states(analyst: Visitor, page: tuple[str, ...]) -> None:
    path, *patterns = page
    shown = analyst.get(f"/collections/{path}")

    assert shown.status == 200
    assert shown.lacks(*patterns) == []
    assert shown.field("n") == path.partition("n=")[2]


def test_the_gauge_has_each_model_at_the_people_it_needs(analyst: Visitor) -> None:
    """From the curator at one end to the local model at the other, on a logarithmic scale."""
    page = analyst.get("/collections/theme/contrast")
    places = [float(at) for at in re.findall(r'class="mark" x1="([\d.]+)%"', page.html)]

    assert places[0] == 0 < places[1] < places[2] == 100
    assert "trusted curator: 8,000" in page.html
    assert 'class="filled" x="0" width="100.0%"' in page.html


def test_an_error_names_the_fix_and_the_form_is_kept(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme/contrast?n=x")

    assert page.status == 400
    assert "a whole number" in page.text
    assert page.field("n") == "x"
