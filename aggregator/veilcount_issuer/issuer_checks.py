"""Checks of an issuer for `veilcount doctor`: gmpy2, definitions, keys, store. Nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from veilcount_aggregator.errors import SigningUnavailable
from veilcount_aggregator.store import Store, store_file
from veilcount_aggregator.store.factory import engine_for
from veilcount_aggregator.store.file_permissions import exposed
from veilcount_aggregator.store.restore_lock import ledger_is_whole
from veilcount_analysis.series.series import utc_day
from veilcount_serving.findings import (
    Check,
    CheckResult,
    Finding,
    Severity,
    examine,
    ok,
    or_ok,
    warn,
    wrong,
)
from veilcount_shared import Collection
from veilcount_shared.errors import VeilcountError

from .definition_file import DefinitionFile
from .issuer import UNCERTAIN, open_publication
from .key_list_file import read_key_list
from .key_vault import LEDGER, NUMBERS
from .own_store import require_own_store
from .period_keys import PeriodKeys
from .publication import IMPORT, publication_problem, read_lines
from .signing import require_gmpy2
from .worker import IssuerSettings

TARGET = "issuer"
MAKE_KEYS = "run `veilcount issuer keys` with this --collections and this --store or --keys"
SERVE = "start `veilcount issuer serve`: it publishes what is due"
OLDER = "the ledger is an older one, and what was published stands: say so to whoever compares"
KEEP_HEIGHTS = "give --keys FOLDER: this host then keeps there what it has issued"
RESTORE = "restore them with `veilcount issuer keys import`"


@dataclass(frozen=True, slots=True)
class IssuerSubject:
    """What is examined."""

    settings: IssuerSettings
    store: Store
    now: datetime

    def collections(self) -> Iterator[tuple[Collection, PeriodKeys]]:
        """Yield each collection whose key list is there, with its keys."""
        vault = self.settings.vault(self.store)
        for file in self.settings.collections:
            for collection in DefinitionFile(file).pinned:
                yield collection, PeriodKeys(collection, *read_key_list(file, collection), vault)


def examine_issuer(settings: IssuerSettings, clock: Callable[[], datetime]) -> Iterator[Finding]:
    """Yield the findings of an issuer's settings, keys and store."""
    try:
        store = settings.open_store()
    except VeilcountError as error:
        fix = "see that it runs; a new one is made by `veilcount issuer keys`"
        yield Finding(TARGET, "store", Severity.WRONG, str(error), fix)
        return
    with closing(store):
        yield from examine(TARGET, CHECKS, IssuerSubject(settings, store, clock()))
        yield from engine_for(settings.store).examine_files(settings.store, TARGET, deep=False)


def _signer(_: IssuerSubject) -> Iterator[CheckResult]:
    try:
        require_gmpy2()
        yield ok("gmpy2 is installed: signatures take constant time")
    except SigningUnavailable as error:
        yield wrong(str(error), "install it: no issuer starts without it")


@or_ok("every collection with tokens names its keys")
def _definitions(subject: IssuerSubject) -> Iterator[CheckResult]:
    for file in subject.settings.collections:
        for collection in DefinitionFile(file).unpinned:
            yield wrong(f"{collection.name} in {file.name} has no keys yet", MAKE_KEYS)


@or_ok("only their owner may change the directories of definitions and keys")
def _directories(subject: IssuerSubject) -> Iterator[CheckResult]:
    directories = {file.absolute().parent for file in subject.settings.collections}
    if subject.settings.keys is not None:
        directories.add(subject.settings.keys)
    for directory in sorted(directories):
        yield from exposed(directory, ())


@or_ok("the key of every period to come is there, and is its own")
def _keys(subject: IssuerSubject) -> Iterator[CheckResult]:
    today = utc_day(subject.now)
    for collection, keys in subject.collections():
        missing = set(keys.missing(today))
        if missing:
            yield wrong(f"{collection.name}: {len(missing)} private keys are missing", RESTORE)
        for period in set(range(keys.unbegun(today), collection.periods)) - missing:
            keys.find(period)  # raises where it is another's, or others may read it


@or_ok("the secrets of the ledger and of the published numbers are there")
def _secret(subject: IssuerSubject) -> Iterator[CheckResult]:
    vault = subject.settings.vault(subject.store)
    if vault.read(LEDGER) is None:
        yield wrong("the secret of the ledger is missing: accounts are not known again", RESTORE)
    if vault.read(NUMBERS) is None:
        yield wrong("the key of the published numbers is missing: none is published", RESTORE)


@or_ok("the number of each period that has begun is published")
def _numbers(subject: IssuerSubject) -> Iterator[CheckResult]:
    today = utc_day(subject.now)
    publication = open_publication(subject.store, subject.settings.vault(subject.store))
    for collection, keys in subject.collections():
        if problem := publication_problem(subject.store, collection, keys.unbegun(today)):
            yield wrong(problem, IMPORT)
        elif pending := keys.unbegun(today) - len(read_lines(subject.store, keys.fingerprint)):
            yield wrong(f"{collection.name}: {pending} periods are not published", SERVE)
        for contradiction in () if keys.is_over(today) else publication.contradictions(collection):
            yield wrong(contradiction, OLDER)


def _store(subject: IssuerSubject) -> Iterator[CheckResult]:
    require_own_store(subject.store)
    health = subject.store.health()
    if not ledger_is_whole(subject.store):
        what, _, fix = UNCERTAIN.partition(". ")
        yield wrong(what, fix)
    if health.trouble or health.read_only:
        yield wrong(
            f"the store takes nothing: {health.trouble or 'read-only'}", "nothing is issued"
        )
    elif not health.durable.suffices:
        fix = "make it durable: after a crash, accounts could be issued tokens once more"
        yield wrong(f"the ledger may be lost: {health.why}", fix)
    elif subject.settings.keys is None and not store_file(subject.settings.store):
        yield warn("after a restart an older ledger on a server is not noticed", KEEP_HEIGHTS)
    else:
        yield ok("the ledger is durable")


CHECKS: dict[str, Check[IssuerSubject]] = {
    "signer": _signer,
    "definitions": _definitions,
    "directories": _directories,
    "keys": _keys,
    "secret": _secret,
    "ledger": _store,
    "numbers": _numbers,
}
