"""Integrations, each against the real framework; with real processes where those are the point."""

# ruff: noqa: PLC0415 - Django is set up before its modules are imported

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import requests
from flask import Flask

from tests.redis_server import RedisServer
from veilcount_client import Client
from veilcount_client.integrations import flask as integration
from veilcount_client.integrations.app_client import client_for, clients
from veilcount_client.state import SentReport
from veilcount_client.state.key_derivation import person_key
from veilcount_client.testing import ClientHarness
from veilcount_shared import parse_collections

TODAY = datetime.now(UTC).date() - timedelta(days=1)
FILE = f"""
app = "acme-editor"

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
epsilon = 1
unit = "user"
from = {TODAY}
until = {TODAY + timedelta(days=30_000)}

[minutes]
question = "How long was it used?"
range = [0, 240]
measure = "mean"
takes = "sum"
held = "process"
epsilon = 1
unit = "user"
from = {TODAY}
until = {TODAY + timedelta(days=30_000)}
"""  # the sum is held for decades: it is stored at the end of its process, or never
COLLECTIONS = parse_collections(FILE, lambda _: [])
NOBODY = "http://127.0.0.1:9"
PERSONS = 12

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with definitions, in which processes start; their clients find all they need."""
    (tmp_path / "collections.toml").write_text(FILE, encoding="utf-8")
    for name, value in {
        "URL": NOBODY,
        "COLLECTIONS": tmp_path / "collections.toml",
        "STATE": tmp_path / "state",
        "PERSONS": "1",
    }.items():
        monkeypatch.setenv(f"VEILCOUNT_{name}", str(value))
    return tmp_path


def write(folder: Path, **files: str) -> None:
    """Write modules into the folder."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")


@contextmanager
def running(folder: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process until the end of the block, then end it as an operator would."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=folder, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(folder: Path, words: str) -> re.Match[str]:
    """Wait until a process has logged these words."""
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        text = (folder / "log").read_text(encoding="utf-8", errors="replace")
        if found := re.search(words, text):
            return found
        time.sleep(0.02)
    raise AssertionError(text)


def stored(folder: Path, persons: Iterable[object] = range(PERSONS)) -> Counter[str]:
    """Return how many reports of each collection the processes have stored, of all persons."""
    with Client(NOBODY, collections=COLLECTIONS, state_dir=folder / "state", threaded=False) as one:
        return Counter(
            name
            for person in persons
            for sent in sent_of(one, f"id {person}")
            for name, each in COLLECTIONS.items()
            if each.fingerprint == sent.report.fingerprint
        )


def sent_of(client: Client, person: str) -> list[SentReport]:
    """Return a person's stored reports."""
    assert client._session.worker is not None
    state = client._session.worker.state
    return state.sent(person_key(state.root, person))


ALL = {"theme": PERSONS, "minutes": PERSONS}


# -- gunicorn --------------------------------------------------------------------------------------

WEB = """
import os
from veilcount_client import Client

client = Client()    # before the fork: gunicorn runs with --preload
client.person("master").consent(True)
client.person("master").record("theme", "dark")    # its thread is busy while the workers are forked

def app(environ, start_response):
    person = client.person(environ["PATH_INFO"].strip("/"))
    person.consent(True)
    person.record("theme", "dark")
    person.record("minutes", 5)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Connection", "close")])
    return [str(os.getpid()).encode()]
"""
CONFIGURATION = """
from veilcount_client.integrations.gunicorn import post_worker_init, worker_exit
"""


def test_gunicorn_workers_store_everything(folder: Path) -> None:
    """Preloaded, two workers, a thread that is busy at the fork: nothing is lost or doubled."""
    write(folder, web=WEB, conf=CONFIGURATION)
    flags = ["--preload", "--workers", "2", "--bind", "127.0.0.1:0", "--no-control-socket"]
    with running(folder, "gunicorn", *flags, "--config", "conf.py", "web:app"):
        port = wait_for(folder, r"http://127\.0\.0\.1:(\d+)")[1]
        pids = {
            requests.get(f"http://127.0.0.1:{port}/{person}", timeout=10).text
            for person in range(PERSONS)
        }

    assert len(pids) in {1, 2}  # the system chooses who takes a connection
    assert stored(folder) == ALL
    assert stored(folder, ["master"]) == {"theme": 1}


# -- Celery ----------------------------------------------------------------------------------------

TASKS = """
import os
from celery import Celery
from veilcount_client import Client
from veilcount_client.integrations.celery import connect

app = Celery(broker=os.environ["BROKER"])
client = Client()
CONNECT

@app.task
def use(person):
    client.person(person).consent(True)
    client.person(person).record("theme", "dark")
    client.person(person).record("minutes", 5)
    print("used", person, flush=True)
"""
SEND = f"""
from tasks import use
for person in range({PERSONS}):
    use.delay(person)
"""
WORKER = ["celery", "--app", "tasks", "worker", "--pool", "prefork", "--concurrency", "2"]
QUIET = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"]


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Redis of this test's own."""
    (tmp_path / "broker").mkdir()
    server = RedisServer(tmp_path / "broker")
    monkeypatch.setenv("BROKER", server.url)
    yield
    server.kill()


def run_celery(folder: Path, tasks: str) -> None:
    """Send tasks, run them in two children, end the worker."""
    write(folder, tasks=tasks, send=SEND)
    subprocess.run([sys.executable, "send.py"], cwd=folder, check=True)
    with running(folder, *WORKER, *QUIET):
        wait_for(folder, rf"(?s)(succeeded.*){{{PERSONS}}}")


@pytest.mark.usefixtures("broker")
def test_celery_children_store_everything(folder: Path) -> None:
    """Prefork children leave by os._exit; what they hold in memory is stored before that."""
    run_celery(folder, TASKS.replace("CONNECT", "connect()"))

    assert stored(folder) == ALL


@pytest.mark.usefixtures("broker")
def test_without_its_signals_celery_loses_what_is_held(folder: Path) -> None:
    """The test above would notice: no exit handler of Python runs in those children."""
    run_celery(folder, TASKS.replace("CONNECT", ""))

    assert stored(folder)["minutes"] == 0


# -- a host that forks without Python's hooks ------------------------------------------------------

FORK = f"""
import ctypes, os
from veilcount_client import Client

client = Client()
for person in range({PERSONS}):
    client.person(person).consent(True)
for person in range({PERSONS}):
    child = ctypes.PyDLL(None).fork()     # as a C host does: no hook of Python's runs
    if child == 0:
        client.person(person).record("theme", "dark")
        client.person(person).record("minutes", 5)
        client.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_fork_without_hooks_works(folder: Path) -> None:
    """Each child of a C host records and stores its own, and nothing of its parent's."""
    subprocess.run([sys.executable, "-c", FORK], cwd=folder, check=True, timeout=30)

    assert stored(folder) == ALL


# -- Flask -----------------------------------------------------------------------------------------


def create_app(extension: integration.Veilcount, **configuration: object) -> Flask:
    """Return an app as its developer would make it."""
    app = Flask(__name__)
    app.config.from_mapping(configuration)
    extension.init_app(app)

    @app.post("/theme/<name>")
    def choose(name: str) -> str:
        extension.client.record("theme", name)
        return name

    return app


def test_a_flask_app_records(veilcount: ClientHarness, folder: Path) -> None:
    """Requests to a Flask app record by one client, made at the first of them."""
    app = create_app(integration.Veilcount(), VEILCOUNT_COLLECTIONS=folder / "collections.toml")
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
    extension = integration.Veilcount(app, collections=COLLECTIONS)
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
    """A link cannot consent for a person, nor can a form that says nothing."""
    veilcount.consent = None
    browser.get("/consent", {"consent": "yes"})
    browser.get("/theme/dark")

    assert browser.get("/consent").status_code == 405
    assert browser.post("/consent", {"consent": "perhaps"}).status_code == 400
    assert veilcount.recorded == []


def test_consent_is_withdrawn_likewise(veilcount: ClientHarness, browser: Any) -> None:
    """No is kept too."""
    browser.get("/theme/light")
    browser.post("/consent", {"consent": "no"})
    browser.get("/theme/dark")

    assert veilcount.recorded == [("theme", "light")]


# -- lightness -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["celery", "django", "flask", "gunicorn"])
def test_an_integration_imports_its_framework_lazily(name: str) -> None:
    """To import the hook costs nothing of the framework."""
    code = f"import sys, veilcount_client.integrations.{name}; sys.exit({name!r} in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nobody_listens_where_nothing_should_arrive() -> None:
    """The address that these tests give their clients is closed."""
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", 9))
