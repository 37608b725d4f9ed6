"""Everything that can be computed from counters and definitions: no I/O, no clock.

    from veilcount_analysis import estimate, tally

    counters = tally(collection, messages)
    estimate(collection, counters)

Its public names are looked up when they are first used: no part waits for what another one imports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veilcount_shared.lazy_names import lazy_names

if TYPE_CHECKING:
    from .estimation import compare as compare
    from .mechanisms import estimate as estimate
    from .mechanisms import tally as tally

_MODULES = {"compare": ".estimation", "estimate": ".mechanisms", "tally": ".mechanisms"}
__all__ = list(_MODULES)
__getattr__ = lazy_names(__name__, _MODULES)
