"""Web pages: those of listed origins send as a device does, no other has its visitors vote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests

from veilcount_aggregator.intake.live_reports import LiveReports
from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions
from veilcount_aggregator.server.app import assemble
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import open_store
from veilcount_serving.errors import SettingsError
from veilcount_shared.oblivious_http.encapsulation import REQUEST_TYPE
from veilcount_shared.report import Batch
from veilcount_shared.wire import BINARY_TYPE, encode_binary, encode_json

from ..aggregator.web.api.deployment_fixtures import FILE, Deployment, Response, deployment
from ..system.server import Server
from ..system.test_serving import KNOWN, body, collection, counted

APP, OTHER = "https://app.example.org", "https://elsewhere.example"
ALLOW = "Access-Control-Allow-Origin"
DEVICE_PATHS = "/v1/reports", "/v1/ohttp"
#: what a page may send without asking first [Fetch, CORS-safelisted request-header]
SIMPLE = "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""


@pytest.fixture
def listing(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE, origins=(APP, "http://localhost:3000")) as made:
        yield made


def from_page(
    made: Deployment, origin: str, method: str = "POST", path: str = "/v1/reports"
) -> Response:
    return made.ask(method, path, b"x", kind=BINARY_TYPE, environ={"HTTP_ORIGIN": origin})


def test_a_page_of_a_listed_origin_is_counted_and_may_read_the_reply(listing: Deployment) -> None:
    batch = Batch((listing.report("theme"),))
    reply = listing.send(batch, environ={"HTTP_ORIGIN": APP})

    assert reply.json["verdicts"] == ["counted"]
    assert (reply.headers[ALLOW], reply.headers["Vary"]) == (APP, "Origin")
    assert from_page(listing, APP).status == 400
    assert from_page(listing, APP).headers[ALLOW] == APP


@pytest.mark.parametrize(
    "origin", [OTHER, "null", "", "*", f"{APP}:443", f"{APP}/", APP.upper(), f"{APP}.example.com"]
)
@pytest.mark.parametrize("path", DEVICE_PATHS)
def test_any_other_page_is_refused_before_anything_is_counted(
    listing: Deployment, origin: str, path: str
) -> None:
    report = listing.report("theme")
    refused = listing.send(Batch((report,)), environ={"HTTP_ORIGIN": origin})
    preflight = from_page(listing, origin, "OPTIONS", path)

    assert {(each.status, each.problem) for each in (refused, preflight)} == {(403, "wrong-origin")}
    assert "--origins" in refused.json["detail"]
    assert not {ALLOW, "Vary"} & (refused.headers | preflight.headers).keys()
    assert listing.counted("theme") == 0


def test_by_default_no_page_may_send(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as made:
        assert from_page(made, APP).problem == "wrong-origin"
        assert made.ask("OPTIONS", "/v1/reports").problem == "wrong-method"


@pytest.mark.parametrize("path", DEVICE_PATHS)
def test_a_preflight_allows_a_post_of_the_batch_type_and_a_key(
    listing: Deployment, path: str
) -> None:
    reply = from_page(listing, APP, "OPTIONS", path)

    assert (reply.status, reply.body) == (204, b"")
    assert {name: value for name, value in reply.headers.items() if name.startswith("Access-")} == {
        ALLOW: APP,
        "Access-Control-Allow-Headers": "Authorization, Content-Type",
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Expose-Headers": "Retry-After",
        "Access-Control-Max-Age": "7200",
    }


@pytest.mark.parametrize("kind", SIMPLE)
def test_no_type_that_a_page_may_send_unasked_is_taken(listing: Deployment, kind: str) -> None:
    """Were it, an old browser that names no origin would let every page send, by a form.

    Nor by `veilcount dev`, which takes JSON.
    """
    live = assemble(listing.aggregator, live=LiveReports(lambda _: None)).flask
    batch = Batch((listing.report("theme"),))
    for made in (listing, replace(listing, app=live)):
        for raw in (encode_binary(batch), encode_json(batch)):
            reply = made.ask("POST", "/v1/reports", raw, kind=kind)

            assert (reply.status, reply.problem) == (415, "unsupported")
            assert made.ask("POST", "/v1/ohttp", raw, kind=kind).status == 415
    assert listing.counted("theme") == 0


@pytest.mark.parametrize("path", ["/", "/v1/rows/close", "/v1/collections", "/healthz", "/metrics"])
def test_nothing_else_is_opened_to_any_page(listing: Deployment, path: str) -> None:
    for method in ("OPTIONS", "GET", "POST"):
        assert ALLOW not in from_page(listing, APP, method, path).headers


@pytest.mark.parametrize(
    "origin",
    ["*", "null", "https://*.example.org", f"{APP}/", "app.example.org", "http://app.example.org"],
)
def test_an_origin_that_is_none_is_no_setting(origin: str) -> None:
    with pytest.raises(SettingsError, match="--origins"):
        Settings("sqlite:///x", origins=(origin,))


@pytest.mark.parametrize(
    "origin", [APP, f"{APP}:8443", "http://localhost", "http://127.0.0.1:3000", "capacitor://app"]
)
def test_origins_reach_the_workers(origin: str) -> None:
    settings = Settings("sqlite:///x", origins=(origin, APP))

    assert Settings.from_environment(settings.environment()) == settings


def test_on_the_event_loop_it_is_the_same(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    with closing(open_store(store, make=True)) as opened:
        add_definitions(opened, DefinitionSource(KNOWN), datetime.now(UTC), "test")
    with Server(store, tmp_path, "--origins", APP) as server:

        def post(
            origin: str | None, method: str = "POST", path: str = "/v1/reports"
        ) -> requests.Response:
            kind = REQUEST_TYPE if path == "/v1/ohttp" else BINARY_TYPE
            headers = {"Content-Type": kind} | ({"Origin": origin} if origin else {})
            return server.ask(method, path, data=body(collection()), headers=headers)

        taken, plain, refused = post(APP), post(None), post(OTHER)
        preflights = [post(origin, "OPTIONS") for origin in (APP, OTHER, None)]
        sealed = [post(origin, path="/v1/ohttp") for origin in (APP, OTHER)]

    assert [each.status_code for each in (taken, plain, refused)] == [200, 200, 403]
    assert [each.headers.get(ALLOW) for each in (taken, plain, refused)] == [APP, None, None]
    assert [each.status_code for each in preflights] == [204, 403, 405]
    assert preflights[0].headers["Access-Control-Allow-Methods"] == "POST"
    assert [(each.status_code, each.headers.get(ALLOW)) for each in sealed] == [
        (400, APP),
        (403, None),
    ]
    assert counted(store) == 2
