"""The aggregator's side of veilcount: it counts randomized answers and says what they mean.

Its public names are looked up when they are first used: neither the command line nor the reader has
to wait for scipy, and where an extra is missing, whoever needs it says so.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .mechanisms import estimate as estimate
    from .mechanisms import tally as tally

__all__ = ["estimate", "tally"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".mechanisms", __name__), name)
