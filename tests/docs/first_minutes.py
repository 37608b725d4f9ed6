"""Type the README's first commands as printed, in an environment that has nothing.

A copy of the last commit, an empty HOME, no cache, no variable of this shell, and a Python with pip
alone. It prints the minutes of each command, until a report is counted, and the keystrokes.

    python -m tests.docs.first_minutes
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .page_parser import ROOT

BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.DOTALL)
COMMENT = re.compile(r"\s+#.*")
SERVING, COUNTED = "/enter#", "  counted  "
SECONDS = 60


def main() -> None:
    """Type both blocks; fail if no report is counted."""
    with tempfile.TemporaryDirectory() as folder:
        checkout, environment = prepare(Path(folder))
        blocks = dict(reversed(BLOCK.findall((checkout / "README.md").read_text("utf-8"))))
        shell = [COMMENT.sub("", line) for line in blocks["sh"].splitlines()]
        keys = sum(len(line) + 1 for line in [*shell, *blocks["python"].splitlines()])
        began = time.monotonic()
        *installing, dev = shell
        for line in installing:
            with timed(line):
                subprocess.run(line, shell=True, cwd=checkout, env=environment, check=True)  # noqa: S602 - as it is printed
        with running(dev, checkout, environment) as log:
            with timed(dev):
                wait_for(SERVING, log)
            with timed("the app"):
                app = [f"{environment['VENV']}/bin/python", "-c", blocks["python"]]
                subprocess.run(app, cwd=checkout, env=environment, check=True)
                wait_for(COUNTED, log)
        print(f"in all: {(time.monotonic() - began) / 60:.1f} min, {keys} keystrokes")


def prepare(folder: Path) -> tuple[Path, Mapping[str, str]]:
    """Return a copy of the last commit, and the environment of somebody who has nothing."""
    checkout, venv, home = (folder / name for name in ("checkout", "python", "home"))
    checkout.mkdir()
    home.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", str(checkout)], input=archive.stdout, check=True)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    path = f"{venv / 'bin'}:/usr/bin:/bin"
    index = {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
    own = {"PATH": path, "HOME": str(home), "VENV": str(venv), "PIP_NO_CACHE_DIR": "1"}
    return checkout, index | own


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long a command takes."""
    start = time.monotonic()
    yield
    print(f"{(time.monotonic() - start) / 60:5.2f} min  {what}", flush=True)


@contextmanager
def running(line: str, folder: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Run a server until the end of the block; its terminal is a file."""
    log = folder.parent / "terminal"
    with log.open("wb") as terminal:
        server = subprocess.Popen(
            line.split(), cwd=folder, env=environment, stdout=terminal, stderr=terminal
        )
    try:
        yield log
    finally:
        server.terminate()
        server.wait(60)


def wait_for(text: str, log: Path) -> None:
    """Wait until a terminal shows a text."""
    deadline = time.monotonic() + SECONDS
    while text not in log.read_text("utf-8", errors="replace"):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{text} is not in {log.read_text('utf-8')}")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
