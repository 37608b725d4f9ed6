"""Runs the apps of `app_scripts` as processes, each a fork of one that has imported everything."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .server_fixtures import HOST, wait_until

ROOT = Path(__file__).parents[3]


@dataclass
class Apps:
    """Starts apps in a folder, one after the other, and ends them whatever happens."""

    folder: Path
    starter: subprocess.Popen[str]
    app: int | None = None  # the process id of the app that runs

    @property
    def output(self) -> str:
        return self._path("output").read_text(encoding="utf-8")

    @property
    def log(self) -> str:
        return self._path("log").read_text(encoding="utf-8")

    def start(self, name: str, url: str, *arguments: object) -> None:
        assert self.starter.stdin is not None
        paths = [self._path("output"), self._path("log")]
        for path in paths:
            path.write_bytes(b"")
        request = [*map(str, paths), name, url, str(self.folder), *map(str, arguments)]
        self.starter.stdin.write(json.dumps(request) + "\n")
        self.starter.stdin.flush()
        self.app = self._reply()

    def wait(self) -> int:
        """Return the exit code of the app; its children end with it."""
        try:
            return self._reply()
        finally:
            self.kill()
            self.app = None

    def run(self, name: str, url: str, *arguments: object, code: int = 0) -> str:
        """Run an app to its end; return what it printed."""
        self.start(name, url, *arguments)

        assert self.wait() == code, self.log
        return self.output

    def run_until(self, output: str, name: str, url: str, *arguments: object) -> None:
        """Start an app, and wait until it has printed this."""
        self.start(name, url, *arguments)
        assert wait_until(lambda: output in self.output), self.log

    def kill(self) -> None:
        if self.app is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.app, signal.SIGKILL)

    def _reply(self) -> int:
        assert self.starter.stdout is not None
        return int(self.starter.stdout.readline())

    def _path(self, kind: str) -> Path:
        return self.folder.with_name(f"{self.folder.name}.{kind}")


def environment() -> dict[str, str]:
    """Return the environment of apps: without settings, and without a proxy."""
    inherited = {name: text for name, text in os.environ.items() if "VEILCOUNT" not in name}
    paths = os.pathsep.join(str(ROOT / package) for package in ("client", "shared"))
    return inherited | {"PYTHONPATH": paths, "NO_PROXY": HOST}


@contextmanager
def starting() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.client.delivery.app_scripts"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(),
    ) as starter:
        yield starter
