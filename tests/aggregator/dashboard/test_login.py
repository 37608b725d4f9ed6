"""Log-in by key or link, sessions and their cookie, form tokens, roles."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.aggregator.api.deployment_fixtures import Deployment, open_worker
from tests.aggregator.dashboard.page_fixtures import HTTPS, Visitor, logged_in
from veilcount_aggregator.api.auth import GUESSES
from veilcount_aggregator.auth import sessions
from veilcount_aggregator.auth.api_keys import Role, load_api_keys, revoke_key
from veilcount_aggregator.auth.rate_limit import BURST_SECONDS
from veilcount_aggregator.auth.sessions import LASTS, MOST, begin_session, form_token
from veilcount_aggregator.dashboard.browser_sessions import FIELD, HOST_COOKIE

PAGES = ("/", "/operations", "/plan", "/keys", "/definitions", "/collections/theme/releases")
SECOND = timedelta(seconds=1)
WANTED = "/operations?collection=theme"


def revoke_all(deployed: Deployment) -> None:
    """Revoke every key."""
    store = deployed.aggregator.store
    for key in load_api_keys(store).keys.values():
        revoke_key(store, key.id, deployed.clocks.now)
    deployed.aggregator.watch.refresh()


# -- with a key ------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.ANALYST, Role.ADMIN])
def test_a_key_opens_the_pages_and_the_role_is_shown(deployed: Deployment, role: Role) -> None:
    visitor = Visitor(deployed)

    assert visitor.log_in(deployed.key(role)).leads_to == "/"
    assert f"{role} UTC day 2026-12-03" in visitor.get("/").text


def test_a_log_in_leads_to_the_requested_page(deployed: Deployment, visitor: Visitor) -> None:
    requested = visitor.get(WANTED)

    assert requested.leads_to == "/login?to=%2Foperations%3Fcollection%3Dtheme"
    assert visitor.get(requested.leads_to).field("to") == WANTED
    assert visitor.log_in(deployed.key(Role.ANALYST), to=WANTED).leads_to == WANTED


@pytest.mark.parametrize(
    "to",
    [
        "https://elsewhere.example/", "//elsewhere.example/", "/\\elsewhere.example", "elsewhere",
        "/\t/elsewhere.example",
    ],
)  # fmt: skip
def test_a_log_in_never_leads_to_another_site(
    deployed: Deployment, visitor: Visitor, to: str
) -> None:
    assert visitor.log_in(deployed.key(Role.ANALYST), to=to).leads_to == "/"


def test_an_unknown_key_is_refused_and_not_repeated(visitor: Visitor) -> None:
    refused = visitor.log_in("veilcount_admin_of-my-own-making", to="/keys")

    assert refused.status == 401
    assert "Unknown or revoked key" in refused.text
    assert refused.field("to") == "/keys"
    assert "WWW-Authenticate" not in refused.response.headers
    assert "of-my-own-making" not in refused.html
    assert visitor.get("/").leads_to == "/login"


def test_device_keys_and_revoked_keys_open_no_page(deployed: Deployment, visitor: Visitor) -> None:
    device, admin = deployed.key(Role.DEVICE), deployed.key(Role.ADMIN)
    refused = visitor.log_in(device)
    revoke_all(deployed)

    assert refused.status == 403
    assert "This is a device key" in refused.text
    assert visitor.get("/").leads_to == "/login"
    assert visitor.log_in(admin).status == 401


def test_guesses_are_limited_and_a_valid_key_is_not(deployed: Deployment, visitor: Visitor) -> None:
    key = deployed.key(Role.ADMIN)
    visitor.get("/login")
    burst = int(GUESSES * BURST_SECONDS)
    first = {visitor.post("/login", key=f"guess-{guess}").status for guess in range(burst)}
    late = visitor.post("/login", key="guess-too-many")

    assert first == {401}
    assert late.status == 429
    assert "Too many attempts" in late.text
    assert Visitor(deployed).log_in(key).leads_to == "/"
    deployed.clocks.passed += 1
    assert visitor.post("/login", key="guess-later").status == 401


# -- by a link -------------------------------------------------------------------------------------


def test_a_link_opens_once(deployed: Deployment) -> None:
    secret = sessions.create_link(deployed.aggregator.store, Role.ANALYST, deployed.clocks.now)
    first, second = Visitor(deployed), Visitor(deployed)
    for visitor in (first, second):
        visitor.get(sessions.LINK_PATH)

    assert first.post(sessions.LINK_PATH, link=secret).leads_to == "/"
    late = second.post(sessions.LINK_PATH, link=secret)
    assert late.status == 403
    assert "was used" in late.text
    assert second.get("/").leads_to == "/login"


def test_an_expired_link_is_refused_and_dropped_by_the_next(
    deployed: Deployment, visitor: Visitor
) -> None:
    store = deployed.aggregator.store
    secret = sessions.create_link(store, Role.ADMIN, deployed.clocks.now)
    deployed.clocks.now += sessions.LINK_LASTS
    visitor.get(sessions.LINK_PATH)

    assert visitor.post(sessions.LINK_PATH, link=secret).status == 403
    sessions.create_link(store, Role.ADMIN, deployed.clocks.now)
    assert len(store.records(sessions.LINK_KIND)) == 1


def test_the_store_has_no_secret_of_a_link_or_a_cookie(deployed: Deployment) -> None:
    store = deployed.aggregator.store
    secret = sessions.create_link(store, Role.ADMIN, deployed.clocks.now)
    cookie = logged_in(deployed, Role.ADMIN).secret
    stored = b"".join(piece.key.encode() + piece.body for piece in store.export_pieces())

    assert cookie
    assert secret.encode() not in stored
    assert cookie.encode() not in stored


# -- the cookie ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "name", "attributes"),
    [({}, "veilcount", set()), (HTTPS, HOST_COOKIE, {"Secure"})],
    ids=["http", "https"],
)
def test_the_cookie_is_for_this_host_and_no_script(
    deployed: Deployment, headers: dict[str, str], name: str, attributes: set[str]
) -> None:
    cookie = Visitor(deployed, headers).log_in(deployed.key(Role.ANALYST)).cookie

    assert cookie.startswith(f"{name}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} | attributes <= set(cookie.split("; "))
    assert "Domain" not in cookie


def test_a_cookie_of_plain_http_opens_nothing_over_https(deployed: Deployment) -> None:
    visitor = logged_in(deployed, Role.ADMIN)
    visitor.headers = HTTPS

    assert visitor.get("/").leads_to.startswith("/login")


def test_a_log_in_begins_a_new_session(deployed: Deployment, visitor: Visitor) -> None:
    """A planted cookie does not become one."""
    visitor.get("/login")
    planted = visitor.secret
    visitor.log_in(deployed.key(Role.ANALYST))
    other = Visitor(deployed)
    other.client.set_cookie("veilcount", planted)

    assert visitor.secret != planted
    assert other.get("/").leads_to == "/login"


def test_browsers_do_not_store_pages(deployed: Deployment) -> None:
    assert logged_in(deployed).get("/").response.headers["Cache-Control"] == "no-store"


# -- sessions --------------------------------------------------------------------------------------


def test_a_session_ends_after_twelve_hours(deployed: Deployment) -> None:
    visitor = logged_in(deployed)
    deployed.clocks.now += LASTS - SECOND

    assert visitor.get("/").status == 200
    deployed.clocks.now += SECOND
    assert visitor.get("/").leads_to == "/login"


def add_sessions(deployed: Deployment) -> None:
    """Begin as many later sessions of the one key as it may have."""
    (key,) = load_api_keys(deployed.aggregator.store).keys.values()
    for second in range(1, MOST + 1):
        now = deployed.clocks.now + second * SECOND
        begin_session(deployed.aggregator.store, Role.ANALYST, key.id, now)
    deployed.aggregator.watch.refresh()


@pytest.mark.parametrize("end", [revoke_all, add_sessions], ids=["revoked key", "later sessions"])
def test_a_session_ends_with_its_key_or_by_too_many_others(
    deployed: Deployment, visitor: Visitor, end: Callable[[Deployment], None]
) -> None:
    visitor.log_in(deployed.key(Role.ANALYST))

    assert visitor.get("/").status == 200
    end(deployed)
    assert visitor.get("/").leads_to == "/login"


def test_a_log_out_ends_the_session_in_every_worker(deployed: Deployment) -> None:
    with open_worker(deployed.aggregator.settings.store, deployed.clocks.now) as second:
        visitor, there = logged_in(deployed), Visitor(second)
        there.client.set_cookie("veilcount", visitor.secret)

        assert there.get("/").status == 200
        visitor.get("/")
        visitor.post("/logout")
        second.clocks.passed += 1
        assert there.get("/").leads_to == "/login"
        assert visitor.get("/").leads_to == "/login"


# -- forms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/keys", "/keys/00000000/revoke", "/definitions", "/definitions/preview",
     "/definitions/theme/close", "/collections/visits/releases", "/logout", "/login", "/enter"],
)  # fmt: skip
def test_a_form_of_another_site_changes_nothing(deployed: Deployment, path: str) -> None:
    visitor, other = (logged_in(deployed, Role.ADMIN) for _ in range(2))
    before = deployed.aggregator.store.generation()
    refused = [visitor.post(path, **{FIELD: token}) for token in ("", other.token, "x" * 64)]
    if path != "/logout":  # it is public: without a token it is refused all the same
        refused.append(Visitor(deployed).post(path))

    assert {page.status for page in refused if not page.leads_to} == {400}
    assert {page.leads_to for page in refused if page.leads_to} <= {"/login"}
    assert deployed.aggregator.store.generation() == before


def test_the_token_of_a_form_is_not_the_cookie(deployed: Deployment) -> None:
    visitor = logged_in(deployed)
    page = visitor.get("/")

    assert form_token(visitor.secret) in page.html
    assert visitor.secret not in page.html


# -- roles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES)
def test_without_a_session_every_page_redirects_to_the_log_in(visitor: Visitor, path: str) -> None:
    page = visitor.get(path)

    assert page.status == 303
    assert page.leads_to.startswith("/login")


@pytest.mark.parametrize("path", ["/keys", "/definitions"])
def test_a_page_for_admins_is_refused_to_an_analyst_with_the_reason(
    deployed: Deployment, path: str
) -> None:
    page = logged_in(deployed).get(path)

    assert page.status == 403
    assert "this page is for keys of role admin" in page.text
    assert f'href="{path}"' not in page.html


@pytest.mark.parametrize(
    "path", ["/keys", "/keys/00000000/revoke", "/definitions", "/definitions/theme/close"]
)
def test_an_analyst_changes_nothing(deployed: Deployment, path: str) -> None:
    visitor = logged_in(deployed, path="/")
    before = deployed.aggregator.store.generation()

    assert visitor.post(path, role="admin", label="mine").status == 403
    assert deployed.aggregator.store.generation() == before


def test_a_cookie_opens_no_api_endpoint(deployed: Deployment) -> None:
    assert logged_in(deployed, Role.ADMIN).get("/v1/keys").status == 401
