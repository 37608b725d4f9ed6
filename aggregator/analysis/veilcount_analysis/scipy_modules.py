"""Modules of scipy, imported when one of their functions is first used.

Tallies, definitions and the reader need numpy alone: scipy, by far the largest dependency, is the
extra `estimate`. A server starts sooner, too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import ScipyUnavailable

__all__ = ["fft", "special", "stats"]

if TYPE_CHECKING:
    from scipy import fft, special, stats
else:

    class _Module:
        """Stands for a module, and keeps the functions that were looked up."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, function: str) -> Any:
            try:
                module = import_module(self._name)
            except ModuleNotFoundError as missing:
                raise ScipyUnavailable from missing
            vars(self)[function] = value = getattr(module, function)
            return value

    fft, special, stats = map(_Module, ("scipy.fft", "scipy.special", "scipy.stats"))
