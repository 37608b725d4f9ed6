"""Checks of a store: access, durability, definitions, keys, batches, releases and retention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, datetime, timedelta
from importlib.util import find_spec

from veilcount_analysis.series.series import Series
from veilcount_analysis.text.arrow_tables import has_arrow
from veilcount_serving.errors import SettingsError
from veilcount_serving.findings import (
    UNREACHABLE,
    Check,
    CheckResult,
    Finding,
    Severity,
    examine,
    ok,
    problems_or_ok,
    warn,
    wrong,
)
from veilcount_shared.errors import VeilcountError
from veilcount_shared.installing import install

from ...errors import StoreUnavailable
from ...records.api_keys import ApiKey, Role
from ...records.shuffled_batches.batch_counts import BATCH, RECORD_DIFFERS, SECOND_BATCH
from ...records.shuffled_batches.batch_states import batch_states
from ...records.shuffler_keys import load_shuffler_keys
from ...releases.budget_ledger import load_releases
from ...releases.privacy_filter import PrivacyFilter
from ...releases.release_journal import ReleaseJournal
from ...releases.store_confirmation import registered_journals, unconfirmed_journals
from ...settings import Settings
from ...store import DurabilityState, open_store
from ...store.acknowledged import FIX, LACKS_COMMITS
from ...store.engine import RESPONDS
from ...store.factory import engine_for
from ...store.migrate import outgoing_copy
from ...store.restore_lock import release_lock_reason
from ...store.retention.retention_guard import needs_confirmation, read_confirmed_day
from . import consistency, definition_checks
from .store_snapshot import StoreSnapshot
from .verdict_checks import verdicts

#: how long a batch may take from the end of its grace: its shuffler may be down for a night
SOON = timedelta(days=2)
ASK = "ask whoever runs the shuffler: `veilcount shuffler status` there says why"


def shuffled_batches(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check that a shuffler is trusted, and that each batch has come whole and once."""
    by_shuffler = [
        series for series in stored.catalog.series.values() if series.collection.batch is not None
    ]
    message = f"{len(by_shuffler)} definitions travel by shuffler; no batch is missing"
    yield from problems_or_ok(_problems(stored, by_shuffler), message)


def _problems(stored: StoreSnapshot, by_shuffler: list[Series]) -> Iterator[CheckResult]:
    counts = stored.store.service_counts()
    refused = {counter.word for counter in counts if counter.what == BATCH and by_shuffler}
    if RECORD_DIFFERS in refused:
        why = "a shuffler's record was refused: its batch is another than the record states"
        yield wrong(why, f"believe neither: {ASK}")
    if SECOND_BATCH in refused:
        why = "a second batch was refused: who received both sees what is in both"
        yield wrong(
            why, "stop its shuffler: the store was restored from a backup, or there are two"
        )
    keys = load_shuffler_keys(stored.store)
    for series in by_shuffler:
        name = series.collection.name
        if keys.trusted(name, stored.today) is None:
            yield wrong(f"{name}: no shuffler is trusted", "`veilcount shuffler trust FILE`")
        for batch in batch_states(stored.store, stored.store, series, stored.now - SOON):
            if not batch.healthy:
                yield warn(f"{name}, period {batch.period}: {batch.text}", ASK)


TARGET = "store"
OPENED = "opened"


def examine_store(
    settings: Settings, clock: Callable[[], datetime], *, deep: bool
) -> Iterator[Finding]:
    """Yield the findings of the store at a URL, as far as it can be opened."""
    engine = engine_for(settings.store)
    findings = list(engine.examine_servers(settings.store, clock))
    yield from findings
    if any(finding.check == RESPONDS for finding in findings):
        return
    try:
        store = open_store(settings.store, heights=settings.heights)
    except SettingsError:
        raise
    except VeilcountError as error:
        yield Finding(TARGET, OPENED, Severity.WRONG, str(error), _fix(error))
        return
    with closing(store):
        stored = StoreSnapshot(settings, store, clock())
        yield Finding(TARGET, OPENED, Severity.OK, "it can be read and written", "")
        yield from engine.examine_files(settings.store, TARGET, deep=deep)
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


def complete(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check that the store has everything that this host has acknowledged."""
    _ = stored.health  # compares
    losses = stored.store.losses()
    for loss in losses:
        yield wrong(loss, FIX)
    if not losses:
        yield ok("no commit is missing that this host has acknowledged")


def _durable(stored: StoreSnapshot) -> Iterator[CheckResult]:
    health = stored.health
    for blocker in (weakness for weakness in health.weaknesses if weakness.what != LACKS_COMMITS):
        finding = wrong if blocker.blocks else warn
        yield finding(blocker.what, "`veilcount store check` names the server and the command")
    if any(weakness.blocks for weakness in health.weaknesses):
        return
    if health.durable.suffices:
        yield ok(health.why)
    elif health.durable is DurabilityState.UNKNOWN:
        yield warn(health.why, "ask its operator, or allow CONFIG GET for this user")
    else:
        yield wrong(
            f"{health.why}: a power failure loses acknowledged reports",
            "remove durability=relaxed from the store's URL",
        )


UNUSED = timedelta(days=30)
SETTLED = timedelta(days=7)  # an older admin's key is used for more than the set-up
RECENT = timedelta(days=1)


def api_keys(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check the valid keys."""
    ring = stored.api_keys
    valid = [key for key in ring.keys.values() if not key.revoked]
    devices = "any device" if ring.intake_is_open else "devices with a key"
    message = f"{len(valid)} valid keys; reports are accepted from {devices}"
    yield from problems_or_ok(
        _key_problems(valid, stored.today, open_=ring.intake_is_open), message
    )


def _key_problems(valid: list[ApiKey], today: date, *, open_: bool) -> Iterator[CheckResult]:
    roles = {key.role for key in valid}
    if Role.ADMIN not in roles:
        yield warn("no admin key: nobody can push over HTTP", "`veilcount init --key`")
    if not open_ and Role.DEVICE not in roles:
        yield warn(
            "all device keys are revoked: no device can report",
            "`veilcount keys create --role device`, and ship the key with the app",
        )
    for key in valid:
        yield from _key(key, today)


def _key(key: ApiKey, today: date) -> Iterator[CheckResult]:
    age = today - date.fromisoformat(key.created)
    name = f"{key.role} key {key.id}" + (f" ({key.label})" if key.label else "")
    if not key.used and age >= UNUSED:
        yield warn(
            f"{name} was made on {key.created} and never used", f"`veilcount keys revoke {key.id}`"
        )
    elif key.role is Role.ADMIN and age >= SETTLED and _used_recently(key, today):
        yield warn(
            f"{name} was used on {key.used}: an admin's key can change definitions",
            "if it is only used for reading: `veilcount keys create --role analyst`",
        )


def _used_recently(key: ApiKey, today: date) -> bool:
    return bool(key.used) and today - date.fromisoformat(key.used) <= RECENT


RETIRE = (
    "start their hosts; only if one is gone for good: `veilcount store retire-journal ID`, with"
    " its file as --journal if it can be read"
)
UNLOCK = "`veilcount store unlock --journal FILE`, with the journal that releases were written to"


def release_lock(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check whether releases are locked."""
    why = release_lock_reason(stored.store)
    if why:
        yield wrong(f"locked: {why}", UNLOCK)
    else:
        yield ok("not locked")


def journal(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check that the journal exists, is trustworthy and agrees with the store."""
    if not stored.catalog.releases:
        yield ok("none is needed: no collection is central")
    elif stored.journal is None:
        yield warn(
            "no journal is set; without one, the server makes no releases",
            "give --journal FILE, here and to `veilcount serve`",
        )
    else:
        yield from _agrees(stored, stored.journal)


def extras(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check that the optional packages are installed here that releases and exports need."""
    if stored.catalog.releases and find_spec("opendp") is None:
        yield warn(
            "OpenDP is not installed here: central collections are collected, but not released",
            f"{install('central')}, wherever `veilcount serve` runs",
        )
    elif not has_arrow():
        yield ok(f"no exports as Arrow or Parquet without {install('arrow')}")
    else:
        yield ok("what the definitions and all exports need is installed")


def journals(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check that the journals of all hosts have confirmed the store's incarnation."""
    known, waiting = registered_journals(stored.store), unconfirmed_journals(stored.store)
    for missing in waiting:
        last = f"last confirmed it at {missing.at}" if missing.at else "never confirmed it"
        yield warn(f"journal {missing} {last}: releases wait for it", RETIRE)
    if not waiting:
        listed = ": " + ", ".join(map(str, known.values())) if known else ""
        yield ok(f"{len(known)} registered, all have confirmed the store{listed}")


def _agrees(stored: StoreSnapshot, journal: ReleaseJournal) -> Iterator[CheckResult]:
    forgotten = PrivacyFilter(stored.store, journal).forgotten()
    lines, kept = len(journal.lines()), len(load_releases(stored.store))
    if forgotten:
        yield wrong(
            f"{journal.path} has {len(forgotten)} releases that the store lacks:"
            " their budget would be spent twice",
            UNLOCK,
        )
    elif kept and not lines:
        yield wrong(
            f"{journal.path} is empty or missing, and the store has {kept} releases",
            "give the file that the server writes to as --journal; if it was lost, back up the"
            " store now: it is the only record of the spent budget",
        )
    else:
        yield ok(f"{journal.path}: its {lines} releases are all in the store")


def retention(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check that the day by which rows are dropped is confirmed."""
    confirmed, today = read_confirmed_day(stored.store), stored.today
    if confirmed is None:
        yield ok("no server has confirmed a day yet; one does within 24 hours")
    elif needs_confirmation(confirmed, today):
        yield warn(
            f"rows are not dropped: the last confirmed day is {confirmed.day},"
            f" {(today - confirmed.day).days} days before this machine's",
            "if this machine's clock is right: `veilcount store confirm-clock`, or let a server run"
            " for 24 hours",
        )
    elif confirmed.day > today:
        yield warn(
            f"the confirmed day, {confirmed.day}, is in the future: this clock is or was wrong",
            "compare this machine's clock with others; a server with a right clock resets the day",
        )
    else:
        yield ok(f"rows are dropped by the confirmed day, {confirmed.day}")


#: the checks of a store on any engine
STORED: dict[str, Check[StoreSnapshot]] = {
    "accepts reports": _accepts,
    "durable": _durable,
    "complete": complete,
    "definitions": definition_checks.definitions,
    "remarks": definition_checks.remarks,
    "published": definition_checks.published,
    "new pseudonyms": definition_checks.new_pseudonyms,
    "floods": definition_checks.floods,
    "memory of counters": definition_checks.memory,
    "keys": api_keys,
    "releases": release_lock,
    "extras": extras,
    "journal": journal,
    "retention": retention,
    "journals": journals,
    "verdicts": verdicts,
    "batches": shuffled_batches,
}
DEEP: dict[str, Check[StoreSnapshot]] = {"consistency": consistency.counters_agree}
