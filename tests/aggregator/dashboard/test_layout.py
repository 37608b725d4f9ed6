"""What all pages share: their policy, their assets, and how trouble is told."""

from __future__ import annotations

import gzip
import re

import pytest

from tests.aggregator.api.deployment_fixtures import Deployment
from tests.aggregator.dashboard.page_fixtures import Visitor
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.dashboard.assets import HERE, PLOTLY, TYPES, asset
from veilcount_aggregator.errors import StoreUnavailable

ASSETS = sorted(each.name for each in HERE.iterdir() if each.suffix in TYPES)
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("name", [*ASSETS, PLOTLY])
def test_an_asset_is_kept_for_good_under_an_address_of_its_content(
    deployed: Deployment, name: str
) -> None:
    found = asset(name)
    packed = {"Accept-Encoding": "gzip"}
    response = deployed.app.test_client().get(f"/assets/{found.digest}/{name}", headers=packed)

    assert gzip.decompress(response.get_data()) == found.body
    assert response.content_type.partition(";")[0] == found.type
    assert "immutable" in response.headers["Cache-Control"]
    assert response.headers["Vary"] == "Accept-Encoding"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_an_asset_is_served_plain_to_whoever_cannot_unpack(deployed: Deployment) -> None:
    found = asset("dashboard.css")
    response = deployed.app.test_client().get(f"/assets/{found.digest}/dashboard.css")

    assert response.get_data() == found.body


@pytest.mark.parametrize(
    "path",
    [f"/assets/{asset('dashboard.css').digest}/chart.js", "/assets/0000000000000000/dashboard.css",
     "/assets/x/..%2fframe.py", "/assets/x/frame.py", "/assets/x/templates"],
)  # fmt: skip
def test_nothing_else_is_served_from_the_disk(visitor: Visitor, path: str) -> None:
    assert visitor.get(path).status == 404


def test_every_page_and_every_trouble_has_the_strict_policy(visitor: Visitor) -> None:
    visitor.enter(Role.ANALYST)
    for path in ("/", "/enter", "/keys", "/collections/nothing/releases", "/nothing"):
        visitor.headers = HTML
        policy = visitor.get(path).response.headers["Content-Security-Policy"]

        assert "default-src 'none'; script-src 'self';" in policy
        assert "form-action 'self'; frame-ancestors 'none'; base-uri 'none'" in policy


def test_no_page_has_a_script_or_a_handler_of_its_own(visitor: Visitor) -> None:
    visitor.enter(Role.ADMIN)
    for path in (
        "/",
        "/login",
        "/keys",
        "/definitions",
        "/operations",
        "/collections/visits/releases",
    ):
        html = visitor.get(path).html
        scripts = re.findall(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", html)

        assert not scripts
        assert not re.findall(r"<[^>]* on\w+=", html)


def test_a_person_is_told_of_a_missing_page_in_words_and_a_program_in_json(
    visitor: Visitor,
) -> None:
    visitor.enter(Role.ANALYST)
    program = visitor.get("/nothing")
    visitor.headers = HTML
    person = visitor.get("/nothing")

    assert program.response.content_type == "application/problem+json"
    assert person.status == 404
    assert "Back to the overview" in person.text


def test_a_collection_that_nobody_knows_is_told_with_one_that_is_near(visitor: Visitor) -> None:
    visitor.enter(Role.ANALYST)
    page = visitor.get("/collections/visit/releases")

    assert page.status == 404
    assert 'no collection is named "visit": did you mean visits?' in page.text


def test_a_store_that_is_down_is_told_without_its_address(
    deployed: Deployment, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor.enter(Role.ANALYST)

    def fail() -> None:
        raise StoreUnavailable("sqlite:///secret/place is not reachable")

    monkeypatch.setattr(deployed.aggregator.store, "service_counts", fail)
    page = visitor.get("/operations")

    assert page.status == 503
    assert "Store unavailable" in page.text
    assert "secret" not in page.html


def test_the_page_of_a_stranger_names_no_other(visitor: Visitor) -> None:
    assert "<nav" not in visitor.get("/login").html
