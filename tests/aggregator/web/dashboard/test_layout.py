"""All pages: their policy, their assets, and their error pages."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.web.dashboard.layout import HERE, TYPES, asset

from ..api.deployment_fixtures import Deployment, deployment
from .page_fixtures import Visitor, logged_in

ASSETS = sorted(path.name for path in HERE.iterdir() if path.suffix in TYPES)
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("name", ASSETS)
def test_an_asset_is_cached_for_good_under_the_digest_of_its_content(
    stocked: Deployment, name: str
) -> None:
    found, client = asset(name), stocked.app.test_client()
    address = f"/assets/{found.digest}/{name}"
    zipped = client.get(address, headers={"Accept-Encoding": "gzip"})

    assert gzip.decompress(zipped.get_data()) == client.get(address).get_data() == found.body
    assert zipped.content_type.partition(";")[0] == found.type
    assert "immutable" in zipped.headers["Cache-Control"]
    assert zipped.headers["Vary"] == "Accept-Encoding"
    assert zipped.headers["X-Content-Type-Options"] == "nosniff"


def test_nothing_else_is_served_from_the_disk(stocked: Deployment) -> None:
    paths = ("0000000000000000/dashboard.css", "x/..%2fframe.py", "x/frame.py", "x/templates")
    for path in (f"{asset('dashboard.css').digest}/chart.js", *paths):
        assert Visitor(stocked).get(f"/assets/{path}").status == 404


def test_a_missing_page_is_html_for_people_and_json_for_programs(stocked: Deployment) -> None:
    """A near name is proposed; without a session no page is named."""
    visitor = logged_in(stocked)
    program = visitor.get("/nothing")
    visitor.headers = HTML
    person, *tabs = (
        visitor.get(f"/{path}")
        for path in ("nothing", "collections/visit/compare", "collections/visit/releases")
    )

    assert program.response.content_type == "application/problem+json"
    assert {page.status for page in (program, person, *tabs)} == {404}
    assert "Back to the overview" in person.text
    assert ["<nav" in page.html for page in (person, Visitor(stocked).get("/login"))] == [
        True,
        False,
    ]
    assert "openapi" not in person.text
    assert "Page not found Check the address" in person.text
    for page in tabs:
        assert 'No collection is named "visit": did you mean visits? Check' in page.text


def test_what_is_forbidden_or_fails_is_explained_to_people(
    stocked: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected error reveals nothing of its cause; a stranger is led to the log-in."""
    visitor = logged_in(stocked)
    forbidden, stranger = visitor.get("/keys"), Visitor(stocked, HTML).get("/nothing")
    monkeypatch.setattr(Aggregator, "snapshot", lambda _: 1 / 0)
    failed = visitor.get("/collections/visits")

    assert [each.status for each in (forbidden, stranger, failed)] == [403, 404, 500]
    assert "Your key does not open this page This page is for keys of role admin. Log out" in (
        forbidden.text
    )
    assert "Something went wrong on the server Try again in a moment." in failed.text
    assert "zero" not in failed.text
    assert [each.links("Log in") for each in (stranger, failed)] == [["/"], []]


def test_an_empty_store_has_pages(tmp_path: Path) -> None:
    with deployment(tmp_path) as empty:
        visitor = logged_in(empty)
        overview, operations = (visitor.get(path).text for path in ("/", "/operations"))

    assert "No collections yet Push a definitions file" in overview
    assert "No reports yet" in operations
    assert "Nothing was committed yet." in operations
    assert "No open period has new pseudonyms yet." in operations
