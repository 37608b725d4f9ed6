"""A life of an app, each step a process: `... portable_app STEP URL DEFINITIONS STATE`, on any
platform. Each prints what a test looks at, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import veilcount_client
from veilcount_client.__main__ import run
from veilcount_client.state import factory

NAME = "autosave"
HOMES = {"HOME": "home", "LOCALAPPDATA": "local"}


def record(url: str, definitions: str, state: str) -> object:
    """Ask, record, deliver, and show the receipt."""
    client = veilcount_client.Client(url, collections=definitions, state_dir=state)
    must_ask = client.must_ask
    client.consent(True)
    client.record(NAME, True)
    flushed = client.flush(timeout=30)
    receipt = client.receipt()
    return must_ask, flushed, receipt.problem, receipt.entries[0].answers, len(receipt.html()) > 0


def go_on(url: str, definitions: str, state: str) -> object:
    """Start again: what was decided and spent is still there; look with `doctor`; then forget."""
    place = ("--collections", definitions, "--url", url, "--state-dir", state)
    code = run(["doctor", *place])
    with veilcount_client.Client(url, collections=definitions, state_dir=state) as client:
        found = client.consented, client.receipt().entries[0].answers, client.state_moved is None
        client.record(NAME, False)
        flushed = client.flush(timeout=30)
        client.forget()
        return code, *found, flushed, client.consented, client.must_ask


def develop(url: str, definitions: str, state: str) -> object:
    """Keep a state for this process alone, in a folder that the test looks into afterwards."""
    Path(state).mkdir(exist_ok=True)
    tempfile.tempdir = state
    client = veilcount_client.Client(url, collections=definitions, development=True)
    client.consent(True)
    client.record(NAME, True)
    return client.flush(until="stored"), str(factory.default_directory("app", HOMES))


def planted(url: str, definitions: str, state: str) -> object:
    """Do what the platform does not have, and show how each fails."""
    return {step.__name__: _failure(step, Path(definitions)) for step in PLANTED}


def _failure(step: Callable[[Path], object], file: Path) -> str:
    try:
        return f"works: {step(file)}"
    except Exception as error:  # noqa: BLE001 - whatever it is
        return str(error)


def lock(_: Path) -> object:
    import fcntl  # noqa: PLC0415 - planted

    return fcntl.LOCK_EX


def ask_owner(_: Path) -> object:
    return os.geteuid()


def look_at_linux(_: Path) -> object:
    return Path("/proc/self/stat").read_text(encoding="ascii")


def remove_in_use(file: Path) -> object:
    with file.open(encoding="ascii"):
        file.unlink()
    return "removed"


def rename_over(file: Path) -> object:
    file.with_suffix(".other").touch()
    return file.rename(file.with_suffix(".other"))


def open_folder(file: Path) -> object:
    return os.open(file.parent, os.O_RDONLY)


def guess_encoding(file: Path) -> object:
    return file.read_text()


PLANTED = (
    lock,
    ask_owner,
    look_at_linux,
    guess_encoding,
    open_folder,
    remove_in_use,
    rename_over,
)


if __name__ == "__main__":
    chosen: Callable[[str, str, str], object] = globals()[sys.argv[1]]
    print(json.dumps(chosen(*sys.argv[2:])))
