"""Where a page is run: a folder, a clock, a server; and the names that the page has for them.

A page writes `/var/lib/veilcount` and `https://stats.example.org`, as its reader will. Here one
is a temporary folder, the other a port of the loopback: in commands, and back in what they print.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from unittest.mock import patch

from veilcount_aggregator.operate.cli import dev as dev_command
from veilcount_aggregator.operate.cli import issuer as issuer_command
from veilcount_aggregator.operate.cli import options
from veilcount_aggregator.operate.cli import serve as serve_command
from veilcount_aggregator.records.definitions import add_definitions, load_catalog, read_source
from veilcount_aggregator.server.serve import prepare
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import open_store
from veilcount_client.diagnostics import state_checks
from veilcount_client.diagnostics.doctor import examine
from veilcount_issuer.worker import IssuerSettings
from veilcount_serving.listen_address import ListenAddress
from veilcount_serving.worker_processes import Announce, StartupSummary

from ..processes import HOST, free_port
from ..redis_server import RedisServer
from .page_parser import ROOT
from .page_population import answered
from .page_server import Served, ServedIssuer

URL = "https://stats.example.org"
LOOPBACK = "http://127.0.0.1:8420"
ISSUER = "https://issuer.example.org"
REDIS = "redis://redis.example.org:6379/0"
FOLDERS = tuple(f"/{each}/veilcount" for each in ("var/lib", "var/backups", "etc", "run"))
STORE = "sqlite:////var/lib/veilcount/store.db"
BEGIN = datetime(2026, 9, 15, 12, tzinfo=UTC)

_KEY = re.compile(r"veilcount_(admin|analyst|device)_\.\.\.")
_SWITCHES = ("VEILCOUNT_", "DO_NOT_TRACK", "XDG_")


@dataclass
class Place:
    """One page's temporary environment."""

    folder: Path
    now: datetime = BEGIN
    server: Served | None = None
    redis: RedisServer | None = None
    issuer: ServedIssuer | None = None
    _keys: dict[str, str] = field(default_factory=dict)

    # -- names ---------------------------------------------------------------------------------

    def here(self, text: str) -> str:
        """Return a page's text with the names of this environment."""
        if URL in text or LOOPBACK in text:
            url = self.serving().url
            text = text.replace(URL, url).replace(LOOPBACK, url)
        if REDIS in text:
            text = text.replace(REDIS, self._redis().url)
        if self.issuer:
            text = text.replace(ISSUER, self.issuer.url)
        for folder in FOLDERS:
            text = text.replace(folder, f"{self.folder}{folder}")
        return _KEY.sub(lambda found: self._key(found[1]), text)

    def there(self, text: str) -> str:
        """Return output with the names of the page."""
        if self.server:
            text = text.replace(self.server.url, URL)
        if self.redis:
            text = text.replace(self.redis.url, REDIS)
        return text.replace(str(self.folder), "")

    def _key(self, role: str) -> str:
        if role not in self._keys:
            self._keys[role] = self.serving().key(role)
        return self._keys[role]

    # -- what happens --------------------------------------------------------------------------

    def clock(self) -> datetime:
        return self.now

    def seconds(self) -> float:
        """Return it in seconds, as a device's clock does."""
        return self.now.timestamp()

    def set_day(self, day: str) -> None:
        self.now = datetime.combine(date.fromisoformat(day), time(12), UTC)

    def populate(self, words: str) -> None:
        """Have a population answer, in the store that the page's server or commands use."""
        url = self.server.aggregator.settings.store if self.server else self.here(STORE)
        store = open_store(url, make=True)
        if not load_catalog(store).by_name:
            add_definitions(store, read_source(Path("collections.toml")), self.now, "page")
        answered(store, words.split(), self.now)
        store.close()

    # -- servers -------------------------------------------------------------------------------

    def serving(self) -> Served:
        """Return the server: the one that the page has started, else one that ran before."""
        if self.server is None:
            url = self.here(STORE)
            open_store(url, make=True).close()
            self.server = Served(Settings(url, (Path("collections.toml"),)), self.clock)
        return self.server

    def serve(self, settings: Settings, bind: ListenAddress, _: object) -> int:
        """Do what `veilcount serve` does, in a thread, since the page goes on."""
        ready = prepare(settings, ListenAddress(HOST, free_port()))
        self.close_server()
        self.server = Served(settings, self.clock)
        summary = StartupSummary(bind, ready.store, ready.durable, ready.workers, ready.intake)
        sys.stderr.write(f"{summary}\n")
        return 0

    def issue(self, settings: IssuerSettings, *_: object) -> int:
        """Do what `veilcount issuer serve` does, in a thread, since the page goes on."""
        self.close_issuer()
        self.issuer = ServedIssuer(settings, self.clock)
        return 0

    def close_issuer(self) -> None:
        """End the issuer, if there is one."""
        if self.issuer:
            self.issuer.close()
        self.issuer = None

    def develop(
        self, settings: Settings, _: ListenAddress, announce: Announce, __: object, **___: object
    ) -> int:
        """Do what `veilcount dev` does before a report arrives."""
        announce(prepare(settings, ListenAddress(HOST, free_port())))
        return 0

    def close_server(self) -> None:
        """End the server, if there is one; its keys may open nothing at the next."""
        if self.server:
            self.server.close()
        self.server = None
        self._keys.clear()

    def _redis(self) -> RedisServer:
        if self.redis is None:
            folder = self.folder / "redis"
            folder.mkdir()
            self.redis = RedisServer(folder)
        return self.redis


@contextmanager
def opened(folder: Path, *, empty: bool = False) -> Iterator[Place]:
    """Yield an environment whose folder holds the definitions of the documentation, or is empty."""
    place = Place(folder)
    for each in FOLDERS:
        (folder / each[1:]).mkdir(parents=True)
    shutil.copytree(ROOT / "docs", folder / "docs")
    if not empty:
        shutil.copy(ROOT / "docs" / "collections.toml", folder)
    with ExitStack() as undo:
        undo.callback(_end, place)
        undo.enter_context(_environment(folder))
        undo.enter_context(chdir(folder))
        undo.enter_context(_modules(folder))
        undo.enter_context(patch.object(options, "now", place.clock))
        undo.enter_context(patch.object(serve_command, "serve", place.serve))
        undo.enter_context(patch.object(issuer_command, "serve_issuer", place.issue))
        undo.enter_context(patch.object(dev_command, "serve_development", place.develop))
        undo.enter_context(patch.object(examine, "__defaults__", (place.seconds, None)))
        undo.enter_context(patch.object(state_checks, "filesystem", lambda _: "a disk"))
        yield place


def _end(place: Place) -> None:
    place.close_server()
    place.close_issuer()
    if place.redis:
        place.redis.kill()


@contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """Begin with none of our variables, in a home of one's own."""
    with patch.dict(os.environ, {"HOME": str(folder / "home")}):
        for name in [each for each in os.environ if each.startswith(_SWITCHES)]:
            del os.environ[name]
        yield


@contextmanager
def _modules(folder: Path) -> Iterator[None]:
    """Make modules of the page importable, and forget them afterwards."""
    before = set(sys.modules)
    with patch.object(sys, "path", [str(folder), *sys.path]):
        yield
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]
