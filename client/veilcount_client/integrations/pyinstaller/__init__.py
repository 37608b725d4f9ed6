"""PyInstaller: an app that is frozen carries the SQL and Lua of this package, without a setting."""

from __future__ import annotations

from pathlib import Path


def hook_folders() -> list[str]:
    """Return the folder of the hooks, as the entry point `pyinstaller40` asks for it."""
    return [str(Path(__file__).parent)]
