"""Access control: every endpoint and page refuses each kind of unauthorized request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.records.api_keys import Role, create_key, load_api_keys, revoke_key
from veilcount_aggregator.records.sessions import begin_session

from ..aggregator.web.api.deployment_fixtures import CENTRAL, FILE, Deployment, Response, deployment
from ..aggregator.web.dashboard.page_fixtures import logged_in
from .access_table import DECIDED, AccessRule, Kind, of_kind, served

PLACES = {
    "<name>": "theme",
    "<identity>": "00000000",
    "<form>": "csv",
    "<digest>": "0000000000000000",
}
MALFORMED = (
    *("Basic YTpi", "Digest a=b", "Bearer", "Bearer ", "Bearer x y", "bearer\t", "\xff\xfe"),
    *("Bearer " + "x" * 60_000, "Bearer ../../keys", "Bearer %00", "Bearer ' or 1=1 --"),
)
#: makers and places; a release's number, since it says which holes are open
WORDS = re.compile(
    rb"granian|werkzeug|gunicorn|flask|jinja|python|hyper|traceback|site-packages|"
    rb'file "/|\.py\b|line \d+, in|sqlite|redis|zerodivision|secret\.py',
    re.IGNORECASE,
)
#: operations of a store that fail in a test
BROKEN = (
    *("records", "change_records", "service_counts", "report_counts", "new_pseudonyms"),
    *("counters", "close_row"),
)
RANDOM = rb'.*name="form_token".*|"instance": "urn:uuid:[0-9a-f-]{36}"'
FORM = "application/x-www-form-urlencoded"
KEY_NAMES = ("key", "token", "Authorization")
GUARDED = of_kind(Kind.KEY, Kind.DEVICE)
PAGES = of_kind(Kind.PAGE)


@dataclass
class Guarded:
    """A deployment for all tests: a key of each role, one of each that was revoked, sessions."""

    deployment: Deployment
    keys: dict[Role, str]
    revoked: dict[Role, str]
    sessions: dict[Role, str]
    over: str
    replies: list[Response] = field(default_factory=list)

    def knock(self, rule: AccessRule, *, query: str = "", **named: Any) -> Response:
        """Call an endpoint after enough time that earlier guesses do not count."""
        return self.ask(rule.method, place_of(rule) + query, **named)

    def ask(
        self, method: str, path: str, body: bytes = b"", *, cookie: str | Role = "", **named: Any
    ) -> Response:
        """Call a path, with a cookie or the one of a role's session; record the reply."""
        self.deployment.clocks.passed += 10
        if isinstance(cookie, Role):
            cookie = f"veilcount={self.sessions[cookie]}"
        environ = {"HTTP_COOKIE": cookie} | named.pop("environ", {})
        self.replies.append(self.deployment.ask(method, path, body, environ=environ, **named))
        return self.replies[-1]


def place_of(endpoint: AccessRule) -> str:
    shown = endpoint.method == "GET" and endpoint.kind is Kind.PAGE
    path = endpoint.path if shown else endpoint.path.replace("<name>", "nothing")
    for name, value in PLACES.items():
        path = path.replace(name, value)
    return path


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A deployment whose intake is closed."""
    with deployment(tmp_path_factory.mktemp("guarded"), FILE, CENTRAL) as made:
        store, now = made.aggregator.store, made.clocks.now
        keys = {role: made.key(role) for role in Role}
        revoked = {}
        for role in Role:
            key, revoked[role] = create_key(store, role, "", now)
            revoke_key(store, key.id, now)
            over = begin_session(store, role, key.id, now)
        ids = {key.role: key.id for key in load_api_keys(store).keys.values() if not key.revoked}
        sessions = {role: begin_session(store, role, ids[role], now) for role in Role}
        made.aggregator.catalog_cache.refresh()
        guarded_app = Guarded(made, keys, revoked, sessions, over)
        for endpoint in (GUARDED[0], GUARDED[2], GUARDED[-1]):  # a key's first use is written down
            guarded_app.knock(endpoint, key=keys[endpoint.role or Role.ADMIN])
        made.aggregator.flush()
        yield guarded_app


@pytest.fixture(autouse=True)
def _nothing_is_changed_and_nothing_leaks(guarded: Guarded) -> Iterator[None]:
    """Who is refused has changed nothing, no key, definition, session; and learned nothing."""
    before = list(_kept(guarded))
    guarded.replies.clear()
    yield
    refused = [reply for reply in guarded.replies if reply.status >= 300]

    assert list(_kept(guarded)) == before
    assert not [leak for reply in refused for leak in leaks(reply, guarded.deployment)]


def leaks(reply: Response, deployment: Deployment) -> Iterator[str]:
    """Yield what an answer tells of its inside."""
    text = reply.body + repr(reply.headers).encode()
    store = deployment.aggregator.settings.store
    inside = (store, store.removeprefix("sqlite:///").partition("?")[0])
    yield from (each for each in inside if each.encode() in text)
    yield from (found.decode() for found in WORDS.findall(text))


def _kept(guarded_app: Guarded) -> Iterator[tuple[str, object]]:
    for kind in ("key", "session", "link", "source", "closed"):
        yield kind, dict(guarded_app.deployment.aggregator.store.records(kind))


def test_every_served_endpoint_is_in_the_access_table(guarded: Guarded) -> None:
    """A new endpoint fails here until its access is stated."""
    assert sorted(map(str, DECIDED)) == sorted(served(guarded.deployment.app))


# -- doors of programs -----------------------------------------------------------------------------


@pytest.mark.parametrize("endpoint", GUARDED, ids=str)
def test_a_key_of_another_role_is_refused(guarded: Guarded, endpoint: AccessRule) -> None:
    """Without a key, with one of another role, taken back, misspelled, or in the address."""
    right = guarded.keys[endpoint.role or Role.ADMIN]
    wrong = [key for role, key in guarded.keys.items() if not role.opens(endpoint.role or role)]
    elsewhere = {"HTTP_X_API_KEY": right, "HTTP_PROXY_AUTHORIZATION": f"Bearer {right}"}
    keys = ("", *guarded.revoked.values(), right[:-1], right.swapcase())
    headers = (*({"HTTP_AUTHORIZATION": header} for header in MALFORMED), elsewhere)
    unknown = [
        *(guarded.knock(endpoint, key=key) for key in keys),
        *(guarded.knock(endpoint, environ=header) for header in headers),
        *(guarded.knock(endpoint, query=f"?{name}={right}") for name in KEY_NAMES),
        guarded.knock(endpoint, cookie=Role.ADMIN),
    ]
    others = [guarded.knock(endpoint, key=key) for key in wrong]

    assert {(reply.status, reply.problem) for reply in unknown} == {(401, "no-key")}
    assert {(reply.status, reply.problem) for reply in others} <= {(403, "wrong-role")}
    assert guarded.knock(endpoint, key=right).status not in {401, 403}


@pytest.mark.parametrize("endpoint", of_kind(Kind.OPEN), ids=str)
def test_an_open_endpoint_responds_alike_to_all(guarded: Guarded, endpoint: AccessRule) -> None:
    """A key or none, right or wrong: it is not looked at. A form's token and an id are random."""
    keys = ("", "veilcount_admin_wrong", *guarded.keys.values(), guarded.revoked[Role.ADMIN])
    replies = [guarded.knock(endpoint, key=key) for key in keys]
    bodies = {re.sub(RANDOM, b"", reply.body) for reply in replies}

    assert (len(bodies), len({reply.status for reply in replies})) == (1, 1)


# -- pages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("endpoint", PAGES, ids=str)
def test_a_page_of_another_role_is_refused(guarded: Guarded, endpoint: AccessRule) -> None:
    """No stranger, no key, no ended or made-up session: all are led to the log-in."""
    key, session = guarded.keys[Role.ADMIN], guarded.sessions[Role.ADMIN]
    values = ("", "made-up", guarded.over, key, "\xff", "x" * 9_000)
    replies = [
        *(guarded.knock(endpoint, cookie=f"veilcount={value}") for value in values),
        *(guarded.knock(endpoint, cookie=cookie) for cookie in ("", f"other={session}")),
        *(
            guarded.knock(endpoint, query=query)
            for query in (f"?key={key}", f"?veilcount={session}")
        ),
        guarded.knock(endpoint, key=key),
    ]
    lesser = [role for role in Role if not role.opens(endpoint.role or role)]

    assert {reply.status for reply in replies} == {303}
    assert all(reply.headers["Location"].startswith("/login") for reply in replies)
    assert Role.DEVICE in lesser
    assert {guarded.knock(endpoint, cookie=role).status for role in lesser} == {403}


@pytest.mark.parametrize("endpoint", [each for each in PAGES if each.method == "POST"], ids=str)
def test_a_session_alone_sends_no_form(guarded: Guarded, endpoint: AccessRule) -> None:
    """Another site can make a browser send its cookie, but cannot know what our forms repeat."""
    body = b"form_token=" + b"0" * 64 + b"&role=admin&label=mine&text=&query=histogram"
    refused = [
        guarded.knock(endpoint, cookie=Role.ADMIN),
        guarded.knock(endpoint, cookie=Role.ADMIN, query=f"?form_token={'0' * 64}"),
        guarded.knock(endpoint, cookie=Role.ADMIN, body=body, kind=FORM),
        guarded.knock(endpoint, cookie=Role.ADMIN, body=b'{"form_token": ""}'),
    ]

    assert {reply.status for reply in refused} == {400}


@pytest.mark.parametrize("endpoint", of_kind(Kind.FORM), ids=str)
def test_an_open_form_is_short_and_of_our_page(guarded: Guarded, endpoint: AccessRule) -> None:
    """Else another site could log a browser in as somebody, or out; or fill disk and memory."""
    body = f"key={guarded.keys[Role.ADMIN]}&link=x".encode()
    cookies = ("", "veilcount=made-up", Role.ADMIN)
    refused = [guarded.knock(endpoint, body=body, kind=FORM, cookie=each) for each in cookies]
    part = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
    long, kind = part + bytes(1 << 20) + b"\r\n--x--\r\n", "multipart/form-data; boundary=x"
    unannounced = {"CONTENT_LENGTH": "", "wsgi.input_terminated": True}

    assert {reply.status for reply in refused} == {400}
    for environ in ({}, unannounced):
        assert guarded.knock(endpoint, body=long, kind=kind, environ=environ).status == 413


# -- what every answer brings along ----------------------------------------------------------------


@pytest.mark.parametrize("endpoint", DECIDED, ids=str)
def test_every_response_has_the_security_headers(guarded: Guarded, endpoint: AccessRule) -> None:
    """For each endpoint: a success, a refusal, a method not allowed, a path below it."""
    path, key = place_of(endpoint), guarded.keys[endpoint.role or Role.ADMIN]
    replies = [
        guarded.knock(endpoint, key=key, cookie=Role.ADMIN),
        guarded.knock(endpoint),
        guarded.ask(endpoint.method, f"{path}/below"),
        *(guarded.ask(method, path) for method in ("PATCH", "OPTIONS", "TRACE")),
    ]

    for reply in replies:
        headers = reply.headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers
        if reply.headers.get("Content-Type", "").startswith("text/html"):
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert headers["Referrer-Policy"] == "no-referrer"
    assert {reply.status for reply in replies[3:5]} <= {405, 404}


@pytest.mark.parametrize("error", [StoreUnavailable, ZeroDivisionError])
def test_no_endpoint_reveals_an_internal_error(
    tmp_path: Path, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is gone, an error that nobody foresaw: words and places stay inside."""
    with deployment(tmp_path, FILE, CENTRAL) as made:
        keys = {role: made.key(role) for role in Role}
        cookie = {"HTTP_COOKIE": f"veilcount={logged_in(made, Role.ADMIN, '/').secret}"}
        with monkeypatch.context() as broken:
            for name in BROKEN:
                broken.setattr(made.aggregator.store, name, _failing(error, tmp_path))
            replies = [
                made.ask(
                    each.method, place_of(each), key=keys[each.role or Role.ADMIN], environ=cookie
                )
                for each in DECIDED
            ]

        assert sum(reply.status >= 500 for reply in replies) >= 10
        assert not [leak for reply in replies for leak in leaks(reply, made)]


def _failing(error: type[Exception], place: Path) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error(f"{place}/secret.py: a fault of ours")

    return fail
