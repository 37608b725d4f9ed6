"""The deployment of the demo: a real store, aggregator and server on the loopback interface.

Without --store everything is in one temporary directory, which is always removed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from socketserver import BaseServer
from urllib.parse import quote
from wsgiref.types import WSGIApplication

from werkzeug.serving import WSGIRequestHandler, make_server

from veilcount_reader import Reader
from veilcount_serving.errors import SettingsError
from veilcount_serving.listen_address import ListenAddress
from veilcount_shared import load_collections

from ...records.api_keys import Role, create_key
from ...records.gateway_keys import create_gateway_key, key_file
from ...server.app import create_app
from ...server.development_relay import DevelopmentRelay
from ...service import Aggregator
from ...settings import Settings
from ...store import open_store
from ...store.store_url import redact_url
from .campaign import Campaign, Question
from .real_devices import FILES_EACH, RelayedRoute
from .relayed_question import PartyLogs, open_issuer
from .shuffled_question import DemoShuffler, open_shuffler


class DemoClock:
    """A clock that is set by the replay, and follows real time once released."""

    def __init__(self, start: datetime, machine: Callable[[], float] = time.time) -> None:
        """Start at this instant."""
        self._seconds = start.timestamp()
        self._machine = machine
        self._released = False

    def now(self) -> float:
        """Return the seconds since 1970, for a client."""
        return self._machine() if self._released else self._seconds

    def instant(self) -> datetime:
        """Return the same instant, for an aggregator."""
        return datetime.fromtimestamp(self.now(), UTC)

    def move(self, to: datetime) -> None:
        """Advance to a later instant."""
        self._seconds = max(self._seconds, to.timestamp())

    def release(self) -> None:
        """Follow the machine's clock from now on."""
        self._released = True


HOST = "127.0.0.1"
ACTOR = "demo"
FOLDER = "veilcount-demo-"
OTHER_FILES = 256  # of the aggregator, requests and Python

#: a folder in memory, where a system has one: it saves a hundred disk syncs per device
MEMORY = Path("/dev/shm")  # noqa: S108 - the folder in it has a random name and one owner
BYTES_EACH = 1 << 20  # of a client's state, at most
STORE_BYTES = 256 << 20  # of the store

#: variables of this machine's own apps, which would silence or misdirect the demo's devices
_IGNORED = ("VEILCOUNT_", "DO_NOT_TRACK")


@dataclass(frozen=True, slots=True)
class DemoDeployment:
    """A running deployment."""

    folder: Path
    clock: DemoClock
    aggregator: Aggregator
    url: str
    reader: Reader
    logs: PartyLogs
    relayed: RelayedRoute
    shuffler: DemoShuffler


@contextmanager
def deploy(
    campaign: Campaign, clock: DemoClock, *, clients: int, store: str = "", port: int = 0
) -> Iterator[DemoDeployment]:
    """Start a deployment, and remove it at the end; port 0 is any free port."""
    with ExitStack() as stack:
        if port:
            ListenAddress(HOST, port).check()
        made = tempfile.TemporaryDirectory(prefix=FOLDER, dir=memory_folder(clients))
        folder = Path(stack.enter_context(made))
        stack.enter_context(_without_settings())
        issuer = stack.enter_context(open_issuer(campaign, folder, clock.instant))
        guide = campaign.write_guide(folder)
        definitions = campaign.write(folder), issuer.definitions, guide
        aggregator = stack.enter_context(closing(_open(definitions, clock, store, folder)))
        key = create_gateway_key(aggregator.store, clock.instant())
        app = issuer.logs.observe_gateway(create_app(aggregator), key)
        _, secret = create_key(aggregator.store, Role.ANALYST, ACTOR, clock.instant())
        url = stack.enter_context(_serving(app, port))
        reader = Reader(url, secret)
        relay = stack.enter_context(_relaying(url, issuer.logs))
        issuer_url = stack.enter_context(_serving(issuer.app, 0))
        route = RelayedRoute(
            issuer.collection, relay, key_file([key]).encode(), issuer_url, issuer.account
        )
        question = load_collections(guide)[Question.GUIDE]
        shuffler = stack.enter_context(open_shuffler(question, folder, aggregator, url, key))
        yield DemoDeployment(folder, clock, aggregator, url, reader, issuer.logs, route, shuffler)


def allow_files(devices: int) -> None:
    """Raise the limit of open files for so many devices, or refuse with the number that fits."""
    import resource  # noqa: PLC0415 - where nothing is served it may be missing

    needed = devices * FILES_EACH + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = hard if hard != resource.RLIM_INFINITY else needed
    if needed > most:
        fits = max(0, (most - OTHER_FILES) // FILES_EACH)
        fix = f"this machine lets a process open {most:,} files: give {fits} at most"
        raise SettingsError("--clients", str(devices), fix)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def memory_folder(clients: int, memory: Path = MEMORY) -> Path | None:
    """Return a folder in memory if it is large enough and TMPDIR is not set.

    A demo need not survive a power failure, yet its clients sync to the disk like any.
    """
    if "TMPDIR" in os.environ or not os.access(memory, os.W_OK):
        return None
    free = shutil.disk_usage(memory).free
    return memory if free > clients * BYTES_EACH + STORE_BYTES else None


def _open(definitions: tuple[Path, ...], clock: DemoClock, store: str, folder: Path) -> Aggregator:
    """Open an aggregator on a new store, with its definitions loaded.

    The journal of releases is in the folder even if the store is not: the budget ends with it.
    """
    url = store or f"sqlite:///{quote(str(folder))}/store.db?durability=relaxed"
    _make_new(url)
    settings = Settings(url, collections=definitions, journal=folder / "releases.jsonl")
    return Aggregator.open(settings, clock.instant)


def _make_new(url: str) -> None:
    """Create a store, and refuse one in use: simulated and real reports must not mix."""
    with closing(open_store(url, make=True)) as made:
        if made.generation():
            fix = "the store is not empty: give a new one, or none for a temporary one"
            raise SettingsError("--store", redact_url(url), fix)


@contextmanager
def _without_settings() -> Iterator[None]:
    """Ignore this machine's own settings for apps, and any proxy on the loopback."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(_IGNORED):
            del os.environ[name]
    os.environ.update(NO_PROXY=HOST, no_proxy=HOST)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Silent(WSGIRequestHandler):
    """Logs no request: neither its time nor its address."""

    server_version, sys_version = "veilcount", ""

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - werkzeug's own
        """Log nothing."""


@contextmanager
def _serving(app: WSGIApplication, port: int) -> Iterator[str]:
    """Serve in this process, one thread per request, so that all share one clock; yield the URL."""
    server = make_server(HOST, port, app, threaded=True, request_handler=_Silent)
    with _running(server):
        yield f"http://{HOST}:{server.port}"


@contextmanager
def _relaying(target: str, logs: PartyLogs) -> Iterator[str]:
    """Run a relay to the aggregator; yield its URL."""
    relay = DevelopmentRelay(target, 0, logs.relay.append)
    with _running(relay):
        yield relay.url


@contextmanager
def _running(server: BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, name="demo-server", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
