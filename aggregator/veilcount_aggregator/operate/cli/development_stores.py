"""Temporary stores of `veilcount dev`: made under one prefix, so that commands can name them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from urllib.parse import quote

from veilcount_serving.errors import SettingsError

NAME = "store.db"
_FOLDERS = "veilcount-dev-store-"


@contextmanager
def temporary_store() -> Iterator[str]:
    """Yield the URL of a store that is removed at the end."""
    with TemporaryDirectory(prefix=_FOLDERS) as folder:
        yield _url(Path(folder) / NAME)


def missing_store(fix: str) -> SettingsError:
    """Return the error of a command without a store; it names those of `veilcount dev`.

    None is opened unasked: a key would then go to whichever server happens to run.
    """
    stores = [f"`--store {_url(path)}`" for path in _paths()]
    running = f"; `veilcount dev` runs with {' and '.join(stores)}" if stores else ""
    return SettingsError("--store", "", f"{fix}{running}")


def _paths() -> list[Path]:
    return [path for path in Path(gettempdir()).glob(f"{_FOLDERS}*/{NAME}") if _is_ours(path)]


def _is_ours(path: Path) -> bool:
    """Whether this user made it: anybody may write to the folder of temporary files."""
    with suppress(OSError):
        return not hasattr(os, "getuid") or path.stat().st_uid == os.getuid()
    return False


def _url(path: Path) -> str:
    return f"sqlite:///{quote(str(path))}"
