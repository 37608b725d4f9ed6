"""The page of keys: made once, shown once, revoked for good."""

from __future__ import annotations

import re

import pytest

from tests.aggregator.api.deployment_fixtures import Deployment
from tests.aggregator.dashboard.page_fixtures import Visitor
from veilcount_aggregator.auth.api_keys import Role, load_api_keys
from veilcount_aggregator.auth.audit_log import load_audit_log


@pytest.fixture
def admin(visitor: Visitor) -> Visitor:
    """An admin who looks at the keys."""
    visitor.enter(Role.ADMIN)
    visitor.get("/keys")
    return visitor


def test_a_key_that_is_made_is_shown_once_and_opens(deployed: Deployment, admin: Visitor) -> None:
    made = admin.post("/keys", role="analyst", label="the notebook")
    secret = _shown(made.html)

    assert made.status == 201
    assert Visitor(deployed).log_in(secret).leads_to == "/"
    later = admin.get("/keys")
    assert secret not in later.html
    assert "the notebook" in later.text
    assert made.response.headers["Cache-Control"] == "no-store"


def test_who_made_and_took_back_a_key_is_kept(deployed: Deployment, visitor: Visitor) -> None:
    visitor.log_in(deployed.key(Role.ADMIN, "Ada"))
    visitor.get("/keys")
    visitor.post("/keys", role="device", label="the app")
    ada, app = _id(deployed, "Ada"), _id(deployed, "the app")
    visitor.post(f"/keys/{app}/revoke")
    acts = [(act.who, act.act, act.of) for act in load_audit_log(deployed.aggregator.store)]

    assert (ada, "keys create device", app) in acts
    assert (ada, "keys revoke", app) in acts


def test_a_key_that_is_taken_back_says_so_and_opens_nothing(
    deployed: Deployment, admin: Visitor
) -> None:
    secret = _shown(admin.post("/keys", role="analyst", label="lost").html)
    back = admin.post(f"/keys/{_id(deployed, 'lost')}/revoke")

    assert back.leads_to == "/keys"
    assert "revoked 2026-12-03" in admin.get("/keys").text
    assert Visitor(deployed).log_in(secret).status == 401


def test_ones_own_key_is_marked_and_ends_the_visit(deployed: Deployment, visitor: Visitor) -> None:
    visitor.log_in(deployed.key(Role.ADMIN, "Ada"))

    assert "Ada yours" in visitor.get("/keys").text
    assert "You are logged in with this one" in visitor.get("/keys").text
    visitor.post(f"/keys/{_id(deployed, 'Ada')}/revoke")
    assert visitor.get("/keys").leads_to == "/login?to=%2Fkeys"


def test_a_label_that_is_too_long_is_told_and_the_form_kept(admin: Visitor) -> None:
    page = admin.post("/keys", role="admin", label="x" * 61)

    assert page.status == 422
    assert "give up to 60 characters" in page.text
    assert f'value="{"x" * 61}"' in page.html
    assert re.search(r'value="admin" checked', page.html)


def test_a_role_that_is_none_is_refused(deployed: Deployment, admin: Visitor) -> None:
    assert admin.post("/keys", role="owner").status == 400
    assert not load_api_keys(deployed.aggregator.store).keys


def test_a_key_that_is_none_is_not_found(admin: Visitor) -> None:
    assert admin.post("/keys/00000000/revoke").status == 404


def test_what_the_intake_asks_of_devices_is_said(deployed: Deployment, admin: Visitor) -> None:
    assert "reports are accepted without one" in admin.get("/keys").text
    assert "The first device key closes the open intake" in admin.get("/keys").text
    admin.post("/keys", role="device", label="the app")
    assert "Reports require a device key" in admin.get("/keys").text
    admin.post(f"/keys/{_id(deployed, 'the app')}/revoke")
    assert "All device keys are revoked" in admin.get("/keys").text


def test_a_label_is_text_and_no_markup(admin: Visitor) -> None:
    admin.post("/keys", role="analyst", label="<b>bold</b>")

    assert "&lt;b&gt;bold&lt;/b&gt;" in admin.get("/keys").html


def _shown(html: str) -> str:
    found = re.search(r'value="(veilcount_\w+?_[\w-]{43})"', html)

    assert found
    return found[1]


def _id(deployed: Deployment, label: str) -> str:
    keys = load_api_keys(deployed.aggregator.store).keys.values()
    return next(key.id for key in keys if key.label == label)
