"""Opens a state: a directory, or a Redis that several hosts share."""

from __future__ import annotations

from pathlib import Path

from .interface import ClientState, StateError
from .sqlite import SqliteState


def open_state(place: str | Path) -> ClientState:
    """Open a state by its directory or its redis:// URL; StateError says what to do if not.

    Several apps share one Redis by a #name each at the end of the URL.
    """
    if isinstance(place, Path) or "://" not in place:
        return SqliteState(place)
    if place.startswith(("redis://", "rediss://", "unix://")):
        return _redis(place)
    raise StateError(
        f"{place.split('://', 1)[0]}:// is not supported: give a directory or redis://"
    )


def _redis(url: str) -> ClientState:
    try:
        from .redis import RedisState  # noqa: PLC0415 - an extra, imported by those who use it
    except ImportError as error:
        raise StateError("a shared state needs: pip install veilcount[shared-state]") from error
    return RedisState(url)
