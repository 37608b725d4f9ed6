"""Access control: every endpoint and page refuses each kind of unauthorized request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.aggregator.api.deployment_fixtures import CENTRAL, FILE, Deployment, Response, deployment
from tests.aggregator.dashboard.page_fixtures import Visitor
from veilcount_aggregator.auth.api_keys import Role, create_key, load_api_keys, revoke_key
from veilcount_aggregator.auth.sessions import begin_session
from veilcount_aggregator.errors import StoreUnavailable

from .access_table import DECIDED, AccessRule, Kind, of_kind, served
from .leaks import leaks

PLACES = {
    "<name>": "theme",
    "<identity>": "00000000",
    "<form>": "csv",
    "<digest>": "0000000000000000",
    "<fingerprint>": "0" * 64,
    "<pseudonym>": "A" * 22,
}
MALFORMED = (
    *("Basic YTpi", "Digest a=b", "Bearer", "Bearer ", "Bearer x y", "bearer\t", "\xff\xfe"),
    *("Bearer " + "x" * 60_000, "Bearer ../../keys", "Bearer %00", "Bearer ' or 1=1 --"),
)
FORM = "application/x-www-form-urlencoded"
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

    def knock(
        self, endpoint: AccessRule, key: str = "", query: str = "", **environ: str
    ) -> Response:
        """Call an endpoint after enough time that earlier guesses do not count."""
        self.deployment.clocks.passed += 10
        path = place_of(endpoint) + query
        return self.deployment.ask(endpoint.method, path, key=key, environ=environ)


def place_of(endpoint: AccessRule) -> str:
    """Return a path of an endpoint."""
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
        made.aggregator.watch.refresh()
        guarded_app = Guarded(made, keys, revoked, sessions, over)
        for endpoint in (
            GUARDED[0],
            GUARDED[2],
            GUARDED[-1],
        ):  # each key's first use is written down
            guarded_app.knock(endpoint, keys[endpoint.role or Role.ADMIN])
        yield guarded_app


@pytest.fixture(autouse=True)
def _nothing_is_changed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whoever is refused has changed nothing: no key, no definition, no session."""
    if "guarded" not in request.fixturenames:
        yield
        return
    guarded_app: Guarded = request.getfixturevalue("guarded")
    before = list(_kept(guarded_app))
    yield

    assert list(_kept(guarded_app)) == before


def _kept(guarded_app: Guarded) -> Iterator[tuple[str, object]]:
    for kind in ("key", "session", "link", "source", "closed"):
        yield kind, dict(guarded_app.deployment.aggregator.store.records(kind))


# -- that nothing was forgotten --------------------------------------------------------------------


def test_every_served_endpoint_is_in_the_access_table(deployed: Deployment) -> None:
    """A new endpoint fails here until its access is stated."""
    assert sorted(map(str, DECIDED)) == sorted(served(deployed.app))


# -- doors of programs -----------------------------------------------------------------------------


@pytest.mark.parametrize("endpoint", GUARDED, ids=str)
def test_a_key_of_another_role_is_refused(guarded: Guarded, endpoint: AccessRule) -> None:
    """Without a key, with one of another role, taken back, misspelled, or in the address."""
    right = guarded.keys[endpoint.role or Role.ADMIN]
    wrong = [
        key for role, key in guarded.keys.items() if endpoint.role and not role.opens(endpoint.role)
    ]
    unknown = [
        guarded.knock(endpoint),
        *(guarded.knock(endpoint, key) for key in guarded.revoked.values()),
        *(guarded.knock(endpoint, HTTP_AUTHORIZATION=header) for header in MALFORMED),
        *(
            guarded.knock(endpoint, query=f"?{name}={right}")
            for name in ("key", "token", "Authorization")
        ),
        guarded.knock(endpoint, HTTP_COOKIE=f"veilcount={guarded.sessions[Role.ADMIN]}"),
        guarded.knock(endpoint, HTTP_X_API_KEY=right, HTTP_PROXY_AUTHORIZATION=f"Bearer {right}"),
        guarded.knock(endpoint, right[:-1]),
        guarded.knock(endpoint, right.swapcase()),
    ]
    others = [guarded.knock(endpoint, key) for key in wrong]

    assert {(reply.status, reply.problem) for reply in unknown} == {(401, "no-key")}
    assert {(reply.status, reply.problem) for reply in others} <= {(403, "wrong-role")}
    assert not [leak for reply in (*unknown, *others) for leak in leaks(reply, guarded.deployment)]
    assert guarded.knock(endpoint, right).status not in {401, 403}


@pytest.mark.parametrize("endpoint", of_kind(Kind.OPEN), ids=str)
def test_an_open_endpoint_responds_alike_to_all(guarded: Guarded, endpoint: AccessRule) -> None:
    """A key or none, right or wrong: it is not looked at."""
    keys = ("", "veilcount_admin_wrong", *guarded.keys.values(), *guarded.revoked.values())
    replies = [guarded.knock(endpoint, key) for key in keys]

    assert len({(reply.status, _without_token(reply.body)) for reply in replies}) == 1
    assert not [leak for reply in replies for leak in leaks(reply, guarded.deployment)]


def _without_token(body: bytes) -> bytes:
    """Return a page without what each visitor's forms repeat."""
    return b"".join(line for line in body.splitlines() if b'name="form_token"' not in line)


# -- pages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("endpoint", PAGES, ids=str)
def test_a_page_of_another_role_is_refused(guarded: Guarded, endpoint: AccessRule) -> None:
    """To no stranger, no key, no ended or made-up session: all are led to the log-in."""
    cookies = ("", "veilcount=", "veilcount=made-up", f"veilcount={guarded.over}",
               f"veilcount={guarded.keys[Role.ADMIN]}", f"other={guarded.sessions[Role.ADMIN]}",
               "veilcount=\xff", "veilcount=" + "x" * 9_000)  # fmt: skip
    key = guarded.keys[Role.ADMIN]
    replies = [
        *(guarded.knock(endpoint, HTTP_COOKIE=cookie) for cookie in cookies),
        guarded.knock(endpoint, key),
        guarded.knock(endpoint, query=f"?key={key}"),
        guarded.knock(endpoint, query=f"?veilcount={guarded.sessions[Role.ADMIN]}"),
    ]

    assert {reply.status for reply in replies} == {303}
    assert all(reply.headers["Location"].startswith("/login") for reply in replies)
    assert not [leak for reply in replies for leak in leaks(reply, guarded.deployment)]


@pytest.mark.parametrize("endpoint", PAGES, ids=str)
def test_a_page_opens_to_no_lesser_role(guarded: Guarded, endpoint: AccessRule) -> None:
    lesser = [role for role in Role if endpoint.role and not role.opens(endpoint.role)]
    refused = [guarded.knock(endpoint, HTTP_COOKIE=_cookie(guarded, role)) for role in lesser]

    assert {reply.status for reply in refused} <= {403}
    assert Role.DEVICE in lesser
    assert not [leak for reply in refused for leak in leaks(reply, guarded.deployment)]


@pytest.mark.parametrize("endpoint", [each for each in PAGES if each.method == "POST"], ids=str)
def test_a_session_alone_sends_no_form(guarded: Guarded, endpoint: AccessRule) -> None:
    """Another site can make a browser send its cookie, but cannot know what our forms repeat."""
    cookie = _cookie(guarded, Role.ADMIN)
    with_cookie = {"HTTP_COOKIE": cookie}
    body = b"form_token=" + b"0" * 64 + b"&role=admin&label=mine&text=&query=histogram"
    refused = [
        guarded.knock(endpoint, HTTP_COOKIE=cookie),
        guarded.knock(endpoint, query=f"?form_token={'0' * 64}", HTTP_COOKIE=cookie),
        guarded.deployment.ask("POST", place_of(endpoint), body, kind=FORM, environ=with_cookie),
        guarded.deployment.ask(
            "POST", place_of(endpoint), b'{"form_token": ""}', environ=with_cookie
        ),
    ]

    assert {reply.status for reply in refused} == {400}


@pytest.mark.parametrize("endpoint", of_kind(Kind.FORM), ids=str)
def test_a_form_that_is_open_to_all_is_of_a_page_of_ours(
    guarded: Guarded, endpoint: AccessRule
) -> None:
    """Else another site could log a browser in as somebody, or out."""
    body = f"key={guarded.keys[Role.ADMIN]}&link=x".encode()
    kind = "application/x-www-form-urlencoded"
    refused = [
        guarded.deployment.ask(
            "POST", place_of(endpoint), body, kind=kind, environ={"HTTP_COOKIE": cookie}
        )
        for cookie in ("", "veilcount=made-up", _cookie(guarded, Role.ADMIN))
    ]

    assert {reply.status for reply in refused} == {400}
    assert not [leak for reply in refused for leak in leaks(reply, guarded.deployment)]


def test_a_form_that_strangers_may_send_is_short(guarded: Guarded) -> None:
    """They cannot fill the disk or the memory with what is looked at by nobody."""
    part = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
    body = part + bytes(1 << 20) + b"\r\n--x--\r\n"
    kind = "multipart/form-data; boundary=x"
    for path in ("/login", "/enter", "/logout"):
        announced = guarded.deployment.ask("POST", path, body, kind=kind)
        environ: dict[str, Any] = {"CONTENT_LENGTH": "", "wsgi.input_terminated": True}
        unannounced = guarded.deployment.ask("POST", path, body, kind=kind, environ=environ)

        assert (announced.status, unannounced.status) == (413, 413)


def _cookie(guarded: Guarded, role: Role) -> str:
    return f"veilcount={guarded.sessions[role]}"


# -- what every answer brings along ----------------------------------------------------------------


@pytest.mark.parametrize("endpoint", DECIDED, ids=str)
def test_every_response_forbids_caching_framing_sniffing_and_referrers(
    guarded: Guarded, endpoint: AccessRule
) -> None:
    """For each endpoint: a success, a refusal, a method not allowed, a path below it."""
    right = guarded.knock(
        endpoint,
        guarded.keys[endpoint.role or Role.ADMIN],
        HTTP_COOKIE=_cookie(guarded, Role.ADMIN),
    )
    others = [
        guarded.knock(endpoint),
        guarded.deployment.ask("PATCH", place_of(endpoint)),
        guarded.deployment.ask("OPTIONS", place_of(endpoint)),
        guarded.deployment.ask("TRACE", place_of(endpoint)),
        guarded.deployment.ask(endpoint.method, f"{place_of(endpoint)}/below"),
    ]

    for reply in (right, *others):
        headers = reply.headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers
        if reply.headers.get("Content-Type", "").startswith("text/html"):
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert headers["Referrer-Policy"] == "no-referrer"
    assert {reply.status for reply in others[1:3]} <= {405, 404}


@pytest.mark.parametrize("error", [StoreUnavailable, ZeroDivisionError])
def test_no_endpoint_reveals_an_internal_error(
    tmp_path: Path, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is gone, an error that nobody foresaw: words and places stay inside."""
    with deployment(tmp_path, FILE, CENTRAL) as made:
        keys = {role: made.key(role) for role in Role}
        visitor = Visitor(made)
        visitor.enter(Role.ADMIN)
        visitor.get("/")
        cookie = {"HTTP_COOKIE": f"veilcount={visitor.secret}"}
        with monkeypatch.context() as broken:
            for name in (
                "records",
                "change_records",
                "service_counts",
                "report_counts",
                "new_pseudonyms",
                "counters",
                "close_row",
            ):
                broken.setattr(made.aggregator.store, name, _failing(error, tmp_path))
            replies = [
                made.ask(
                    endpoint.method,
                    place_of(endpoint),
                    key=keys[endpoint.role or Role.ADMIN],
                    environ=cookie,
                )
                for endpoint in DECIDED
            ]

        assert sum(reply.status >= 500 for reply in replies) >= 10
        assert not [leak for reply in replies for leak in leaks(reply, made)]


def _failing(error: type[Exception], place: Path) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error(f"{place}/secret.py: a fault of ours")

    return fail
