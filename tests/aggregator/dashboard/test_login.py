"""The way in: who is let in, how long, and what nobody can make of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.aggregator.api.deployment_fixtures import Deployment, open_worker
from tests.aggregator.dashboard.page_fixtures import HTTPS, Visitor
from veilcount_aggregator.api.auth import GUESSES
from veilcount_aggregator.auth import login_links
from veilcount_aggregator.auth.api_keys import Role, load_api_keys, revoke_key
from veilcount_aggregator.auth.rate_limit import BURST_SECONDS
from veilcount_aggregator.auth.sessions import LASTS, MOST, begin_session, form_token
from veilcount_aggregator.dashboard.browser_sessions import FIELD, HOST_COOKIE

PAGES = ("/", "/operations", "/plan", "/keys", "/definitions", "/collections/theme/releases")
ADMINS = ("/keys", "/definitions")
ELSEWHERE = (
    "https://elsewhere.example/",
    "//elsewhere.example/",
    "/\\elsewhere.example",
    "elsewhere",
    "/\t/elsewhere.example",
)
SECOND = timedelta(seconds=1)


# -- with a key ------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.ANALYST, Role.ADMIN])
def test_a_key_opens_the_pages_and_the_role_is_shown(deployed: Deployment, role: Role) -> None:
    visitor = Visitor(deployed)

    assert visitor.log_in(deployed.key(role)).leads_to == "/"
    assert f"{role} UTC day 2026-12-03" in visitor.get("/").text


def test_a_key_leads_where_one_wanted_to_go(deployed: Deployment, visitor: Visitor) -> None:
    asked = visitor.get("/operations?collection=theme")

    assert asked.leads_to == "/login?to=%2Foperations%3Fcollection%3Dtheme"
    assert 'value="/operations?collection=theme"' in visitor.get(asked.leads_to).html
    there = visitor.log_in(deployed.key(Role.ANALYST), to="/operations?collection=theme")
    assert there.leads_to == "/operations?collection=theme"


@pytest.mark.parametrize("to", ELSEWHERE)
def test_a_log_in_never_leads_elsewhere(deployed: Deployment, visitor: Visitor, to: str) -> None:
    assert visitor.log_in(deployed.key(Role.ANALYST), to=to).leads_to == "/"


def test_a_wrong_key_is_told_so_and_opens_nothing(deployed: Deployment, visitor: Visitor) -> None:
    wrong = visitor.log_in("veilcount_admin_of-my-own-making", to="/keys")

    assert wrong.status == 401
    assert "Unknown or revoked key" in wrong.text
    assert 'name="to" value="/keys"' in wrong.html
    assert "WWW-Authenticate" not in wrong.response.headers
    assert "of-my-own-making" not in wrong.html
    assert visitor.get("/").leads_to == "/login"


def test_a_key_of_devices_opens_no_page(deployed: Deployment, visitor: Visitor) -> None:
    wrong = visitor.log_in(deployed.key(Role.DEVICE))

    assert wrong.status == 403
    assert "This is a device key" in wrong.text
    assert visitor.get("/").leads_to == "/login"


def test_a_revoked_key_opens_nothing(deployed: Deployment, visitor: Visitor) -> None:
    key = deployed.key(Role.ADMIN)
    _revoke_all(deployed)

    assert visitor.log_in(key).status == 401


def test_who_guesses_too_often_waits_and_the_right_key_does_not(
    deployed: Deployment, visitor: Visitor
) -> None:
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
    secret = login_links.create_link(deployed.aggregator.store, Role.ANALYST, deployed.clocks.now)
    first, second = Visitor(deployed), Visitor(deployed)
    for visitor in (first, second):
        visitor.get(login_links.PATH)

    assert first.post(login_links.PATH, link=secret).leads_to == "/"
    late = second.post(login_links.PATH, link=secret)
    assert late.status == 403
    assert "was used" in late.text
    assert second.get("/").leads_to == "/login"


def test_a_link_is_over_after_a_quarter_of_an_hour(deployed: Deployment, visitor: Visitor) -> None:
    secret = login_links.create_link(deployed.aggregator.store, Role.ADMIN, deployed.clocks.now)
    deployed.clocks.now += login_links.LASTS
    visitor.get(login_links.PATH)

    assert visitor.post(login_links.PATH, link=secret).status == 403


def test_links_that_are_over_are_cleared_away(deployed: Deployment) -> None:
    store = deployed.aggregator.store
    login_links.create_link(store, Role.ADMIN, deployed.clocks.now)
    login_links.create_link(store, Role.ADMIN, deployed.clocks.now + login_links.LASTS)

    assert len(store.records(login_links.KIND)) == 1


def test_a_link_opens_what_it_was_made_for_and_no_more(
    deployed: Deployment, visitor: Visitor
) -> None:
    visitor.enter(Role.ANALYST)

    assert visitor.get("/").status == 200
    assert visitor.get("/keys").status == 403


def test_the_store_knows_no_link_and_no_cookie(deployed: Deployment, visitor: Visitor) -> None:
    store = deployed.aggregator.store
    secret = login_links.create_link(store, Role.ADMIN, deployed.clocks.now)
    visitor.enter(Role.ADMIN)
    kept = b"".join(piece.key.encode() + piece.body for piece in store.export_pieces())

    assert visitor.secret
    assert secret.encode() not in kept
    assert visitor.secret.encode() not in kept


# -- the cookie ------------------------------------------------------------------------------------


def test_the_cookie_is_for_this_site_and_no_script(deployed: Deployment, visitor: Visitor) -> None:
    cookie = visitor.log_in(deployed.key(Role.ANALYST)).cookie

    assert cookie.startswith("veilcount=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert "Domain" not in cookie


def test_over_https_the_cookie_is_bound_to_the_host(deployed: Deployment) -> None:
    visitor = Visitor(deployed, HTTPS)
    cookie = visitor.log_in(deployed.key(Role.ANALYST)).cookie

    assert cookie.startswith(f"{HOST_COOKIE}=")
    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert "Domain" not in cookie


def test_a_cookie_of_plain_http_opens_nothing_over_https(
    deployed: Deployment, visitor: Visitor
) -> None:
    visitor.enter(Role.ADMIN)
    visitor.headers = HTTPS

    assert visitor.get("/").leads_to.startswith("/login")


def test_a_session_is_never_one_that_was_there_before(
    deployed: Deployment, visitor: Visitor
) -> None:
    visitor.get("/login")
    planted = visitor.secret
    visitor.log_in(deployed.key(Role.ANALYST))
    other = Visitor(deployed)
    other.client.set_cookie("veilcount", planted)

    assert visitor.secret != planted
    assert other.get("/").leads_to == "/login"


def test_a_page_is_kept_by_no_browser(visitor: Visitor) -> None:
    visitor.enter(Role.ANALYST)

    assert visitor.get("/").response.headers["Cache-Control"] == "no-store"


# -- how long --------------------------------------------------------------------------------------


def test_a_session_ends_after_twelve_hours(deployed: Deployment, visitor: Visitor) -> None:
    visitor.enter(Role.ANALYST)
    deployed.clocks.now += LASTS - SECOND

    assert visitor.get("/").status == 200
    deployed.clocks.now += SECOND
    assert visitor.get("/").leads_to == "/login"


def test_a_session_ends_with_its_key(deployed: Deployment, visitor: Visitor) -> None:
    visitor.log_in(deployed.key(Role.ANALYST))
    _revoke_all(deployed)

    assert visitor.get("/").leads_to == "/login"


def test_log_out_ends_it_in_every_worker(deployed: Deployment, visitor: Visitor) -> None:
    with open_worker(deployed.aggregator.settings.store, deployed.clocks.now) as second:
        visitor.enter(Role.ANALYST)
        there = Visitor(second)
        there.client.set_cookie("veilcount", visitor.secret)

        assert there.get("/").status == 200
        visitor.get("/")
        visitor.post("/logout")
        second.clocks.passed += 1
        assert there.get("/").leads_to == "/login"
        assert visitor.get("/").leads_to == "/login"


def test_a_key_has_so_many_sessions_and_no_more(deployed: Deployment, visitor: Visitor) -> None:
    key = deployed.key(Role.ANALYST)
    visitor.log_in(key)
    (identity,) = (each.id for each in load_api_keys(deployed.aggregator.store).keys.values())
    for second in range(MOST):
        begin_session(
            deployed.aggregator.store,
            Role.ANALYST,
            identity,
            deployed.clocks.now + second * SECOND + SECOND,
        )
    deployed.aggregator.watch.refresh()

    assert visitor.get("/").leads_to == "/login"


# -- forms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/keys", "/keys/00000000/revoke", "/definitions", "/definitions/preview",
     "/definitions/theme/close", "/collections/visits/releases", "/logout", "/login", "/enter"],
)  # fmt: skip
def test_a_form_of_another_site_does_nothing(
    deployed: Deployment, visitor: Visitor, path: str
) -> None:
    visitor.enter(Role.ADMIN)
    other = Visitor(deployed)
    other.enter(Role.ADMIN)
    before = deployed.aggregator.store.generation()
    refused = [visitor.post(path, **{FIELD: given}) for given in ("", other.token, "x" * 64)]
    if path != "/logout":  # it is open to all: without a token it is refused just so
        refused.append(Visitor(deployed).post(path))

    assert {page.status for page in refused if not page.leads_to} == {400}
    assert {page.leads_to for page in refused if page.leads_to} <= {"/login"}
    assert deployed.aggregator.store.generation() == before


def test_the_token_of_a_form_is_not_the_cookie(visitor: Visitor) -> None:
    visitor.enter(Role.ANALYST)
    page = visitor.get("/")

    assert form_token(visitor.secret) in page.html
    assert visitor.secret not in page.html


# -- roles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_is_led_to_the_log_in(deployed: Deployment, path: str) -> None:
    page = Visitor(deployed).get(path)

    assert page.status == 303
    assert page.leads_to.startswith("/login")


@pytest.mark.parametrize("path", ADMINS)
def test_an_analyst_is_told_that_a_page_is_for_admins(visitor: Visitor, path: str) -> None:
    visitor.enter(Role.ANALYST)
    page = visitor.get(path)

    assert page.status == 403
    assert "this page is for keys of role admin" in page.text
    assert f'href="{path}"' not in page.html


@pytest.mark.parametrize(
    "path", ["/keys", "/keys/00000000/revoke", "/definitions", "/definitions/theme/close"]
)
def test_an_analyst_changes_nothing(deployed: Deployment, visitor: Visitor, path: str) -> None:
    visitor.enter(Role.ANALYST)
    visitor.get("/")
    before = deployed.aggregator.store.generation()

    assert visitor.post(path, role="admin", label="mine").status == 403
    assert deployed.aggregator.store.generation() == before


def test_a_cookie_opens_no_door_of_programs(visitor: Visitor) -> None:
    visitor.enter(Role.ADMIN)

    assert visitor.get("/v1/keys").status == 401


def _revoke_all(deployed: Deployment) -> None:
    store = deployed.aggregator.store
    for key in load_api_keys(store).keys.values():
        revoke_key(store, key.id, deployed.clocks.now)
    deployed.aggregator.watch.refresh()
