"""Our side of the comparison: makes `.venv-competitors` on demand, asks the process in it.

Nothing of a competitor is copied or imported here: their packages are installed from a hashed lock
and talk to us over a pipe.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from .separate import ROOT

LOCK = Path(__file__).with_name("competitors.lock")
PLACE = ROOT / ".venv-competitors"
BUILT = "multi-freq-ldpy"  # from hashed source, by a hashed setuptools; all others are wheels
CLIENTS = {
    "direct_encoding": "pure-ldp DE",
    "local_hashing": "pure-ldp OLH",
    "hadamard_response": "pure-ldp HR",
    "unary_encoding": "pure-ldp OUE",
}


class CompetitorsMissingError(Exception):
    """The competitors cannot be installed or do not run: the bench goes on without them."""


class Competitors:
    """The process that runs the competitors. It only works while it has a request."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [_python(), "-m", "bench.competitor_worker"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, function: str, **arguments: object) -> dict[str, Any]:
        """Return the figures of a function of the worker."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = json.dumps({"function": function, "arguments": arguments})
        try:
            print(request, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise CompetitorsMissingError("the competitors do not run") from None
        answer = self._process.stdout.readline()
        if not answer:
            raise CompetitorsMissingError("a competitor stopped")
        figures: dict[str, Any] = json.loads(answer)
        return figures

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # closes its input, which ends it


def _python() -> Path:
    """Return the interpreter of a venv that holds exactly what is locked."""
    python, stamp = PLACE / "bin" / "python", PLACE / "stamp"
    wanted = f"{sys.version} {sha256(LOCK.read_bytes()).hexdigest()}"
    if not (python.exists() and stamp.exists() and stamp.read_text() == wanted):
        print("bench: setting up .venv-competitors", file=sys.stderr)
        _fill(python)
        stamp.write_text(wanted)  # last: a set-up that was interrupted starts again
    return python


def _fill(python: Path) -> None:
    uv = [sys.executable, "-m", "uv", "--quiet", "pip", "install", "--python", str(python)]
    wheels = ["--only-binary", ":all:", "--no-binary", BUILT, "--build-constraints", str(LOCK)]
    try:
        venv.create(PLACE, clear=True)
        locked = ["--require-hashes", "--requirement", str(LOCK)]
        subprocess.run([*uv, *wheels, *locked], check=True, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        raise CompetitorsMissingError("the competitors could not be installed") from None
