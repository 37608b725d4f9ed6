"""Publication: the signed numbers of one store, a line a period, appended when it begins.

The store has the lines, as records next to the ledger that is counted: so all workers and hosts of
an issuer append to one file, on every engine. What everybody is given is these lines and no more.

A period is published in two steps, each durable before the next. It is marked as counting, and from
then on nothing is signed for it, whatever a host's clock says; then its accounts are counted, and
the line takes the place of the mark by compare-and-set. A process that is killed in between leaves
a mark, which any other one goes on from; of two that count, one line is written.

A line is never changed. A store that may have lost lines (it was restored from a backup, or is new
although periods have begun) publishes nothing, since it would publish a second number for a period,
until the lines are imported from a copy of the published file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.store import Record, RecordStore, Store
from veilcount_aggregator.store.records import update_records
from veilcount_aggregator.store.restore_lock import KIND as LOCK
from veilcount_aggregator.store.restore_lock import RELEASES, release_lock_reason
from veilcount_serving.errors import SettingsError
from veilcount_shared import Collection
from veilcount_shared.schedule import period_start

from .issued_numbers import START, IssuedNumber, encode_numbers, hash_line, verify_numbers
from .ledger import IssuanceLedger

KIND = "issued-numbers:"
COUNTING = b"counting"  # in the place of a line: the period has begun, its accounts are not counted
COMPLETE = "issued-numbers-complete"  # of collections whose lines are all in this store
IMPORT = "import what was published, if anything: `veilcount issuer issued import [FILE]...`"


@dataclass(frozen=True, slots=True)
class Publication:
    """The lines of all collections of one store, appended under one key."""

    store: Store
    ledger: IssuanceLedger
    key: Ed25519PrivateKey

    def file(self, fingerprint: str) -> bytes:
        """Return the file of a collection as everybody gets it."""
        return encode_numbers(read_lines(self.store, fingerprint))

    def begun(self, fingerprint: str, periods: Iterable[int]) -> set[int]:
        """Return which of these periods have begun by the store, whatever a clock says."""
        names = {_name(period): period for period in periods}
        return {names[name] for name in self.store.records_at(KIND + fingerprint, list(names))}

    def publish(self, collection: Collection, unbegun: int) -> None:
        """Publish the periods before `unbegun` that lack a line; StoreUnfit: lines may be lost."""
        if unbegun == 0:  # no line can be missing: there was none yet
            self.store.change_record(Record(COMPLETE, collection.fingerprint, b""), None)
        if problem := publication_problem(self.store, collection, unbegun):
            raise StoreUnfit(f"{problem}: {IMPORT}")
        lines = read_lines(self.store, collection.fingerprint)
        if len(lines) >= unbegun:
            return
        for period in range(len(lines), unbegun):
            self._change(collection.fingerprint, period, COUNTING, None)
        accounts = self.ledger.accounts(collection.fingerprint)
        for period in range(len(lines), unbegun):
            self._append(collection, period, accounts[period])

    def contradictions(self, collection: Collection) -> Iterator[str]:
        """Yield where the ledger has fewer accounts than were published: it is an older one."""
        lines = read_lines(self.store, collection.fingerprint)
        accounts = self.ledger.accounts(collection.fingerprint) if lines else {}
        for number in verify_numbers(encode_numbers(lines), self.key.public_key()):
            if (counted := accounts.get(number.period, 0)) < number.accounts:
                yield (
                    f"{collection.name}: period {number.period} was published with"
                    f" {number.accounts} accounts, and the ledger has {counted}"
                )

    def import_lines(self, file: Path, names: Mapping[str, str]) -> None:
        """Add the lines of a published file that are not in the store.

        `names` are the names of the issuer's collections by fingerprint.
        """
        for number in verify_numbers(file.read_bytes(), self.key.public_key()):
            if number.collection not in names:
                fix = "it is of no collection in --collections: give its definitions file too"
                raise SettingsError("FILE", str(file), fix)
            self._import(number, file, names[number.collection])

    def resume(self, collections: Iterable[Collection]) -> None:
        """Publish again: no published line of these collections is missing."""
        complete = [Record(COMPLETE, collection.fingerprint, b"") for collection in collections]
        unlocked = Record(LOCK, RELEASES, None)
        update_records(self.store, lambda: ([*complete, unlocked], None))

    def _append(self, collection: Collection, period: int, accounts: int) -> None:
        lines = read_lines(self.store, collection.fingerprint)
        if len(lines) != period:
            return  # another process has been faster
        number = IssuedNumber(
            accounts=accounts,
            before=hash_line(lines[-1]) if lines else START,
            begins=period_start(collection, period).date(),
            collection=collection.fingerprint,
            period=period,
        )
        self._change(collection.fingerprint, period, number.sign(self.key).line(), COUNTING)

    def _import(self, number: IssuedNumber, file: Path, collection: str) -> None:
        line, name = number.line(), _name(number.period)
        for before in (None, COUNTING):
            if self._change(number.collection, number.period, line, before):
                return
        if self.store.records_at(KIND + number.collection, [name])[name] != line:
            fix = (
                f"the store has another line for period {number.period} of {collection}, signed by"
                " this issuer as well: whoever has both can prove it"
            )
            raise SettingsError("FILE", str(file), fix)

    def _change(self, fingerprint: str, period: int, line: bytes, before: bytes | None) -> bool:
        return self.store.change_record(Record(KIND + fingerprint, _name(period), line), before)


def publication_problem(store: RecordStore, collection: Collection, unbegun: int) -> str | None:
    """Return why a store may lack lines of the periods before `unbegun`; None: it has them."""
    if unbegun and release_lock_reason(store):
        return f"{collection.name}: the store was restored, and may lack published lines"
    if unbegun and not store.records_at(COMPLETE, [collection.fingerprint]):
        return f"{collection.name}: periods had begun before the issuer ran with this store"
    return None


def read_lines(store: RecordStore, fingerprint: str) -> list[bytes]:
    """Return the published lines of a collection, in the order of its periods."""
    records = store.records(KIND + fingerprint)
    return [records[name] for name in sorted(records) if records[name] != COUNTING]


def _name(period: int) -> str:
    return f"{period:05}"
