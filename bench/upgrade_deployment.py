"""A deployment of two versions: packages of a revision, clients, an operator, aggregators."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import requests
from tests.system.deploy.nginx import Nginx
from tests.system.faults.campaign import Campaign
from tests.system.server import HOST, Server, wait_until

from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import decode_binary

ROOT = Path(__file__).parents[1]
PACKAGES = ("aggregator", "client", "shared")
WORKERS = ("--workers", "2")
PATIENCE = 60.0  # seconds, on a machine that is busy


class RevisionMissing(RuntimeError):
    """The revision to start from is not in this clone."""


# -- revisions -------------------------------------------------------------------------------------


def previous_revision() -> str:
    """Return the revision to start from: the one asked for, the newest tag, or the last commit."""
    try:
        tags = _git("tag", "--sort=-creatordate").split()
        revision = os.environ.get("UPGRADE_FROM") or [*tags, "HEAD"][0]
        return _git("rev-parse", "--short", "--verify", "--quiet", revision + "^{commit}").strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise RevisionMissing(
            "the revision to upgrade from is not in the history of this clone: fetch it, or name"
            " another with UPGRADE_FROM=REVISION"
        ) from error


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class Version:
    """The packages of a revision, in a folder."""

    root: Path

    @property
    def environ(self) -> dict[str, str]:
        """Return what makes a process of this environment import these packages."""
        path = os.pathsep.join(str(self.root / package) for package in PACKAGES)
        return {"PYTHONPATH": path}

    def run(self, *words: str) -> str:
        """Run `python ...` with this version, and return what it prints."""
        done = subprocess.run(
            [sys.executable, *words],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=os.environ | self.environ,
        )
        return done.stdout

    def check(self) -> None:
        """Fail if another version's packages are imported."""
        names = "veilcount_aggregator", "veilcount_client", "veilcount_shared"
        files = ", ".join(f"{name}.__file__" for name in names)
        found = self.run("-c", f"import {', '.join(names)}; print({files}, sep='\\n')").splitlines()
        assert all(Path(file).is_relative_to(self.root) for file in found), found


def extract(revision: str, folder: Path) -> Version:
    """Extract a revision's packages from the history."""
    command = ["git", "-C", str(ROOT), "archive", revision, *PACKAGES]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], check=True, input=archive)
    return Version(folder)


# -- clients ---------------------------------------------------------------------------------------


class Exchange(NamedTuple):
    """A body that a client sent, and what became of it."""

    at: float
    seconds: float
    reports: tuple[Report, ...]
    verdicts: Sequence[Verdict]
    why: str


class Client:
    """A process with the client of a version, which sends until it is stopped."""

    def __init__(self, version: Version, nginx: Nginx, definitions: Path, folder: Path) -> None:
        """Start it; its state and its lines are in the folder."""
        folder.mkdir()
        self._lines = folder / "exchanges"
        words = (nginx.url, str(definitions), str(folder / "state"))
        trusted = {"REQUESTS_CA_BUNDLE": str(nginx.certificate), "NO_PROXY": "*"}
        with self._lines.open("wb") as lines, (folder / "stderr").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.upgrade_worker", *words],
                cwd=ROOT,
                env=os.environ | version.environ | trusted,
                stdout=lines,
                stderr=errors,
            )

    def delivered(self) -> int:
        """Return how many bodies were answered with verdicts so far."""
        return self._lines.read_bytes().count(b'"why": ""')

    def stop(self) -> tuple[list[Exchange], int]:
        """Have it deliver what is left; return what it sent, and how many reports it recorded."""
        self._process.terminate()
        assert self._process.wait(120) == 0, (self._lines.parent / "stderr").read_text()
        *lines, last = map(json.loads, self._lines.read_text(encoding="ascii").splitlines())
        assert last["settled"], "a client could not deliver all"
        return [_exchange(line) for line in lines], last["recorded"]

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


def _exchange(line: dict[str, Any]) -> Exchange:
    reports = decode_binary(bytes.fromhex(line["body"])).reports
    verdicts = [Verdict(each) for each in line["verdicts"]]
    return Exchange(line["at"], line["seconds"], reports, verdicts, line["why"])


# -- an operator -----------------------------------------------------------------------------------


@dataclass
class Operator:
    """An admin with a session of the dashboard, who creates a key in each phase."""

    key: str
    session: requests.Session = field(default_factory=requests.Session)
    keys: list[str] = field(default_factory=list)
    definitions: object = None

    def log_in(self, url: str) -> None:
        """Log in, and remember the definitions."""
        self.session.trust_env = False
        page = self.session.get(f"{url}/login", timeout=30).text
        hidden = dict(re.findall(r'type="hidden" name="(\w+)"[^>]* value="([^"]*)"', page))
        self.session.post(f"{url}/login", data=hidden | {"key": self.key}, timeout=30)
        self.keys = [self.key]
        self.definitions = self._names(url, self.key)
        assert self.definitions, "no definition is listed"

    def check(self, urls: Sequence[str]) -> str:
        """Return what an aggregator no longer has, empty if all is there; then create a key."""
        lost = {each for url in urls for each in self._lost(url)}
        reply = requests.post(
            f"{urls[0]}/v1/keys",
            json={"role": "analyst", "label": f"key {len(self.keys)}"},
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=30,
        )
        self.keys.append(reply.json()["key"])
        return ", ".join(sorted(lost))

    def _lost(self, url: str) -> Iterator[str]:
        page = self.session.get(f"{url}/operations", timeout=30, allow_redirects=False)
        if page.status_code != requests.codes.ok:
            yield "session"
        found = [self._names(url, key) for key in self.keys]
        if None in found:
            yield "key"
        if found[0] != self.definitions:
            yield "definitions"

    @staticmethod
    def _names(url: str, key: str) -> list[tuple[str, str]] | None:
        headers = {"Authorization": f"Bearer {key}"}
        reply = requests.get(f"{url}/v1/collections", headers=headers, timeout=30)
        if reply.status_code != requests.codes.ok:
            return None
        listed = reply.json()["collections"]
        return sorted((each["name"], each["fingerprint"]) for each in listed)


# -- a deployment ----------------------------------------------------------------------------------


class Load(NamedTuple):
    """What a phase waits for: bodies that each client delivers, and seconds after that."""

    bodies: int
    seconds: float


class Phase(NamedTuple):
    """A part of an upgrade: when it began, what came of it, and what an operator lost by it."""

    name: str
    begun: float
    outcome: str
    lost: str


@dataclass
class Deployment:
    """Aggregators on one store behind nginx, clients, and the phases that they went through."""

    url: str
    campaign: Campaign
    folder: Path
    ports: list[int]
    load: Load
    servers: list[Server] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)

    @property
    def urls(self) -> list[str]:
        return [f"http://{HOST}:{port}" for port in self.ports]

    def start(self, version: Version) -> Operator:
        """Make the store with a version and serve it; the first aggregator loads definitions."""
        words = ("-m", "veilcount_aggregator", "init", "--store", self.url, "--json")
        operator = Operator(json.loads(version.run(*words))["key"])
        definitions = ("--collections", str(self.campaign.file))
        for place in range(len(self.ports)):
            self.servers.append(self.serve(version, place, *(() if place else definitions)))
        operator.log_in(self.urls[0])
        return operator

    def serve(self, version: Version, place: int, *flags: str) -> Server:
        """Start an aggregator of a version."""
        port, environ = self.ports[place], version.environ
        return Server(self.url, self.folder, *WORKERS, *flags, port=port, environ=environ)

    def connect(self, nginx: Nginx, versions: Sequence[Version]) -> None:
        """Have a client of each of these versions send."""
        for number, version in enumerate(versions):
            folder = self.folder / f"client {number}"
            self.clients.append(Client(version, nginx, self.campaign.file, folder))

    def replace(self, place: int, version: Version, fallback: Version | None) -> str:
        """Stop an aggregator and start a version; one that may refuse the store has a fallback."""
        begun = time.monotonic()
        code = self.servers[place].stop()
        drained = time.monotonic()
        assert code == 0, f"exit code {code} on SIGTERM"
        try:
            self.servers[place] = self.serve(version, place)
        except RuntimeError as refusal:
            if fallback is None:
                raise
            self.servers[place] = self.serve(fallback, place)
            return f"refused: {str(refusal).splitlines()[-1]}"
        ready = time.monotonic() - drained
        return f"drained in {drained - begun:.1f} s, ready after {ready:.1f} s"

    def phase(self, name: str, operator: Operator, work: Callable[[], str] = str) -> None:
        """Do some work under load, then let every client deliver so much."""
        begun = time.monotonic()
        outcome = work()
        before = [client.delivered() for client in self.clients]
        wait_until(
            lambda: all(
                client.delivered() >= start + self.load.bodies
                for client, start in zip(self.clients, before, strict=True)
            ),
            PATIENCE,
        )
        time.sleep(self.load.seconds)
        lost = operator.check(self.urls)
        self.phases.append(Phase(name, begun, outcome, lost))

    def finish(self) -> tuple[list[Exchange], int]:
        """Stop clients, then aggregators; return what was sent, and how much was recorded."""
        found = [client.stop() for client in self.clients]
        for server in self.servers:
            assert server.stop() == 0
        exchanges = [exchange for sent, _ in found for exchange in sent]
        return sorted(exchanges, key=lambda exchange: exchange.at), sum(
            recorded for _, recorded in found
        )

    def close(self) -> None:
        for client in self.clients:
            client.kill()
        for server in self.servers:
            if server.process.poll() is None:
                server.kill()
