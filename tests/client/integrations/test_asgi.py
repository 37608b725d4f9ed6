"""The integration for ASGI: FastAPI and Starlette apps, served by uvicorn, with real requests."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import requests
import uvicorn
from fastapi import FastAPI, Request
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from veilcount_client import Person
from veilcount_client.integrations import pages
from veilcount_client.integrations.app_client import clients
from veilcount_client.integrations.asgi import App, AsgiVeilcount, Scope
from veilcount_client.testing import ClientHarness

from ..delivery.app_client import NOBODY
from ..delivery.server_fixtures import wait_until
from . import test_privacy_pages as flask_pages
from .running_campaign import COLLECTIONS
from .test_privacy_pages import browser, button, hidden

LIMITS = {"ceiling": 9, "daily_ceiling": 9}


def fastapi_app(**options: Any) -> tuple[App, AsgiVeilcount]:
    """An app whose visitors log in by /login/<name>, and record by /theme/<name>."""
    statistics = AsgiVeilcount(url=NOBODY, collections=COLLECTIONS, persons=True, **LIMITS)
    app = FastAPI(lifespan=statistics.lifespan)

    async def current(scope: Scope) -> Person | None:
        user = HTTPConnection(scope).session.get("user")
        return statistics.client.person(user) if user else None

    @app.get("/login/{name}")
    async def login(name: str, request: Request) -> str:
        request.session["user"] = name
        return name

    @app.get("/theme/{name}")
    async def choose(name: str, request: Request) -> str:
        person = await statistics.aperson(request, request.session["user"])
        person.record("theme", name)
        return name

    app.mount("/privacy", statistics.pages(current, **options))
    app.add_middleware(SessionMiddleware, secret_key="for tests")
    return app, statistics


def starlette_app(**options: Any) -> tuple[App, AsgiVeilcount]:
    """The same without FastAPI, with functions that are none of a loop."""
    statistics = AsgiVeilcount(url=NOBODY, collections=COLLECTIONS, persons=True, **LIMITS)

    def current(scope: Scope) -> Person | None:
        user = scope["session"].get("user")
        return statistics.client.person(user) if user else None

    def login(request: Any) -> Response:
        request.session["user"] = request.path_params["name"]
        return PlainTextResponse("")

    def choose(request: Any) -> Response:
        person = statistics.person(request, request.session["user"])
        person.record("theme", request.path_params["name"])
        return PlainTextResponse("")

    routes = [
        Route("/login/{name}", login),
        Route("/theme/{name}", choose),
        Mount("/privacy", statistics.pages(current, **options)),
    ]
    session = Middleware(SessionMiddleware, secret_key="for tests")
    return Starlette(False, routes, [session], lifespan=statistics.lifespan), statistics


APPS = pytest.mark.parametrize("make", [fastapi_app, starlette_app])


@dataclass(frozen=True)
class Visitor:
    """A browser of a person who is logged in."""

    url: str
    session: requests.Session

    def get(self, path: str, **headers: str) -> requests.Response:
        return self.session.get(self.url + path, headers=headers, timeout=30)

    def post(self, path: str, data: Any, **headers: str) -> requests.Response:
        return self.session.post(
            self.url + path, data, headers=headers, timeout=30, allow_redirects=False
        )

    def answer(self, word: str, **headers: str) -> requests.Response:
        """Answer the form as a browser does."""
        page = self.get("/privacy/consent", **headers)
        fields = {**hidden(page), "consent": button(page.text, word)}
        return self.post("/privacy/consent", fields, **headers)


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an app by uvicorn in a thread of this process; yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, ws="none", log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert wait_until(lambda: server.started or not thread.is_alive())
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(60)


@contextmanager
def visiting(app: App, *names: str) -> Iterator[list[Visitor]]:
    with served(app) as url:
        browsers = [Visitor(url, requests.Session()) for _ in names]
        for visitor, name in zip(browsers, names, strict=True):
            if name:
                visitor.get(f"/login/{name}")
        yield browsers
        for visitor in browsers:
            visitor.session.close()


@pytest.fixture(autouse=True)
def _no_consent_by_default(veilcount: ClientHarness) -> None:
    veilcount.consent = None


@APPS
def test_a_person_decides_sees_and_deletes(veilcount: ClientHarness, make: Any) -> None:
    app, _ = make()
    with visiting(app, "ann", "ben", "") as (ann, ben, nobody):
        before = ann.get("/privacy/consent")
        decided = ann.answer("yes")
        after = ann.get("/privacy/consent").text
        for visitor, theme in ((ann, "dark"), (ben, "light")):
            visitor.get(f"/theme/{theme}")
        veilcount.flush()
        receipt = ann.get("/privacy/receipt").text
        refused = [nobody.get(f"/privacy/{page}").status_code for page in pages.METHODS]
        form = hidden(ann.get("/privacy/forget"))
        erased = ann.post("/privacy/forget", form | {"forget": "yes"})
        forgotten = ann.get("/privacy/consent").text

    assert "You have not decided yet" in before.text
    assert before.headers["Content-Type"] == "text/html; charset=utf-8"
    assert before.headers.items() >= {k.lower(): v for k, v in pages.HEADERS.items()}.items()
    assert (decided.status_code, decided.headers["Location"]) == (303, "consent")
    assert "You agreed" in after
    assert veilcount.recorded == [("theme", "dark")]
    assert "delivered" in receipt
    assert refused == [403, 403, 403]
    assert (erased.status_code, "is deleted, except" in erased.text) == (200, True)
    assert "You have not decided yet" in forgotten


def test_the_pages_are_those_of_flask(veilcount: ClientHarness) -> None:
    """Word by word, in the app's own words and language too, but for the form's token."""
    options: dict[str, Any] = {"messages": {"consent_title": "Eins & <zwei>"}, "language": "de"}
    flask = browser(flask_pages.site(**options))
    app, _ = fastapi_app(**options)
    with visiting(app, "ann") as (ann,):
        for path in ("consent", "receipt", "forget"):
            theirs, ours = flask.get(f"/privacy/{path}"), ann.get(f"/privacy/{path}")
            token = hidden(ours).get(pages.TOKEN, "")

            assert ours.text == re.sub(
                f'(name="{pages.TOKEN}" value=")[^"]+', rf"\g<1>{token}", theirs.text
            )
            assert ours.status_code == theirs.status_code == 200


def refusals(ann: Visitor, ben: Visitor) -> dict[str, int]:
    """Return how forms that nobody sent by our pages are answered."""
    form, yes = hidden(ann.get("/privacy/consent")), button(ann.get("/privacy/consent").text, "yes")
    foreign = hidden(ben.get("/privacy/consent"))
    stale = f"yes {'0' * 16}"
    sent: dict[str, Any] = {
        "no token": {"consent": yes},
        "an empty token": {pages.TOKEN: "", "consent": yes},
        "another's token": foreign | {"consent": yes},
        "other letters": {pages.TOKEN: "é", "consent": yes},
        "no answer": form,
        "another answer": form | {"consent": "perhaps"},
        "no form": b"\xff\x00" * 9,
        "nothing": b"",
        "other questions": form | {"consent": stale},
        "too large": form | {"consent": yes, "more": "x" * 20_000},
    }
    return {name: ann.post("/privacy/consent", data).status_code for name, data in sent.items()} | {
        "no token to delete": ann.post("/privacy/forget", {"forget": "yes"}).status_code
    }


@APPS
def test_a_form_of_another_site_decides_nothing(veilcount: ClientHarness, make: Any) -> None:
    app, statistics = make()
    with visiting(app, "ann", "ben") as (ann, ben):
        statuses = refusals(ann, ben)
        consented = statistics.client.person("ann").consented

    assert statuses == dict.fromkeys(statuses, 400) | {"other questions": 409, "too large": 413}
    assert consented is None


def test_without_the_check_of_the_token_a_foreign_form_is_noticed(
    veilcount: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "own_form", lambda _, form: form)

    with pytest.raises(AssertionError, match="303"):
        test_a_form_of_another_site_decides_nothing(veilcount, fastapi_app)


def test_addresses_and_methods_that_there_are_not(veilcount: ClientHarness) -> None:
    app, _ = fastapi_app()
    with visiting(app, "ann") as (ann,):
        missing = [ann.get(f"/privacy/{path}") for path in ("", "consent/x", "static")]
        wrong = [ann.session.request(m, f"{ann.url}/privacy/receipt") for m in ("POST", "DELETE")]
        head = ann.session.head(f"{ann.url}/privacy/consent", timeout=30)

    assert [page.status_code for page in missing] == [404, 404, 404]
    assert [(page.status_code, page.headers["Allow"]) for page in wrong] == [(405, "GET, HEAD")] * 2
    assert (head.status_code, head.text) == (200, "")
    assert int(head.headers["Content-Length"]) > 1000


def test_an_app_of_one_person_needs_no_login_but_a_session(veilcount: ClientHarness) -> None:
    """The pages are an app by themselves, that a middleware of sessions may wrap alone."""
    statistics = AsgiVeilcount(url=NOBODY, collections=COLLECTIONS)
    bare = statistics.pages()
    with served(SessionMiddleware(bare, secret_key="for tests")) as url:
        own = Visitor(url, requests.Session())
        page = own.get("/consent")
        decided = own.post("/consent", hidden(page) | {"consent": button(page.text, "yes")})
        own.session.close()
    scope = {"type": "http", "path": "/consent", "method": "GET", "headers": []}

    assert decided.status_code == 303
    assert statistics.client.consented
    with pytest.raises(RuntimeError, match="wrap them in Starlette's SessionMiddleware"):
        asyncio.run(bare(scope, None, None))  # type: ignore[arg-type] # neither is called
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(bare({"type": "websocket"}, None, send))  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close"}]


def test_an_app_that_is_started_again_records_again(veilcount: ClientHarness) -> None:
    """As its tests do: the lifespan closes the client, and the next one has its own."""
    veilcount.consent = True
    app, statistics = fastapi_app()
    for theme in ("dark", "light"):
        with visiting(app, "ann") as (ann,):
            ann.get(f"/theme/{theme}")
            assert statistics in clients
        assert statistics not in clients

    assert veilcount.recorded == [("theme", "dark"), ("theme", "light")]


@APPS
@pytest.mark.parametrize("header", ["Sec-GPC", "DNT"])
def test_an_objection_of_the_browser_is_a_no(
    veilcount: ClientHarness, make: Any, header: str
) -> None:
    """Also of who had agreed; what the person answers on the page afterwards counts."""
    app, statistics = make()
    with visiting(app, "ann", "ben") as (ann, ben):
        ann.answer("yes")
        ann.get("/theme/dark", **{header: "0"})
        ann.get("/theme/light", **{header: "1"})
        withdrawn = ann.get("/theme/light") and statistics.client.person("ann").consented
        page = ben.get("/privacy/consent", **{header: "1"})
        must_ask = statistics.client.person("ben").must_ask
        ann.answer("yes", **{header: "1"})
        ann.get("/theme/system", **{header: "1"})

    assert withdrawn is False
    assert must_ask is False
    assert "that counts as a no until you agree" in page.text
    assert veilcount.recorded == [("theme", "dark"), ("theme", "system")]
