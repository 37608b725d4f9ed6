"""Log-in by the headers of a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from veilcount_aggregator.records.audit_log import load_audit_log
from veilcount_aggregator.sign_in import GROUPS, MOST_NAME, PROXY_SECRET

from ..api.deployment_fixtures import FILE, Deployment, deployment
from .sign_in_fixtures import PROXY, ROLES, SECRET, file, named


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE, sign_in=file(tmp_path, ROLES, PROXY)) as made:
        yield made


def test_a_proxy_that_shows_its_secret_names_who_is_there(proxied: Deployment) -> None:
    admin = named(proxied, "sales, platform")
    admin.get("/keys")
    made = admin.post("/keys", role="analyst", label="by bob")

    assert named(proxied, "data").get("/").status == 200
    assert named(proxied, "data").get("/keys").status == 403
    assert made.status == 201
    assert load_audit_log(proxied.aggregator.store)[-1].actor == "person:bob"


@pytest.mark.parametrize("secret", ["", "another secret of that length, or so", SECRET + "x"])
def test_who_sends_the_headers_without_the_secret_opens_nothing(
    proxied: Deployment, secret: str
) -> None:
    page = named(proxied, "platform", secret).get("/keys")

    assert page.status == 403
    assert PROXY_SECRET in page.text


def test_each_request_is_judged_by_itself(proxied: Deployment) -> None:
    """Whom the proxy names no more, or in another group, has what it says now."""
    visitor = named(proxied, "platform")
    assert visitor.get("/keys").status == 200
    visitor.headers[GROUPS] = "data"
    assert visitor.get("/keys").status == 403
    visitor.headers.clear()
    assert visitor.get("/keys").leads_to == "/login?to=%2Fkeys"


def test_a_form_of_another_site_changes_nothing(proxied: Deployment) -> None:
    """The proxy adds its headers to that request, too."""
    visitor = named(proxied, "platform")
    visitor.get("/keys")
    visitor.token = "0" * 64

    assert visitor.post("/keys", role="admin", label="of a stranger").status == 400


def test_a_name_may_have_any_letters(proxied: Deployment) -> None:
    """A proxy sends UTF-8, which WSGI reads as Latin-1."""
    visitor = named(proxied, "platform", name="Łukasz".encode().decode("latin-1"))
    visitor.get("/keys")
    visitor.post("/keys", role="analyst", label="his")

    assert load_audit_log(proxied.aggregator.store)[-1].actor == "person:Łukasz"


def test_whom_a_proxy_names_in_no_group_may_use_a_key(proxied: Deployment) -> None:
    assert named(proxied, "sales").get("/login").status == 200
    assert named(proxied, "sales").get("/").status == 403


@pytest.mark.parametrize("name", ["", "x" * (MOST_NAME + 1), "a\tb"])
def test_a_name_that_no_log_can_show_is_refused(proxied: Deployment, name: str) -> None:
    assert named(proxied, "platform", name=name).get("/").status == 403
