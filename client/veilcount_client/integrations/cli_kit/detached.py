"""Starts the sender as a process that neither the command nor its terminal waits for or ends."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from ...settings import PARSERS, ClientSettings
from . import sender

# [learn.microsoft.com, Process Creation Flags]: no console, and no Ctrl+C of the command's
DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP = 0x8, 0x200
PACKAGE = __name__.rpartition(".")[0]
FILES = ("collections", "relay_keys")


def start(
    settings: ClientSettings, state: str | Path, directory: Path, account: str | None
) -> None:
    """Start a sender with these settings, and leave it alone."""
    frozen = getattr(sys, "frozen", False)  # the app is its own interpreter: see `Telemetry`
    process = subprocess.Popen(  # noqa: S603 - this very program
        [sys.executable] if frozen else [sys.executable, "-P", "-m", PACKAGE],
        env=environment(settings, state, directory, account),
        cwd=directory,  # one that nobody unmounts or removes meanwhile
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # or `$(command)` would wait for its end
        stderr=subprocess.DEVNULL,
        **detached(sys.platform),
    )
    process.returncode = 0  # it is nobody's child any more: let no destructor miss its end


def detached(platform: str) -> dict[str, Any]:
    """Return the options of `Popen` that separate a process from the command's terminal."""
    if platform == "win32":
        return {"creationflags": DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def environment(
    settings: ClientSettings, state: str | Path, directory: Path, account: str | None
) -> dict[str, str]:
    """Return the settings as variables, which other users cannot read, unlike arguments."""
    values = {
        field.name: getattr(settings, field.name)
        for field in fields(settings)
        if field.name in PARSERS
    }
    values |= {name: values[name] and Path(values[name]).absolute() for name in FILES}
    values["state"] = state
    variables = {
        f"VEILCOUNT_{name.upper()}": str(value)
        for name, value in values.items()
        if value is not None
    }
    if account is not None:
        variables[sender.ACCOUNT] = account
    variables[sender.DIRECTORY] = str(directory)
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # as far as it was changed
    return os.environ | variables
