"""Public names of a package that are looked up when they are first used [PEP 562].

A package that imports all that it exports makes whoever needs one of its small modules wait for
the others: half of what an app that never records would spend on its start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package, of the module in it that defines each name."""

    def look_up(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name], package), name)

    return look_up
