"""PyInstaller: an app that is frozen carries the SQL and Lua of this package, without a setting."""

from __future__ import annotations

from pathlib import Path


def hook_folders() -> list[str]:
    """Return the folder of the hooks, for which PyInstaller asks by an entry point."""
    return [str(Path(__file__).parent)]
