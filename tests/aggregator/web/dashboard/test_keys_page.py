"""The keys page: a key is created, shown once, and revoked for good."""

from __future__ import annotations

import re

import pytest

from veilcount_aggregator.records.api_keys import Role, load_api_keys
from veilcount_aggregator.records.audit_log import load_audit_log

from ..api.deployment_fixtures import Deployment
from .page_fixtures import Page, Visitor, logged_in


@pytest.fixture
def admin(deployed: Deployment) -> Visitor:
    return logged_in(deployed, Role.ADMIN, "/keys")


def secret_of(page: Page) -> str:
    (found,) = re.findall(r'value="(veilcount_\w+?_[\w-]{43})"', page.html)
    return str(found)


def id_of(deployed: Deployment, label: str) -> str:
    keys = load_api_keys(deployed.aggregator.store).keys.values()
    return next(key.id for key in keys if key.label == label)


def test_a_new_key_is_shown_once_and_opens(deployed: Deployment, admin: Visitor) -> None:
    created = admin.post("/keys", role="analyst", label="the notebook")
    secret, later = secret_of(created), admin.get("/keys")

    assert created.status == 201
    assert created.response.headers["Cache-Control"] == "no-store"
    assert Visitor(deployed).log_in(secret).leads_to == "/"
    assert secret not in later.html
    assert "the notebook" in later.text


def test_the_own_key_is_named_in_the_audit_log_and_revoking_it_ends_the_session(
    deployed: Deployment, visitor: Visitor
) -> None:
    visitor.log_in(deployed.key(Role.ADMIN, "Ada"))
    own = visitor.get("/keys").text
    visitor.post("/keys", role="device", label="the app", closes="yes")
    ada, app = id_of(deployed, "Ada"), id_of(deployed, "the app")
    for key in (app, ada):
        visitor.post(f"/keys/{key}/revoke")
    acts = [
        (act.actor, act.action, act.target) for act in load_audit_log(deployed.aggregator.store)
    ]

    assert "Ada yours" in own
    assert "You are logged in with this one" in own
    assert {(ada, "keys create device", app), (ada, "keys revoke", app)} < set(acts)
    assert visitor.get("/keys").leads_to == "/login?to=%2Fkeys"


def test_a_long_label_and_an_unknown_role_or_key_are_refused(
    deployed: Deployment, admin: Visitor
) -> None:
    """The form is kept."""
    page = admin.post("/keys", role="admin", label="x" * 61)

    assert page.status == 422
    assert "give up to 60 characters" in page.text
    assert f'value="{"x" * 61}"' in page.html
    assert re.search(r'value="admin" checked', page.html)
    assert admin.post("/keys", role="owner").status == 400
    assert admin.post("/keys/00000000/revoke").status == 404
    assert not load_api_keys(deployed.aggregator.store).keys


def test_the_first_device_key_closes_the_intake_only_if_that_is_confirmed(
    deployed: Deployment, admin: Visitor
) -> None:
    """The form is kept; a key of another role, and a second device key, need no confirmation."""
    refused = admin.post("/keys", role="device", label="the app")
    still_open = load_api_keys(deployed.aggregator.store).intake_is_open
    analyst = admin.post("/keys", role="analyst")
    first = admin.post("/keys", role="device", label="the app", closes="yes")
    second = admin.post("/keys", role="device")

    assert [each.status for each in (refused, analyst, first, second)] == [422, 201, 201, 201]
    assert "No key was created" in refused.text
    assert 'value="the app"' in refused.html
    assert still_open
    assert not load_api_keys(deployed.aggregator.store).intake_is_open
    assert ['name="closes"' in each.html for each in (analyst, first)] == [True, False]


def test_the_page_states_whether_reports_require_a_key(
    deployed: Deployment, admin: Visitor
) -> None:
    assert "reports are accepted without one" in admin.get("/keys").text
    assert "Close the open intake for good" in admin.get("/keys").text
    admin.post("/keys", role="device", label="the app", closes="yes")
    assert "Reports require a device key" in admin.get("/keys").text
    admin.post(f"/keys/{id_of(deployed, 'the app')}/revoke")
    assert "All device keys are revoked" in admin.get("/keys").text
