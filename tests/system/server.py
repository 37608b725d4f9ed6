"""A real `veilcount serve` on a free port of the loopback: started, asked, ended by its id."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests

from ..processes import HOST, children, free_port, stopped, wait_until

__all__ = [
    "ENDING_SECONDS",
    "HOST",
    "LIMITS",
    "STARTING_SECONDS",
    "Server",
    "free_port",
    "listens",
    "slow_commits",
    "wait_until",
    "worker_killed",
    "worker_stopped",
]

STARTING_SECONDS = 60.0
ENDING_SECONDS = 30.0


#: the population of a test sends in a body, and in an hour, what devices send in many
LIMITS = {"VEILCOUNT_MAX_PSEUDONYMS_PER_BODY": "1000", "VEILCOUNT_MAX_NEW_PSEUDONYMS_PER_HOUR": "0"}


class Server:
    """One server with its workers. Its log is the file `log`."""

    def __init__(
        self,
        store: str | Path,
        folder: Path,
        *flags: str,
        port: int | None = None,
        environ: dict[str, str] | None = None,
        program: tuple[str, ...] = ("veilcount_aggregator",),
        python: Path = Path(sys.executable),
        limits: Mapping[str, str] = LIMITS,
    ) -> None:
        """Start it, and wait until it takes requests; `flags` are those of `veilcount serve`.

        A store that is a path is a file whose one line is the URL.
        """
        self.port = port or free_port()
        self.log = folder / f"server-{self.port}.log"
        self._session = requests.Session()
        self._session.trust_env = False
        command = [str(python), "-m", *program, "serve", "--json"]
        place = ["--bind", f"{HOST}:{self.port}"]
        place += ["--store", store] if isinstance(store, str) else []
        file = {"VEILCOUNT_STORE_FILE": str(store)} if isinstance(store, Path) else {}
        inherited = {name: v for name, v in os.environ.items() if not name.startswith("VEILCOUNT_")}
        path = {"PYTHONPATH": os.pathsep.join(sys.path)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *place, *flags],
                stdout=subprocess.PIPE,
                stderr=log,
                env=inherited | dict(limits) | path | file | (environ or {}),
                start_new_session=True,
            )
        self.ready = self._ready()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The process that watches over the workers."""
        return self.process.pid

    def workers(self) -> list[int]:
        return children(self.pid)

    def analysis(self) -> list[int]:
        """Return the processes of its analysis pool: children of threads that watch over them."""
        pids: set[int] = set()
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            with suppress(OSError):  # it has ended meanwhile
                pids |= {*map(int, (thread / "children").read_text(encoding="ascii").split())}
        return sorted(pids - {*self.workers()})

    def ask(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send a request, on a connection that is kept."""
        return self._session.request(method, self.url + path, timeout=30, **options)

    def wait_until_open(self) -> None:
        """Wait until a worker, of several not each of them, has opened the store."""
        wait_until(lambda: self.ask("GET", "/readyz").ok)

    def log_text(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def stop(self) -> int:
        """Ask it to end, and return its exit code."""
        self._session.close()
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(ENDING_SECONDS)
        self._close()
        return code

    def kill(self) -> None:
        """End it and its other processes as a power cut ends processes."""
        for pid in (self.pid, *self.workers(), *self.analysis()):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(pid, signal.SIGKILL)
        self.process.wait(ENDING_SECONDS)
        self._session.close()
        self._close()
        wait_until(lambda: not listens(self.port))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.stop()
        self._close()

    def _ready(self) -> dict[str, Any]:
        """Return what it says at its start, or fail with what it complains about."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait(ENDING_SECONDS)
            self._close()
            raise RuntimeError(f"no server, exit code {code}: {self.log_text()}")
        facts: dict[str, Any] = json.loads(line)
        return facts

    def _close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def worker_killed(server: Server) -> Iterator[None]:
    """Kill one worker; the server replaces it by itself."""
    before = server.workers()
    os.kill(before[0], signal.SIGKILL)
    yield
    wait_until(lambda: len({*server.workers()} - {before[0]}) == len(before))


def worker_stopped(server: Server) -> AbstractContextManager[None]:
    """Stop one worker in its tracks, with whatever it holds; then it goes on."""
    return stopped(server.workers()[-1:])


@contextmanager
def slow_commits(file: Path) -> Iterator[None]:
    """Hold the lock that processes write under to a SQLite file: their commits wait."""
    with file.with_name(f"{file.name}-lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def listens(port: int) -> bool:
    """Whether somebody takes connections at a port of the loopback."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
