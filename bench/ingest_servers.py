"""The servers that `ingest` loads, in processes of their own, and what those have computed."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from tests.system.server import HOST, free_port, wait_until

from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import open_store

ROOT = Path(__file__).parents[1]
THREADS = 32
STARTING, ENDING = 60.0, 30.0  # seconds
_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _SYSTEM = 1, 11, 12  # places behind the name, in proc(5)


@dataclass(frozen=True, slots=True)
class Engine:
    """An empty store, and the processes that keep it."""

    url: str
    pids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Served:
    """A server that takes requests."""

    url: str
    pid: int
    engine: Engine

    def seconds(self) -> tuple[float, float]:
        """Return the CPU seconds of the server with all its workers, and of the store's own."""
        return _computed(_family(self.pid)), _computed(self.engine.pids)


@contextmanager
def engine(kind: str, folder: Path) -> Iterator[Engine]:
    """Make a store that is durable before it answers."""
    folder.mkdir()
    if kind == "sqlite":
        found = Engine(f"sqlite:///{folder}/bench.db")
        open_store(found.url, make=True).close()
        yield found
        return
    servers = RedisServer(folder) if kind == "redis" else RedisCluster(folder)
    nodes = [servers] if isinstance(servers, RedisServer) else servers.nodes
    try:
        open_store(servers.url, make=True).close()
        yield Engine(servers.url, tuple(node._process.pid for node in nodes))
    finally:
        for node in nodes:
            node.kill()


@contextmanager
def served(
    server: str,
    store: Engine | None,
    definitions: Path,
    workers: int = 1,
    *,
    bare: str = "",
    limited: bool = False,
) -> Iterator[Served]:
    """Serve a store, or (None) nothing: what is `bare`.

    Not limited: a benchmark may send in one body, and in an hour, what devices send in many.
    """
    port = free_port()
    files = () if store is None else (definitions,)
    url = "none:" if store is None else store.url
    settings = Settings(url, files, workers=workers)
    if not limited:
        settings = replace(settings, max_pseudonyms_per_body=1_000, max_new_pseudonyms_per_hour=0)
    command = (_granian if server == "granian" else _gunicorn)(settings, port, bare)
    log = definitions.parent / f"{server}-{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=_environment(settings), stdout=output, stderr=output
        )
    try:
        _wait(process, log, port)
        yield Served(f"http://{HOST}:{port}/v1/reports", process.pid, store or Engine(""))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(ENDING)


def _granian(settings: Settings, port: int, bare: str) -> list[str]:
    if bare:
        return [sys.executable, "-m", "bench.ingest_bare", str(port), bare]
    bind = f"{HOST}:{port}"
    return [sys.executable, "-m", "veilcount_aggregator", "serve", "--bind", bind]


def _gunicorn(settings: Settings, port: int, bare: str) -> list[str]:
    threads, workers = str(THREADS), str(settings.workers)
    return [
        *(sys.executable, "-m", "gunicorn", "--worker-class", "gthread", "--threads", threads),
        *("--workers", workers, "--bind", f"{HOST}:{port}", "--keep-alive", "60"),
        *("--no-control-socket", "--worker-tmp-dir", "/dev/shm"),  # noqa: S108 - as it advises
        "bench.ingest_bare:app" if bare else "veilcount_aggregator.server.wsgi:app",
    ]


def _environment(settings: Settings) -> Mapping[str, str]:
    environment = {name: v for name, v in os.environ.items() if not name.startswith("VEILCOUNT_")}
    python_path = (ROOT, *(ROOT / package for package in ("client", "shared", "aggregator")))
    path = os.pathsep.join(map(str, python_path))
    return environment | settings.environment() | {"PYTHONPATH": path}


def _wait(process: subprocess.Popen[bytes], log: Path, port: int) -> None:
    def ready() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"no server: {log.read_text()}")
        return _answers(port)

    wait_until(ready, STARTING)
    time.sleep(0.2)  # of what is done once, the rest


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=STARTING)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status < 500
    except OSError:
        return False
    finally:
        connection.close()


def resident(pid: int) -> float:
    """Return the megabytes of a process and all that come from it; what they share counts once."""
    rollups = [Path(f"/proc/{each}/smaps_rollup") for each in _family(pid)]
    texts = [path.read_text(encoding="ascii") for path in rollups]
    return sum(int(text.partition("\nPss:")[2].split()[0]) for text in texts) / 1024


def _family(pid: int) -> list[int]:
    """Return a process and all that come from it."""
    parents = {int(path.name): _fields(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
    family = [pid]
    for member in family:
        family += [
            child for child, fields in parents.items() if fields and int(fields[_PARENT]) == member
        ]
    return family


def _computed(pids: Sequence[int]) -> float:
    return sum(int(f[_USER]) + int(f[_SYSTEM]) for f in map(_fields, pids) if f) / _TICKS


def _fields(pid: int) -> list[str]:
    """Return the fields of a process in proc(5) after its name; none if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return []
