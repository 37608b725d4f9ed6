"""Endpoints of liveness and readiness, for whoever operates the service."""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeoutError

import msgspec

from veilcount_shared.errors import VeilcountError

from ...errors import StoreFull, StoreUnfit, StoreWentBack
from ...store import store_probe
from ...store.acknowledged import LACKS_COMMITS
from ...store.retention.clock_guard import ClockReading
from ...store.store_probe import StoreProbe
from .endpoint import Api, endpoint
from .schemas import Liveness, Readiness

ALIVE_PATH = "/healthz"
READY_PATH = "/readyz"


@endpoint("GET", ALIVE_PATH, returns=Liveness)
def show_liveness(api: Api) -> Liveness:  # noqa: ARG001 - every view gets it
    """The process responds; nothing else is checked."""
    return Liveness("ok")


@endpoint("GET", READY_PATH, returns=Readiness, statuses=(200, 503))
def show_readiness(api: Api) -> tuple[Readiness, int]:
    """Whether at least one shard accepts reports and keeps them.

    The store responds within two seconds and is not read-only.
    """
    state = refuse_doubted_clock(readiness(api.probe), api.aggregator.guard.reading)
    return state, 200 if state.ready else 503


def readiness(probe: StoreProbe) -> Readiness:
    """Return whether the store accepts reports, and if not, why."""
    try:
        health = probe.health()
    except FutureTimeoutError:
        return Readiness(False, "", f"the store did not respond within {store_probe.SECONDS:g} s")
    except VeilcountError as error:
        return Readiness(False, "", f"the store cannot be used: {_kind(error)}")
    if health.blocked:
        return Readiness(False, health.durable, f"no report is accepted: {health.why}")
    why = ""
    if health.read_only:
        why = "the store is read-only: it was migrated, and reports belong to the new one"
    elif health.trouble:
        why = f"the store cannot be written: {health.trouble}"
    return Readiness(not why, health.durable, why or health.why, health.serving, health.shards)


def _kind(error: VeilcountError) -> str:
    """Return the kind of an error, not its message, which may hold an address: anyone reads it."""
    if isinstance(error, StoreFull):
        return "it is full"
    if isinstance(error, StoreWentBack):
        return f"{LACKS_COMMITS}; the log says which"
    if isinstance(error, StoreUnfit):
        return "it does not fit this server; the log says why"
    return "it cannot be reached; the log says why"


def refuse_doubted_clock(store: Readiness, clock: ClockReading) -> Readiness:
    """Return the store's readiness; not ready while the host's clock is in doubt."""
    if not (store.ready and clock.doubted):
        return store
    why = f"{clock}: no report is accepted until it is right"
    return msgspec.structs.replace(store, ready=False, why=why)


#: responses of a process that has not opened its store yet
ALIVE = msgspec.json.encode(Liveness("ok"))
NOT_OPEN = msgspec.json.encode(Readiness(False, "", "the store is not open yet"))
