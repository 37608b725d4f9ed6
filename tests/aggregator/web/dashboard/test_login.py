"""Log-in by key or link, sessions and their cookie, form tokens, roles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from veilcount_aggregator.records import sessions
from veilcount_aggregator.records.api_keys import Role, load_api_keys, revoke_key
from veilcount_aggregator.records.sessions import LASTS, MOST, begin_session, form_token
from veilcount_aggregator.server.app import create_app
from veilcount_aggregator.web.api.auth import GUESSES
from veilcount_aggregator.web.dashboard.browser_sessions import FIELD, HOST_COOKIE
from veilcount_serving.rate_limit import BURST_SECONDS

from ..api.deployment_fixtures import Deployment, open_worker
from .page_fixtures import HTTPS, Visitor, logged_in

SECOND = timedelta(seconds=1)
ELSEWHERE = (
    *("https://elsewhere.example/", "//elsewhere.example/", "/\\elsewhere.example", "elsewhere"),
    "/\t/elsewhere.example",
)
FORMS = (
    *("/keys", "/keys/00000000/revoke", "/definitions", "/definitions/theme/close"),
    *("/definitions/preview", "/collections/visits/releases", "/logout", "/login", "/enter"),
)


def revoke_all(deployed: Deployment) -> None:
    store = deployed.aggregator.store
    for key in load_api_keys(store).keys.values():
        revoke_key(store, key.id, deployed.clocks.now)
    deployed.aggregator.catalog_cache.refresh()


# -- with a key ------------------------------------------------------------------------------------


def test_a_log_in_never_leads_to_another_site(deployed: Deployment) -> None:
    key = deployed.key(Role.ANALYST)

    assert {Visitor(deployed).log_in(key, to=to).leads_to for to in ELSEWHERE} == {"/"}
    assert Visitor(deployed).log_in(key, to="/plan?unit=day").leads_to == "/plan?unit=day"


def test_unknown_revoked_and_device_keys_open_no_page(
    deployed: Deployment, visitor: Visitor
) -> None:
    device, admin = deployed.key(Role.DEVICE), deployed.key(Role.ADMIN)
    unknown = visitor.log_in("veilcount_admin_of-my-own-making", to="/keys")
    refused = visitor.log_in(device)
    revoke_all(deployed)
    revoked = visitor.log_in(admin)

    assert (unknown.status, refused.status, revoked.status) == (401, 403, 401)
    assert "Unknown or revoked key" in unknown.text
    assert "This is a device key" in refused.text
    assert unknown.field("to") == "/keys"
    assert "WWW-Authenticate" not in unknown.response.headers
    assert "of-my-own-making" not in unknown.html
    assert visitor.get("/").leads_to == "/login"


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


def test_a_link_opens_once_and_expires(deployed: Deployment) -> None:
    """An expired link is dropped by the next; the store has no secret of a link or a cookie."""
    store = deployed.aggregator.store
    used, expired = (
        sessions.create_link(store, Role.ANALYST, deployed.clocks.now) for _ in range(2)
    )
    first, second = Visitor(deployed), Visitor(deployed)
    for visitor in (first, second):
        visitor.get(sessions.LINK_PATH)

    assert first.post(sessions.LINK_PATH, link=used).leads_to == "/"
    late = second.post(sessions.LINK_PATH, link=used)
    assert late.status == 403
    assert "was used" in late.text
    deployed.clocks.now += sessions.LINK_LASTS
    assert second.post(sessions.LINK_PATH, link=expired).status == 403
    assert second.get("/").leads_to == "/login"
    newest = sessions.create_link(store, Role.ADMIN, deployed.clocks.now)
    assert len(store.records(sessions.LINK_KIND)) == 1
    stored = b"".join(piece.key.encode() + piece.body for piece in store.export_pieces())
    assert not any(secret.encode() in stored for secret in (newest, first.secret))
    assert first.secret


def test_a_link_that_is_opened_again_leads_whom_it_logged_in_to_the_overview(
    deployed: Deployment,
) -> None:
    secret = sessions.create_link(deployed.aggregator.store, Role.ANALYST, deployed.clocks.now)
    visitor = Visitor(deployed)
    visitor.get(sessions.LINK_PATH)
    visitor.post(sessions.LINK_PATH, link=secret)
    visitor.get(sessions.LINK_PATH)

    assert visitor.post(sessions.LINK_PATH, link=secret).leads_to == "/"
    assert visitor.get("/keys").status == 403


@pytest.mark.parametrize("development", [True, False])
def test_a_used_link_names_the_command_for_another(
    deployed: Deployment, *, development: bool
) -> None:
    """With the store of a development server; a real one shows no address of its store."""
    settings = replace(deployed.aggregator.settings, dev=development)
    aggregator = replace(deployed.aggregator, settings=settings)
    visitor = Visitor(replace(deployed, app=create_app(aggregator)))
    visitor.get(sessions.LINK_PATH)
    page = visitor.post(sessions.LINK_PATH, link="of-a-process-that-ended")

    assert page.status == 403
    assert "`veilcount keys link" in page.text
    assert (f"keys link --store {settings.store}`" in page.text) is development
    assert (settings.store in page.text) is development


# -- the cookie and its session --------------------------------------------------------------------


def test_the_cookie_is_for_this_host_and_no_script(deployed: Deployment) -> None:
    """One of plain HTTP opens nothing over HTTPS."""
    key = deployed.key(Role.ANALYST)
    plain = Visitor(deployed)
    cookies = [each.log_in(key).cookie for each in (plain, Visitor(deployed, HTTPS))]
    attributes = [set(cookie.split("; ")[1:]) for cookie in cookies]
    plain.headers = HTTPS

    assert [cookie.partition("=")[0] for cookie in cookies] == ["veilcount", HOST_COOKIE]
    assert all({"HttpOnly", "SameSite=Strict", "Path=/"} <= attribute for attribute in attributes)
    assert ["Secure" in attribute for attribute in attributes] == [False, True]
    assert not any("Domain" in cookie for cookie in cookies)
    assert plain.get("/").leads_to.startswith("/login")


def test_a_planted_cookie_does_not_become_a_session(deployed: Deployment, visitor: Visitor) -> None:
    visitor.get("/login")
    planted = visitor.secret
    visitor.log_in(deployed.key(Role.ANALYST))

    assert visitor.secret != planted
    visitor.client.set_cookie("veilcount", planted)
    assert visitor.get("/").leads_to == "/login"


def add_sessions(deployed: Deployment) -> None:
    (key,) = load_api_keys(deployed.aggregator.store).keys.values()
    for second in range(1, MOST + 1):
        now = deployed.clocks.now + second * SECOND
        begin_session(deployed.aggregator.store, Role.ANALYST, key.id, now)
    deployed.aggregator.catalog_cache.refresh()


def let_it_expire(deployed: Deployment) -> None:
    deployed.clocks.now += SECOND


@pytest.mark.parametrize("end", [revoke_all, add_sessions, let_it_expire])
def test_a_session_ends_with_its_key_by_too_many_others_or_after_twelve_hours(
    deployed: Deployment, visitor: Visitor, end: Callable[[Deployment], None]
) -> None:
    visitor.log_in(deployed.key(Role.ANALYST))
    deployed.clocks.now += LASTS - SECOND

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


def test_a_form_of_another_site_or_of_an_analyst_changes_nothing(deployed: Deployment) -> None:
    """Without a token, with one of another session, with the one of a lesser role.

    Nor does a page hold the cookie, from which its token is made.
    """
    visitor, other = (logged_in(deployed, Role.ADMIN) for _ in range(2))
    analyst = logged_in(deployed, path="/")
    before = deployed.aggregator.store.generation()
    for path in FORMS:
        refused = [visitor.post(path, **{FIELD: token}) for token in ("", other.token, "x" * 64)]

        assert {page.status for page in refused} == {400}, path
    page = visitor.get("/")
    assert form_token(visitor.secret) in page.html
    assert visitor.secret not in page.html
    lesser = [analyst.post(path, role="admin", label="mine").status for path in FORMS[:4]]

    assert lesser == [403] * 4
    assert deployed.aggregator.store.generation() == before
