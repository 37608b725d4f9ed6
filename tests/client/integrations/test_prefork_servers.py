"""Integrations with servers: gunicorn, Celery, uvicorn, and hosts that run no hooks of Python."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from veilcount_client import Client
from veilcount_client.state.key_derivation import person_key

from ...redis_server import RedisServer
from ..delivery.app_client import NOBODY
from ..delivery.server_fixtures import wait_until
from .running_campaign import COLLECTIONS, FILE

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
                process.wait(60)
            finally:
                process.kill()


def wait_for(folder: Path, words: str) -> re.Match[str]:
    def logged() -> re.Match[str] | None:
        text = (folder / "log").read_text(encoding="utf-8", errors="replace")
        return re.search(words, text)

    assert wait_until(lambda: logged() is not None)
    found = logged()
    assert found is not None
    return found


def stored(folder: Path, persons: Iterable[object] = range(PERSONS)) -> Counter[str]:
    """Return how many reports of each collection the processes have stored, of all persons."""
    names = {each.fingerprint: name for name, each in COLLECTIONS.items()}
    with Client(NOBODY, collections=COLLECTIONS, state_dir=folder / "state", threaded=False) as one:
        assert one._session.worker is not None
        state = one._session.worker.state
        return Counter(
            names[sent.report.fingerprint]
            for person in persons
            for sent in state.sent(person_key(state.root, f"id {person}"))
        )


ALL = {"theme": PERSONS, "minutes": PERSONS}


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


def serve_by_gunicorn(folder: Path, web: str, kind: str, timeout: float = 10) -> None:
    """Answer a request of each person by two workers that are forked from a loaded app."""
    (folder / "web.py").write_text(web)
    (folder / "conf.py").write_text(CONFIGURATION)
    flags = ["--preload", "--workers", "2", "--bind", "127.0.0.1:0", "--no-control-socket"]
    flags += ["--worker-class", kind, "--graceful-timeout", "5"]
    with running(folder, "gunicorn", *flags, "--config", "conf.py", "web:app"):
        port = wait_for(folder, r"http://127\.0\.0\.1:(\d+)")[1]
        pids = {
            requests.get(f"http://127.0.0.1:{port}/{person}", timeout=timeout).text
            for person in range(PERSONS)
        }

    assert len(pids) in {1, 2}  # the system chooses who takes a connection


@pytest.mark.parametrize("kind", ["sync", "gevent"])
def test_gunicorn_workers_store_everything(folder: Path, kind: str) -> None:
    """Preloaded, two workers, a thread that is busy at the fork: nothing is lost or doubled.

    Workers of gevent patch the standard library when the app is loaded already.
    """
    serve_by_gunicorn(folder, WEB, kind)

    assert stored(folder) == ALL
    assert stored(folder, ["master"]) == {"theme": 1}


UNPATCHED = """
from veilcount_client.delivery.worker import ClientWorker
ClientWorker._notice_fork = lambda self: None
"""


@pytest.mark.full
def test_locks_of_before_gevents_patch_would_stop_a_worker(folder: Path) -> None:
    """The planted bug: our thread is a greenlet now, and waits for its bell as a thread would."""
    with pytest.raises(requests.ReadTimeout):
        serve_by_gunicorn(folder, UNPATCHED + WEB, "gevent", timeout=3)


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
    (tmp_path / "broker").mkdir()
    server = RedisServer(tmp_path / "broker")
    monkeypatch.setenv("BROKER", server.url)
    yield
    server.kill()


def run_celery(folder: Path, tasks: str) -> None:
    (folder / "tasks.py").write_text(tasks)
    subprocess.run([sys.executable, "-c", SEND], cwd=folder, check=True)
    with running(folder, *WORKER, *QUIET):
        wait_for(folder, rf"(?s)(succeeded.*){{{PERSONS}}}")


@pytest.mark.usefixtures("broker")
def test_celery_children_store_everything(folder: Path) -> None:
    """Prefork children leave by os._exit; what they hold in memory is stored before that."""
    run_celery(folder, TASKS.replace("CONNECT", "connect()"))

    assert stored(folder) == ALL


@pytest.mark.full
@pytest.mark.usefixtures("broker")
def test_without_its_signals_celery_loses_what_is_held(folder: Path) -> None:
    """The planted bug: no exit handler of Python runs in those children."""
    run_celery(folder, TASKS.replace("CONNECT", ""))

    assert stored(folder)["minutes"] == 0


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


# -- uvicorn: ends by the signal that stopped it ---------------------------------------------------

ASGI = """
from fastapi import FastAPI, Request
from veilcount_client.integrations.asgi import AsgiVeilcount

statistics = AsgiVeilcount()
app = FastAPI(lifespan=statistics.lifespan)

@app.get("/{name}")
async def use(name: str, request: Request):
    person = await statistics.aperson(request, name)
    await person.aconsent(True)
    person.record("theme", "dark")
    person.record("minutes", 5)
"""


def serve_and_stop(folder: Path, web: str) -> Counter[str]:
    """Serve a request of each person, stop the server, and return what it has stored."""
    (folder / "web.py").write_text(web, encoding="utf-8")
    with running(folder, "uvicorn", "web:app", "--port", "0") as process:
        port = wait_for(folder, r"http://127\.0\.0\.1:(\d+)")[1]
        for person in range(PERSONS):
            requests.get(f"http://127.0.0.1:{port}/{person}", timeout=30).raise_for_status()
        process.send_signal(signal.SIGTERM)
        process.wait(60)

    assert process.returncode == -signal.SIGTERM  # no exit handler of Python has run
    return stored(folder)


def test_uvicorn_stores_everything_when_it_is_stopped(folder: Path) -> None:
    assert serve_and_stop(folder, ASGI) == ALL


def test_without_the_lifespan_uvicorn_loses_what_is_held(folder: Path) -> None:
    """The planted bug: nobody closes the client."""
    reports = serve_and_stop(folder, ASGI.replace("lifespan=statistics.lifespan", ""))

    assert (reports["theme"] > 0, reports["minutes"]) == (True, 0)
