"""An issuer's store is its own: in the aggregator's, one backup would hold both sides."""

from __future__ import annotations

from ..catalog.definitions import SOURCE
from ..errors import SettingsError
from ..store import Store


def require_own_store(store: Store) -> Store:
    """Return the store, or refuse one that an aggregator's definitions are in."""
    if store.record_count(SOURCE):
        fix = "it is an aggregator's: give the issuer a store of its own"
        raise SettingsError("--store", "(this store)", fix)
    return store
