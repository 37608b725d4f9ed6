"""Checks of a store: access, durability, definitions, keys, releases and retention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from urllib.parse import urlsplit

from veilcount_shared.errors import VeilcountError

from ..errors import SettingsError, StoreUnavailable
from ..settings import Settings
from ..store import DurabilityState, open_store
from ..store.migrate import outgoing_copy
from . import clock_skew, consistency, definition_checks, release_checks
from .api_key_checks import api_keys
from .finding import UNREACHABLE, Check, CheckResult, Finding, Severity, examine, ok, warn, wrong
from .sqlite_checks import DEEP as SQLITE_DEEP
from .sqlite_checks import SQLITE
from .store_snapshot import StoreSnapshot
from .verdict_checks import verdicts

TARGET = "store"
OPENED = "opened"


def examine_store(
    settings: Settings, clock: Callable[[], datetime], *, deep: bool
) -> Iterator[Finding]:
    """Yield the findings of the store at a URL, as far as it can be opened."""
    scheme = urlsplit(settings.store).scheme
    if scheme.startswith("redis"):
        # Imported here: a deployment on SQLite does not load Redis.
        from .redis_checks import RESPONDS, examine_redis  # noqa: PLC0415

        found = list(examine_redis(settings.store, clock))
        yield from found
        if any(each.check == RESPONDS for each in found):
            return
    try:
        store = open_store(settings.store)
    except SettingsError:
        raise
    except VeilcountError as error:
        yield Finding(TARGET, OPENED, Severity.WRONG, str(error), _fix(error))
        return
    with closing(store):
        stored = StoreSnapshot(settings, store, clock())
        yield Finding(TARGET, OPENED, Severity.OK, "it can be read and written", "")
        if scheme == "sqlite":
            yield from examine(TARGET, SQLITE | (SQLITE_DEEP if deep else {}), settings.store)
        yield from examine(TARGET, STORED | (DEEP if deep else {}), stored)


def _fix(error: VeilcountError) -> str:
    if isinstance(error, StoreUnavailable):
        return UNREACHABLE
    return "follow the message; until then no aggregator can use this store"


def _accepts(stored: StoreSnapshot) -> Iterator[CheckResult]:
    if trouble := stored.health.trouble:
        yield wrong(f"the store cannot be written: {trouble}", "reports wait on devices meanwhile")
        return
    if not stored.health.read_only:
        yield ok("not read-only: reports are accepted")
        return
    left = outgoing_copy(stored.store)
    where = f", copied to {left.where}" if left else ""
    yield wrong(
        f"read-only{where}: reports are not accepted",
        "start the servers on the copy; only if the copy was abandoned and destroyed:"
        " `veilcount store allow-writes`",
    )


def _durable(stored: StoreSnapshot) -> Iterator[CheckResult]:
    health = stored.health
    for each in health.weaknesses:
        finding = wrong if each.blocks else warn
        yield finding(each.what, "`veilcount store check` names the server and the command")
    if any(each.blocks for each in health.weaknesses):
        return
    if health.durable is DurabilityState.YES:
        yield ok(health.why)
    elif health.durable is DurabilityState.UNKNOWN:
        yield warn(health.why, "ask its operator, or allow CONFIG GET for this user")
    else:
        yield wrong(
            f"{health.why}: a power failure loses acknowledged reports",
            "remove durability=relaxed from the store's URL",
        )


#: the checks of a store on any engine
STORED: dict[str, Check[StoreSnapshot]] = {
    "accepts reports": _accepts,
    "durable": _durable,
    "definitions": definition_checks.definitions,
    "remarks": definition_checks.remarks,
    "new pseudonyms": definition_checks.new_pseudonyms,
    "memory of counters": definition_checks.memory,
    "keys": api_keys,
    "releases": release_checks.release_lock,
    "journal": release_checks.journal,
    "retention": clock_skew.retention,
    "journals": release_checks.journals,
    "verdicts": verdicts,
}
DEEP: dict[str, Check[StoreSnapshot]] = {"consistency": consistency.counters_agree}
