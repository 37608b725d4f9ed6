"""The version of this aggregator, as documentation and metrics state it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """Return the installed package's version."""
    try:
        return version("veilcount")
    except PackageNotFoundError:  # from a source tree that was never installed
        return "0"
