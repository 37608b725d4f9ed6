"""Who may not: every door of programs and every page, with each way of not being let in."""

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

from .access_table import DECIDED, Door, Kind, of_kind, served
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

    def knock(self, door: Door, key: str = "", query: str = "", **environ: str) -> Response:
        """Ask a door after enough time that no guess before counts."""
        self.deployment.clocks.passed += 10
        path = place_of(door) + query
        return self.deployment.ask(door.method, path, key=key, environ=environ)


def place_of(door: Door) -> str:
    """Return a path that leads to a door."""
    shown = door.method == "GET" and door.kind is Kind.PAGE
    path = door.path if shown else door.path.replace("<name>", "nothing")
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
        given = Guarded(made, keys, revoked, sessions, over)
        for door in (GUARDED[0], GUARDED[2], GUARDED[-1]):  # each key's first use is written down
            given.knock(door, keys[door.role or Role.ADMIN])
        yield given


@pytest.fixture(autouse=True)
def _nothing_is_changed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whoever is refused has changed nothing: no key, no definition, no session."""
    if "guarded" not in request.fixturenames:
        yield
        return
    given: Guarded = request.getfixturevalue("guarded")
    before = list(_kept(given))
    yield

    assert list(_kept(given)) == before


def _kept(given: Guarded) -> Iterator[tuple[str, object]]:
    for kind in ("key", "session", "link", "source", "closed"):
        yield kind, dict(given.deployment.aggregator.store.records(kind))


# -- that nothing was forgotten --------------------------------------------------------------------


def test_every_door_that_is_served_was_decided_about(deployed: Deployment) -> None:
    """A new door fails here until somebody has written down who may open it."""
    assert sorted(map(str, DECIDED)) == sorted(served(deployed.app))


# -- doors of programs -----------------------------------------------------------------------------


@pytest.mark.parametrize("door", GUARDED, ids=str)
def test_a_door_opens_to_no_other(guarded: Guarded, door: Door) -> None:
    """Without a key, with one of another role, taken back, misspelled, or in the address."""
    right = guarded.keys[door.role or Role.ADMIN]
    wrong = [key for role, key in guarded.keys.items() if door.role and not role.opens(door.role)]
    unknown = [
        guarded.knock(door),
        *(guarded.knock(door, key) for key in guarded.revoked.values()),
        *(guarded.knock(door, HTTP_AUTHORIZATION=given) for given in MALFORMED),
        *(
            guarded.knock(door, query=f"?{name}={right}")
            for name in ("key", "token", "Authorization")
        ),
        guarded.knock(door, HTTP_COOKIE=f"veilcount={guarded.sessions[Role.ADMIN]}"),
        guarded.knock(door, HTTP_X_API_KEY=right, HTTP_PROXY_AUTHORIZATION=f"Bearer {right}"),
        guarded.knock(door, right[:-1]),
        guarded.knock(door, right.swapcase()),
    ]
    others = [guarded.knock(door, key) for key in wrong]

    assert {(reply.status, reply.problem) for reply in unknown} == {(401, "no-key")}
    assert {(reply.status, reply.problem) for reply in others} <= {(403, "wrong-role")}
    assert not [leak for reply in (*unknown, *others) for leak in leaks(reply, guarded.deployment)]
    assert guarded.knock(door, right).status not in {401, 403}


@pytest.mark.parametrize("door", of_kind(Kind.OPEN), ids=str)
def test_an_open_door_says_the_same_to_all(guarded: Guarded, door: Door) -> None:
    """A key or none, right or wrong: it is not looked at."""
    keys = ("", "veilcount_admin_wrong", *guarded.keys.values(), *guarded.revoked.values())
    replies = [guarded.knock(door, key) for key in keys]

    assert len({(reply.status, _without_token(reply.body)) for reply in replies}) == 1
    assert not [leak for reply in replies for leak in leaks(reply, guarded.deployment)]


def _without_token(body: bytes) -> bytes:
    """Return a page without what each visitor's forms repeat."""
    return b"".join(line for line in body.splitlines() if b'name="form_token"' not in line)


# -- pages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("door", PAGES, ids=str)
def test_a_page_opens_to_no_other(guarded: Guarded, door: Door) -> None:
    """To no stranger, no key, no ended or made-up session: all are led to the log-in."""
    cookies = ("", "veilcount=", "veilcount=made-up", f"veilcount={guarded.over}",
               f"veilcount={guarded.keys[Role.ADMIN]}", f"other={guarded.sessions[Role.ADMIN]}",
               "veilcount=\xff", "veilcount=" + "x" * 9_000)  # fmt: skip
    key = guarded.keys[Role.ADMIN]
    replies = [
        *(guarded.knock(door, HTTP_COOKIE=cookie) for cookie in cookies),
        guarded.knock(door, key),
        guarded.knock(door, query=f"?key={key}"),
        guarded.knock(door, query=f"?veilcount={guarded.sessions[Role.ADMIN]}"),
    ]

    assert {reply.status for reply in replies} == {303}
    assert all(reply.headers["Location"].startswith("/login") for reply in replies)
    assert not [leak for reply in replies for leak in leaks(reply, guarded.deployment)]


@pytest.mark.parametrize("door", PAGES, ids=str)
def test_a_page_opens_to_no_lesser_role(guarded: Guarded, door: Door) -> None:
    lesser = [role for role in Role if door.role and not role.opens(door.role)]
    refused = [guarded.knock(door, HTTP_COOKIE=_cookie(guarded, role)) for role in lesser]

    assert {reply.status for reply in refused} <= {403}
    assert Role.DEVICE in lesser
    assert not [leak for reply in refused for leak in leaks(reply, guarded.deployment)]


@pytest.mark.parametrize("door", [each for each in PAGES if each.method == "POST"], ids=str)
def test_a_session_alone_sends_no_form(guarded: Guarded, door: Door) -> None:
    """Another site can make a browser send its cookie, but cannot know what our forms repeat."""
    cookie = _cookie(guarded, Role.ADMIN)
    with_cookie = {"HTTP_COOKIE": cookie}
    body = b"form_token=" + b"0" * 64 + b"&role=admin&label=mine&text=&query=histogram"
    refused = [
        guarded.knock(door, HTTP_COOKIE=cookie),
        guarded.knock(door, query=f"?form_token={'0' * 64}", HTTP_COOKIE=cookie),
        guarded.deployment.ask("POST", place_of(door), body, kind=FORM, environ=with_cookie),
        guarded.deployment.ask("POST", place_of(door), b'{"form_token": ""}', environ=with_cookie),
    ]

    assert {reply.status for reply in refused} == {400}


@pytest.mark.parametrize("door", of_kind(Kind.FORM), ids=str)
def test_a_form_that_is_open_to_all_is_of_a_page_of_ours(guarded: Guarded, door: Door) -> None:
    """Else another site could log a browser in as somebody, or out."""
    body = f"key={guarded.keys[Role.ADMIN]}&link=x".encode()
    kind = "application/x-www-form-urlencoded"
    refused = [
        guarded.deployment.ask(
            "POST", place_of(door), body, kind=kind, environ={"HTTP_COOKIE": cookie}
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


@pytest.mark.parametrize("door", DECIDED, ids=str)
def test_no_answer_is_kept_framed_guessed_at_or_told_onward(guarded: Guarded, door: Door) -> None:
    """Of each door: a right answer, a refusal, a method that it has not, a path below it."""
    right = guarded.knock(
        door, guarded.keys[door.role or Role.ADMIN], HTTP_COOKIE=_cookie(guarded, Role.ADMIN)
    )
    others = [
        guarded.knock(door),
        guarded.deployment.ask("PATCH", place_of(door)),
        guarded.deployment.ask("OPTIONS", place_of(door)),
        guarded.deployment.ask("TRACE", place_of(door)),
        guarded.deployment.ask(door.method, f"{place_of(door)}/below"),
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
def test_no_door_tells_what_went_wrong_within(
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
                    door.method, place_of(door), key=keys[door.role or Role.ADMIN], environ=cookie
                )
                for door in DECIDED
            ]

        assert sum(reply.status >= 500 for reply in replies) >= 10
        assert not [leak for reply in replies for leak in leaks(reply, made)]


def _failing(error: type[Exception], place: Path) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error(f"{place}/secret.py: a fault of ours")

    return fail
