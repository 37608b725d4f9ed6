"""The protocol of device and aggregator: mechanisms, definitions, schedule and wire formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy_names import lazy_names

if TYPE_CHECKING:
    from .collection import Collection as Collection
    from .collection import load_collections as load_collections
    from .collection import parse_collections as parse_collections
    from .collection.lint import lint as lint
    from .mechanisms import Selection as Selection
    from .mechanisms import select_mechanism as select_mechanism
    from .randomness import RandomSource as RandomSource
    from .randomness import SystemRandomSource as SystemRandomSource

_MODULES = {
    **dict.fromkeys(("Collection", "lint", "load_collections", "parse_collections"), ".collection"),
    **dict.fromkeys(("Selection", "select_mechanism"), ".mechanisms"),
    **dict.fromkeys(("RandomSource", "SystemRandomSource"), ".randomness"),
}
__all__ = list(_MODULES)
__getattr__ = lazy_names(__name__, _MODULES)
