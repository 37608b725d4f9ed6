"""The processes that send: locust, alone or a master with its workers, and real devices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.system.server import HOST, free_port

from .devices import GO, READY
from .ipc import FOLDER, STARTED, STOP

HERE = Path(__file__).resolve().parent
STARTING_SECONDS = 120.0
STOP_SECONDS = 30  # for sends that are on their way when the time is over
TICK = 0.02


class GeneratorFailed(RuntimeError):
    """A generator failed: with its log."""


@dataclass(frozen=True, slots=True)
class LocustRun:
    """The parameters of locust, and the commands of its processes."""

    url: str
    users: int
    seconds: int
    generators: int = 1
    page: int | None = None  # the port of locust's page, instead of none
    report_flags: tuple[str, ...] = ()  # flags for its reports

    def commands(self) -> Iterator[list[str]]:
        """Yield a command for each process: the master, or the only one, first."""
        base = [sys.executable, "-m", "locust", "--locustfile", str(HERE / "locustfile.py")]
        first = [*base, "--host", self.url, "--exit-code-on-error", "0", "--only-summary"]
        first += ["--users", str(self.users), "--spawn-rate", str(self.users), *self._page_flags()]
        first += [
            "--run-time",
            f"{self.seconds}s",
            "--stop-timeout",
            str(STOP_SECONDS),
            *self.report_flags,
        ]
        if self.generators == 1:
            yield first
            return
        port, expected = str(free_port()), str(self.generators)
        place = ["--master-bind-host", HOST, "--master-bind-port", port]
        yield [*first, "--master", *place, "--expect-workers", expected]
        for _ in range(self.generators):
            yield [*base, "--worker", "--master-host", HOST, "--master-port", port]

    def _page_flags(self) -> list[str]:
        if self.page is None:
            return ["--headless"]
        where = ["--web-host", HOST, "--web-port", str(self.page)]
        return [*where, "--autostart", "--autoquit", "0"]


@dataclass(slots=True)
class GeneratorProcesses:
    """The processes that send in one run; the end of a `with` kills them."""

    folder: Path
    _senders: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _devices: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._all():
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()

    def ready_devices(self) -> None:
        """Start real devices, with the task in the folder, and wait until all are there."""
        command = [sys.executable, "-m", "loadtests.devices", str(self.folder)]
        self._devices = self._start("devices", command)
        self._wait_for(READY, self._devices)

    def begin(self, locust_run: LocustRun) -> float:
        """Have everyone begin; return when, by the monotonic clock."""
        for number, command in enumerate(locust_run.commands()):
            self._senders.append(self._start(f"locust-{number}", command))
        self._wait_for(STARTED, self._senders[0])
        (self.folder / GO).touch()
        return time.perf_counter()

    def sending(self) -> bool:
        """Whether locust still runs."""
        return self._senders[0].poll() is None

    def end(self) -> None:
        """Have locust end; real devices take the time that they need."""
        (self.folder / STOP).touch()

    def wait(self) -> None:
        """Wait until everyone has ended."""
        for process in self._all():
            process.wait()
            self._check(process)

    def _all(self) -> list[subprocess.Popen[bytes]]:
        return [*self._senders, *([self._devices] if self._devices else [])]

    def _start(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        python_path = os.pathsep.join([str(HERE.parent), *filter(None, sys.path)])
        environ = {name: v for name, v in os.environ.items() if not name.startswith("VEILCOUNT_")}
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                command,
                env=environ | {FOLDER: str(self.folder), "PYTHONPATH": python_path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _wait_for(self, mark: str, process: subprocess.Popen[bytes]) -> None:
        ends = time.monotonic() + STARTING_SECONDS
        while not (self.folder / mark).exists():
            if process.poll() is not None or time.monotonic() > ends:
                raise GeneratorFailed(f"{mark}: no generator reports it:\n{self._logs()}")
            time.sleep(TICK)

    def _check(self, process: subprocess.Popen[bytes]) -> None:
        if process.returncode:
            raise GeneratorFailed(f"ended with {process.returncode}:\n{self._logs()}")

    def _logs(self) -> str:
        logs = sorted(self.folder.glob("locust-*.log")) + sorted(self.folder.glob("devices.log"))
        return "\n".join(log.read_text(encoding="utf-8") for log in logs)
