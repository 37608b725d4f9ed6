"""Integrations with Flask and Django, each against the real framework."""

# ruff: noqa: PLC0415 - Django is set up before its modules are imported

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from flask import Flask

from veilcount_client import Client
from veilcount_client.integrations import flask as integration
from veilcount_client.integrations import signals
from veilcount_client.integrations.app_client import client_for, clients
from veilcount_client.testing import ClientHarness

from ..delivery.app_client import NOBODY
from .running_campaign import COLLECTIONS, FILE
from .test_privacy_pages import button


def create_app(extension: integration.Veilcount, **configuration: object) -> Flask:
    app = Flask(__name__)
    app.config.from_mapping(configuration)
    extension.init_app(app)

    @app.post("/theme/<name>")
    def choose(name: str) -> str:
        extension.client.record("theme", name)
        return name

    return app


def test_a_flask_app_records(veilcount: ClientHarness, tmp_path: Path) -> None:
    """By one client, made at the first request; a small app has no factory, and one of its own."""
    file = tmp_path / "collections.toml"
    file.write_text(FILE, encoding="utf-8")
    configuration = {"VEILCOUNT_COLLECTIONS": file, "VEILCOUNT_URL": NOBODY}
    app = create_app(integration.Veilcount(), **configuration)
    for name in ("dark", "light"):
        app.test_client().post(f"/theme/{name}")
    made = len(clients)
    small = Flask(__name__)
    extension = integration.Veilcount(small, url=NOBODY, collections=COLLECTIONS)
    with small.app_context():
        extension.client.record("theme", "system")

    assert veilcount.recorded == [("theme", "dark"), ("theme", "light"), ("theme", "system")]
    assert (made, len(clients)) == (1, 2)


def test_each_flask_app_has_its_own_client(veilcount: ClientHarness) -> None:
    """The configuration of the app wins over the extension's options, which all apps share."""
    extension = integration.Veilcount(collections=COLLECTIONS, url=NOBODY)
    urls = []
    for app in (create_app(extension), create_app(extension, VEILCOUNT_URL="http://127.0.0.1:8")):
        with app.app_context():
            urls.append(extension.client.settings.url)

    assert urls == [NOBODY, "http://127.0.0.1:8"]


@pytest.mark.parametrize("header", ["Sec-GPC", "DNT"])
def test_flask_takes_an_objection_for_a_no(veilcount: ClientHarness, header: str) -> None:
    """Also of who had agreed; what the person decides afterwards counts."""
    app = Flask(__name__)
    extension = integration.Veilcount(app, collections=COLLECTIONS, url=NOBODY, persons=True)

    @app.post("/theme/<name>")
    def choose(name: str) -> str:
        extension.person("ann").record("theme", name)
        return name

    @app.post("/yes")
    def agree() -> str:
        extension.person("ann").consent(True)
        return ""

    visitor = app.test_client()
    visitor.post("/theme/dark", headers={header: "0"})
    visitor.post("/theme/light", headers={header: "1"})
    visitor.post("/theme/light")
    visitor.post("/yes", headers={header: "1"})
    visitor.post("/theme/system", headers={header: "1"})

    assert veilcount.recorded == [("theme", "dark"), ("theme", "system")]


def test_flask_takes_an_objection_of_an_app_of_one_person(veilcount: ClientHarness) -> None:
    app = Flask(__name__)
    extension = integration.Veilcount(app, collections=COLLECTIONS, url=NOBODY)
    with app.test_request_context(headers={"Sec-GPC": "1"}):
        extension.person().record("theme", "dark")

    assert veilcount.recorded == []


def test_of_two_clients_made_at_once_one_stays(veilcount: ClientHarness) -> None:
    """Two threads at the first use: both get the same client, the other is closed."""
    app = Flask(__name__)
    opened: list[Client] = []

    def make() -> Client:
        opened.append(veilcount.client(COLLECTIONS))
        if len(opened) == 1:
            client_for(app, make)  # the other thread was faster
        return opened[0]

    kept = client_for(app, make)

    assert kept is opened[0] or kept is clients[app]
    assert len(opened) == 2


# -- Django ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site() -> Iterator[ModuleType]:
    """A site with users and sessions, and the integration it uses."""
    import django
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    settings.configure(
        ALLOWED_HOSTS=["testserver"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=[f"django.contrib.{name}" for name in ("auth", "contenttypes", "sessions")],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        ROOT_URLCONF=__name__,
        SECRET_KEY="for tests",
        VEILCOUNT={"url": NOBODY, "collections": COLLECTIONS},
    )
    django.setup()
    call_command("migrate", verbosity=0)
    from veilcount_client.integrations import django as used

    with closing(connection):
        yield used


def __getattr__(name: str) -> Any:
    """Return the site's routes, to Django: this module is its ROOT_URLCONF."""
    if name != "urlpatterns":
        raise AttributeError(name)
    from django.http import HttpResponse
    from django.urls import include, path

    from veilcount_client.integrations import django as used

    def choose(request: Any, name: str) -> Any:
        used.record(request, "theme", name)
        return HttpResponse(name)

    return [
        path("theme/<name>", choose),
        path("consent", used.consent),
        path("privacy/", include(used.urls({"receipt_title": "Yours"}))),
    ]


@pytest.fixture
def browser(site: ModuleType) -> Any:
    """A browser of a person who is logged in, and new."""
    from django.contrib.auth.models import User
    from django.test import Client as Browser

    browser = Browser()
    browser.force_login(User.objects.create(username=f"person {User.objects.count()}"))
    return browser


def test_two_persons_of_a_site_are_two_and_a_visitor_is_nobody(
    veilcount: ClientHarness, site: ModuleType, browser: Any
) -> None:
    """Each has a pseudonym of their own; who is not logged in would be new at every visit."""
    from django.contrib.auth.models import User

    browser.get("/theme/dark")
    browser.force_login(User.objects.create(username="another"))
    browser.get("/theme/dark")
    browser.logout()
    visited = browser.get("/theme/light")
    consented = browser.post("/consent", {"consent": "yes"})
    veilcount.flush()

    assert (visited.status_code, consented.status_code) == (200, 403)
    assert veilcount.recorded == [("theme", "dark"), ("theme", "dark")]
    assert len({report.pseudonym for report in veilcount.sent}) == 2
    assert site.client() is site.client()


def test_a_django_site_asks_for_consent(veilcount: ClientHarness, browser: Any) -> None:
    """Consent is an answer and a post: a link cannot consent, nor a form without an answer."""
    veilcount.consent = None
    browser.get("/consent", {"consent": "yes"})
    browser.get("/theme/dark")

    assert browser.get("/consent").status_code == 405
    assert browser.post("/consent", {"consent": "perhaps"}).status_code == 400
    assert veilcount.recorded == []
    assert browser.post("/consent", {"consent": "yes"}).status_code == 204
    browser.get("/theme/light")
    browser.post("/consent", {"consent": "no"})
    browser.get("/theme/dark")
    assert veilcount.recorded == [("theme", "light")]


def test_a_django_site_has_both_pages(veilcount: ClientHarness, browser: Any) -> None:
    """Of the person who is logged in, in the site's words and the request's language."""
    from django.utils import translation

    veilcount.consent = None
    browser.get("/theme/light")
    with translation.override("de"):
        form = browser.get("/privacy/consent")
    yes = button(form.content.decode(), "yes")
    decided = browser.post("/privacy/consent", {"consent": yes})
    browser.get("/theme/dark")
    veilcount.flush()
    receipt = browser.get("/privacy/receipt")
    browser.logout()

    assert "You have not decided yet" in form.content.decode()
    assert '<html lang="de">' in form.content.decode()
    assert (decided.status_code, decided["Location"]) == (303, "consent")
    assert veilcount.recorded == [("theme", "dark")]
    assert "<h1>Yours</h1>" in receipt.content.decode()
    assert "default-src 'none'" in receipt["Content-Security-Policy"]
    assert browser.delete("/privacy/consent").status_code == 405
    assert browser.get("/privacy/receipt").status_code == 403
    assert browser.post("/privacy/consent", {"consent": "yes"}).status_code == 403


@pytest.mark.parametrize("header", ["Sec-GPC", "DNT"])
def test_django_takes_an_objection_for_a_no(
    veilcount: ClientHarness, site: ModuleType, browser: Any, header: str
) -> None:
    """Also of who had agreed; what the person decides afterwards counts."""
    objection = {header: "1"}
    browser.get("/theme/dark", headers={header: "0"})
    browser.get("/theme/light", headers=objection)
    browser.get("/theme/light")
    page = browser.get("/privacy/consent", headers=objection).content.decode()
    browser.post("/privacy/consent", {"consent": button(page, "yes")}, headers=objection)
    browser.get("/theme/system", headers=objection)

    assert "that counts as a no until you agree" in page
    assert veilcount.recorded == [("theme", "dark"), ("theme", "system")]


def test_without_the_look_at_the_headers_an_objection_is_missed(
    veilcount: ClientHarness, site: ModuleType, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted, in all integrations at once: as they were."""
    monkeypatch.setattr(signals, "HEADERS", ())

    with pytest.raises(AssertionError, match="light"):
        test_flask_takes_an_objection_for_a_no(veilcount, "DNT")
    with pytest.raises(AssertionError, match="counts as a no"):
        test_django_takes_an_objection_for_a_no(veilcount, site, browser, "DNT")


def test_a_django_form_needs_djangos_token(veilcount: ClientHarness, browser: Any) -> None:
    """Also on a site without the middleware that checks it."""
    veilcount.consent = None
    browser.handler.enforce_csrf_checks = True
    refused = browser.post("/privacy/consent", {"consent": "yes"})
    yes = button(browser.get("/privacy/consent").content.decode(), "yes")
    fields = {"csrfmiddlewaretoken": csrf_token(browser), "consent": yes}

    assert refused.status_code == 403
    assert browser.post("/privacy/consent", fields).status_code == 303
    browser.get("/theme/dark")
    assert veilcount.recorded == [("theme", "dark")]
    assert browser.post("/privacy/forget", {"forget": "yes"}).status_code == 403
    assert "Delete it now" in browser.get("/privacy/forget").content.decode()
    erased = browser.post("/privacy/forget", fields | {"forget": "yes"})
    assert (erased.status_code, b"is deleted, except" in erased.content) == (200, True)
    assert b"You have not decided yet" in browser.get("/privacy/consent").content


def csrf_token(browser: Any) -> str:
    """The token of a form of the site, whose cookie the browser keeps."""
    page = browser.get("/privacy/consent").content.decode()
    (token,) = re.findall('name="csrfmiddlewaretoken" value="([^"]+)"', page)
    return str(token)


def test_a_forged_form_stores_no_consent(veilcount: ClientHarness, browser: Any) -> None:
    """The view `consent`, on a site without the middleware: the site's own form still works."""
    veilcount.consent = None
    browser.handler.enforce_csrf_checks = True
    forged = browser.post("/consent", {"consent": "yes"})
    browser.get("/theme/light")
    token = csrf_token(browser)
    guessed = browser.post("/consent", {"consent": "yes", "csrfmiddlewaretoken": token[::-1]})
    browser.get("/theme/light")

    assert (forged.status_code, guessed.status_code) == (403, 403)
    assert veilcount.recorded == []
    honest = browser.post("/consent", {"consent": "yes", "csrfmiddlewaretoken": token})
    browser.get("/theme/dark")
    assert honest.status_code == 204
    assert veilcount.recorded == [("theme", "dark")]
    assert browser.post("/consent", {"consent": "no"}).status_code == 403
    browser.get("/theme/system")
    assert veilcount.recorded == [("theme", "dark"), ("theme", "system")]


def test_without_the_check_a_forged_form_is_detected(
    veilcount: ClientHarness, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the view without its check, as it was."""
    from django.views.decorators import csrf

    monkeypatch.setattr(csrf, "csrf_protect", lambda view: view)

    with pytest.raises(AssertionError, match="204"):
        test_a_forged_form_stores_no_consent(veilcount, browser)


def test_an_integration_imports_its_framework_lazily() -> None:
    """To import a hook costs nothing of the framework."""
    names = ["asgi", "celery", "django", "flask", "gunicorn"]
    imports = ", ".join(f"veilcount_client.integrations.{name}" for name in names)
    frameworks = [*names, "fastapi", "starlette"]
    code = f"import sys, {imports}; sys.exit(any(name in sys.modules for name in {frameworks}))"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
