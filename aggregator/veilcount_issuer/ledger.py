"""The issuance ledger: what each account was issued, so that no account exceeds its caps.

An account's record of one collection holds, for each period, a mark for each blinded message that
was signed. The caps are the collection's: so many answers a period, in so many periods. The same
message again is in the ledger already, and free.

Records are found under a keyed hash of account and collection, and marks are keyed hashes too: the
store alone shows neither an account, nor that two records of two collections are one account's, nor
a message. Marks of a period are removed once it has begun, when the account comes next: nothing
more is issued for it then, whatever the clock of another host says. That it was used stays, since
the number of periods is capped as well, and the accounts of a period are counted and published.

A record is changed by compare-and-set before the signature leaves. What is there already is written
again: a reply is only given for what the store has confirmed.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import msgspec

from veilcount_aggregator.errors import OverCap, StoreUnavailable
from veilcount_aggregator.store import Record, RecordStore
from veilcount_aggregator.store.records import TRIES, update_records
from veilcount_shared import Collection

KIND = "issued:"
MARK_BYTES = 16  # nobody can search for a collision: they are keyed
DELETED_AT_ONCE = 500
READ_AT_ONCE = 1000

Issued = Mapping[int, Sequence[bytes]]
_decoder = msgspec.msgpack.Decoder(dict[int, list[bytes]])


class SlotRequest(NamedTuple):
    """A blinded message to be signed under the key of a period."""

    period: int
    blinded: bytes


@dataclass(frozen=True, slots=True)
class Caps:
    """What one account may be issued of a collection."""

    per_period: int
    periods: int

    @classmethod
    def from_collection(cls, collection: Collection) -> Caps:
        """Return the caps of a definition."""
        return cls(collection.per_day, collection.answering)

    def admit(self, issued: Issued, marks: Sequence[tuple[int, bytes]]) -> dict[int, list[bytes]]:
        """Return the record with these marks, each once; OverCap: that would exceed a cap."""
        grown = {period: list(before) for period, before in issued.items()}
        requested = {period for period, _ in marks}
        for period, mark in marks:
            if mark not in grown.setdefault(period, []):
                grown[period].append(mark)
        over = any(len(grown[period]) > self._most(issued, period) for period in requested)
        if over or len(grown) > self.periods:
            left = {
                period: self._most(issued, period) - len(issued.get(period, ()))
                for period in sorted(requested)
            }
            raise OverCap(left, self.periods - len(issued))
        return grown

    def _most(self, issued: Issued, period: int) -> int:
        """Return the most tokens of a period: none once its marks were removed, by any clock."""
        return 0 if period in issued and not issued[period] else self.per_period


class IssuanceLedger:
    """The ledger of one store, under one secret."""

    def __init__(self, store: RecordStore, secret: bytes) -> None:
        self._store = store
        self._secret = secret

    def record(
        self, account: str, collection: Collection, requests: Sequence[SlotRequest], unbegun: int
    ) -> None:
        """Record durably what is to be signed, all or nothing; OverCap: nothing was recorded.

        `unbegun` is the first period that has not begun: marks of those before it are removed.
        """
        fingerprint, caps = collection.fingerprint, Caps.from_collection(collection)
        kind, key = KIND + fingerprint, self._hash("account", fingerprint, account.encode())
        marks = [(request.period, self._mark(fingerprint, request)) for request in requests]
        for _ in range(TRIES):
            record = self._store.records_at(kind, [key]).get(key)
            issued = _without_marks(_decoder.decode(record) if record else {}, unbegun)
            changed = msgspec.msgpack.encode(caps.admit(issued, marks))
            if self._store.change_record(Record(kind, key, changed), record):
                return
        raise StoreUnavailable("ledger: too many requests of one account at once; retry")

    def accounts(self, fingerprint: str) -> Counter[int]:
        """Count the accounts that have each period in their record; read in parts.

        Again if a record was erased meanwhile, and so has another name.
        """
        for _ in range(TRIES):
            generation = self._store.generation()
            numbers = self._accounts(fingerprint)
            if self._store.generation() == generation:
                return numbers
        raise StoreUnavailable("ledger: records are erased while they are counted; retry")

    def _accounts(self, fingerprint: str) -> Counter[int]:
        kind = KIND + fingerprint
        names = sorted(self._store.record_keys(kind))
        numbers = Counter[int]()
        for first in range(0, len(names), READ_AT_ONCE):
            part = self._store.records_at(kind, names[first : first + READ_AT_ONCE])
            for content in part.values():
                numbers.update(_decoder.decode(content).keys())
        return numbers

    def erase(self, account: str, fingerprint: str) -> bool:
        """Take an account's name off its record of a collection; False: it has none.

        What stays has a random name and no mark: the number of accounts of each period is final or
        will be, and must not change. The same account would have its caps once more.
        """
        kind, key = KIND + fingerprint, self._hash("account", fingerprint, account.encode())
        return update_records(self._store, partial(self._renamed, kind, key))

    def _renamed(self, kind: str, key: str) -> tuple[Sequence[Record], bool]:
        content = self._store.records_at(kind, [key]).get(key)
        if content is None:
            return (), False
        periods = msgspec.msgpack.encode(dict.fromkeys(_decoder.decode(content), ()))
        nameless = secrets.token_hex(MARK_BYTES)
        return (Record(kind, key, None), Record(kind, nameless, periods)), True

    def delete(self, fingerprint: str) -> None:
        """Delete all records of a collection that is over."""
        kind = KIND + fingerprint
        gone = [Record(kind, key, None) for key in self._store.record_keys(kind)]
        for first in range(0, len(gone), DELETED_AT_ONCE):
            part = gone[first : first + DELETED_AT_ONCE]
            update_records(self._store, partial(_decided, part))

    def _mark(self, fingerprint: str, request: SlotRequest) -> bytes:
        named = request.period.to_bytes(2, "big") + request.blinded
        return bytes.fromhex(self._hash("blinded", fingerprint, named))

    def _hash(self, purpose: str, fingerprint: str, content: bytes) -> str:
        message = f"{purpose} {fingerprint} ".encode() + content
        return hmac.digest(self._secret, message, hashlib.sha256)[:MARK_BYTES].hex()


def _without_marks(issued: Issued, unbegun: int) -> Issued:
    return {period: marks if period >= unbegun else () for period, marks in issued.items()}


def _decided(records: Sequence[Record]) -> tuple[Sequence[Record], None]:
    return records, None
