"""A store from within: can it be opened, does it keep what it takes, and what does it hold?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from urllib.parse import urlsplit

from veilcount_shared.errors import VeilcountError

from ..errors import SettingsError, StoreUnavailable
from ..settings import Settings
from ..store import Durable, open_store
from ..store.copying import leaving
from . import asked, books, clocks, releasing
from .finding import Finding, Look, State, Told, examine, ok, warn, wrong
from .intake import verdicts
from .keyed import keys
from .sqlite import DEEP as SQLITE_DEEP
from .sqlite import SQLITE
from .stored import Stored

OF = "store"
OPENED = "opened"


def examine_store(
    settings: Settings, clock: Callable[[], datetime], *, deep: bool
) -> Iterator[Finding]:
    """Yield what is found of the store at a URL; where it cannot be opened, what can be seen."""
    scheme = urlsplit(settings.store).scheme
    if scheme.startswith("redis"):
        # Imported here: who runs on SQLite never loads Redis.
        from .redis import ANSWERS, examine_redis  # noqa: PLC0415

        found = list(examine_redis(settings.store, clock))
        yield from found
        if any(each.check == ANSWERS for each in found):
            return
    try:
        store = open_store(settings.store)
    except SettingsError:
        raise
    except VeilcountError as error:
        yield Finding(OF, OPENED, State.WRONG, str(error), _mended(error))
        return
    with closing(store):
        stored = Stored(settings, store, clock())
        yield Finding(OF, OPENED, State.OK, "it can be read and written", "")
        if scheme == "sqlite":
            yield from examine(OF, SQLITE | (SQLITE_DEEP if deep else {}), settings.store)
        yield from examine(OF, STORED | (DEEP if deep else {}), stored)


def _mended(error: VeilcountError) -> str:
    if isinstance(error, StoreUnavailable):
        return "see that it runs, that this machine may reach it, and that the URL is right"
    return "do what it says; until then no aggregator can serve from it"


def _taking(stored: Stored) -> Iterator[Told]:
    if trouble := stored.health.trouble:
        yield wrong(f"the store cannot be written: {trouble}", "reports wait on devices meanwhile")
        return
    if not stored.health.fenced:
        yield ok("no fence: reports are taken")
        return
    left = leaving(stored.store)
    where = f", copied to {left.where}" if left else ""
    yield wrong(
        f"fenced{where}: no report is taken",
        "start the servers on the copy; only where the copy was given up and is destroyed:"
        " `veilcount store unfence`",
    )


def _durable(stored: Stored) -> Iterator[Told]:
    health = stored.health
    for each in health.weaknesses:
        finding = wrong if each.blocks else warn
        yield finding(each.what, "`veilcount store check` names the server and the command")
    if any(each.blocks for each in health.weaknesses):
        return
    if health.durable is Durable.YES:
        yield ok(health.why)
    elif health.durable is Durable.UNKNOWN:
        yield warn(health.why, "ask whoever runs it, or allow CONFIG GET to this user")
    else:
        yield wrong(
            f"{health.why}: a power cut takes acknowledged reports",
            "leave durability=relaxed out of the store's URL",
        )


#: what is looked at in a store of any engine
STORED: dict[str, Look[Stored]] = {
    "taking reports": _taking,
    "durable": _durable,
    "definitions": asked.definitions,
    "remarks": asked.remarks,
    "room": asked.room,
    "memory of counters": asked.memory,
    "keys": keys,
    "releases": releasing.releases_open,
    "journal": releasing.journal,
    "retention": clocks.retention,
    "journals": releasing.journals,
    "verdicts": verdicts,
}
DEEP: dict[str, Look[Stored]] = {"books": books.books}
