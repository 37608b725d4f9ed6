"""An issuer's store is its own: in the aggregator's, one backup would hold both sides."""

from __future__ import annotations

from veilcount_aggregator.records.definitions import SOURCE
from veilcount_aggregator.store import Store
from veilcount_serving.errors import SettingsError


def require_own_store(store: Store) -> Store:
    """Return the store, or refuse one that an aggregator's definitions are in."""
    if store.record_keys(SOURCE):
        fix = "it is an aggregator's: give the issuer a store of its own"
        raise SettingsError("--store", "(this store)", fix)
    return store
