"""Integrations with Flask and Django, each against the real framework."""

# ruff: noqa: PLC0415 - Django is set up before its modules are imported

from __future__ import annotations

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
from veilcount_client.integrations.app_client import client_for, clients
from veilcount_client.testing import ClientHarness

from ..delivery.app_client import NOBODY
from .running_campaign import COLLECTIONS, FILE


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
    """Requests to a Flask app record by one client, made at the first of them."""
    file = tmp_path / "collections.toml"
    file.write_text(FILE, encoding="utf-8")
    configuration = {"VEILCOUNT_COLLECTIONS": file, "VEILCOUNT_URL": NOBODY}
    app = create_app(integration.Veilcount(), **configuration)
    for name in ("dark", "light"):
        app.test_client().post(f"/theme/{name}")

    assert veilcount.recorded == [("theme", "dark"), ("theme", "light")]
    assert len(clients) == 1


def test_each_flask_app_has_its_own_client(veilcount: ClientHarness) -> None:
    """The configuration of the app wins over the extension's options, which all apps share."""
    extension = integration.Veilcount(collections=COLLECTIONS, url=NOBODY)
    one, other = create_app(extension), create_app(extension, VEILCOUNT_URL="http://127.0.0.1:8")
    with one.app_context():
        first = extension.client.settings.url
    with other.app_context():
        second = extension.client.settings.url

    assert (first, second) == (NOBODY, "http://127.0.0.1:8")
    assert veilcount.recorded == []


def test_the_extension_takes_an_app_at_once(veilcount: ClientHarness) -> None:
    """Small apps have no factory."""
    app = Flask(__name__)
    extension = integration.Veilcount(app, url=NOBODY, collections=COLLECTIONS)
    with app.app_context():
        extension.client.record("theme", "dark")

    assert veilcount.recorded == [("theme", "dark")]


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
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
        ],
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
    from django.urls import path

    from veilcount_client.integrations import django as used

    def choose(request: Any, name: str) -> Any:
        used.record(request, "theme", name)
        return HttpResponse(name)

    return [path("theme/<name>", choose), path("consent", used.consent)]


@pytest.fixture
def browser(site: ModuleType) -> Any:
    """A browser of a person who is logged in, and new."""
    from django.contrib.auth.models import User
    from django.test import Client as Browser

    browser = Browser()
    browser.force_login(User.objects.create(username=f"person {User.objects.count()}"))
    return browser


def test_a_django_site_records_who_is_logged_in(veilcount: ClientHarness, browser: Any) -> None:
    """A view records for the person of the request, once they have consented."""
    veilcount.consent = None
    browser.get("/theme/light")
    answer = browser.post("/consent", {"consent": "yes"})
    browser.get("/theme/dark")

    assert answer.status_code == 204
    assert veilcount.recorded == [("theme", "dark")]


def test_two_persons_of_a_site_are_two(
    veilcount: ClientHarness, site: ModuleType, browser: Any
) -> None:
    """Each has a pseudonym and a ledger of their own; the site has one client."""
    from django.contrib.auth.models import User

    browser.get("/theme/dark")
    browser.force_login(User.objects.create(username="another"))
    browser.get("/theme/dark")
    veilcount.flush()

    assert len({report.pseudonym for report in veilcount.sent}) == 2
    assert site.client() is site.client()


def test_a_visitor_records_nothing(veilcount: ClientHarness, site: ModuleType) -> None:
    """Who is not logged in would be a new person at every visit."""
    from django.test import Client as Browser

    visitor = Browser()

    assert visitor.get("/theme/dark").status_code == 200
    assert visitor.post("/consent", {"consent": "yes"}).status_code == 403
    assert veilcount.recorded == []


def test_consent_is_an_answer_and_a_post(veilcount: ClientHarness, browser: Any) -> None:
    """A link cannot consent for a person, nor can a form without an answer; a no is kept too."""
    veilcount.consent = None
    browser.get("/consent", {"consent": "yes"})
    browser.get("/theme/dark")

    assert browser.get("/consent").status_code == 405
    assert browser.post("/consent", {"consent": "perhaps"}).status_code == 400
    assert veilcount.recorded == []
    browser.post("/consent", {"consent": "yes"})
    browser.get("/theme/light")
    browser.post("/consent", {"consent": "no"})
    browser.get("/theme/dark")
    assert veilcount.recorded == [("theme", "light")]


@pytest.mark.parametrize("name", ["celery", "django", "flask", "gunicorn"])
def test_an_integration_imports_its_framework_lazily(name: str) -> None:
    """To import the hook costs nothing of the framework."""
    code = f"import sys, veilcount_client.integrations.{name}; sys.exit({name!r} in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
