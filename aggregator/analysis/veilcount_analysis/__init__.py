"""Everything that can be computed from counters and definitions: no I/O, no clock.

    from veilcount_analysis import estimate, tally

    counters = tally(collection, messages)
    estimate(collection, counters)

Its public names are looked up when they are first used: no part waits for what another one imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimation import compare as compare
    from .mechanisms import estimate as estimate
    from .mechanisms import tally as tally

_MODULES = {"compare": "estimation", "estimate": "mechanisms", "tally": "mechanisms"}
__all__ = ["compare", "estimate", "tally"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
