"""Finds and opens an app's state: a directory of this machine, or a Redis that hosts share."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from veilcount_shared.installing import install

from ..errors import StateError
from ..settings import ClientSettings
from .interface import ClientState
from .sqlite import SqliteState


def state_location(settings: ClientSettings, app: str) -> str | Path:
    """Return the directory or the URL of an app's state; two apps never share one."""
    if settings.development:
        return _temporary_directory()
    if settings.state is None:
        return default_directory(app)
    shared = "://" in settings.state and "#" not in settings.state
    return f"{settings.state}#{app}" if shared else settings.state


def _temporary_directory() -> Path:
    """Return a directory that goes with this process, and not with a child of it."""
    directory, maker = tempfile.mkdtemp(prefix="veilcount-"), os.getpid()

    def remove() -> None:
        if os.getpid() == maker:
            shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)  # before the worker's, so it runs after the last is stored
    return Path(directory)


def default_directory(app: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return where this machine keeps the state of an app's user."""
    home = Path(environment.get("HOME") or Path.home())
    if sys.platform == "win32":
        base = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(environment.get("XDG_STATE_HOME") or home / ".local" / "state")
    return base / "veilcount" / app


def open_state(place: str | Path, now: Callable[[], float] = time.time) -> ClientState:
    """Open a state by its directory or its redis:// URL; StateError says what to do if not.

    Several apps share one Redis by a #name each at the end of the URL.
    """
    if isinstance(place, Path) or "://" not in place:
        return SqliteState(place, now)
    if place.startswith(("redis://", "rediss://", "unix://")):
        return _redis(place, now)
    raise StateError(
        f"{place.split('://', 1)[0]}:// is not supported: give a directory or redis://"
    )


def _redis(url: str, now: Callable[[], float]) -> ClientState:
    try:
        from .redis import RedisState  # noqa: PLC0415 - an extra, imported by those who use it
    except ImportError as error:
        raise StateError(f"a shared state needs {install('shared-state')}") from error
    return RedisState(url, now)
