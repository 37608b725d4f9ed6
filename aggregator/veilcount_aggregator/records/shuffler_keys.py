"""The shufflers that are trusted: whose signature a batch needs, collection by collection.

Two shufflers of one crowd would be two batches, and who receives both sees what is in both. So a
change takes effect with the first period that has not begun: no crowd has two shufflers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import Annotated, Literal

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from veilcount_serving.errors import SettingsError

from ..store import Record, Records, RecordStore
from ..store.records import update_records
from .audit_log import audit_record

KIND = "shuffler-key"
ANY = ""  # every collection without a shuffler of its own
ALWAYS = date.min


@dataclass(frozen=True, slots=True)
class ShufflerKey:
    """A shuffler that is trusted for the periods that begin on a day or later."""

    collection: str
    start: str
    name: str
    public: str  # Ed25519, in hexadecimal

    def record(self) -> Record:
        """Return its record."""
        return Record(KIND, f"{self.collection}/{self.start}", json.dumps(asdict(self)).encode())


@dataclass(frozen=True, slots=True)
class ShufflerKeys:
    """All trusted shufflers of a store."""

    keys: Sequence[ShufflerKey]

    @classmethod
    def from_records(cls, records: Records) -> ShufflerKeys:
        """Parse what the store holds."""
        return cls([ShufflerKey(**json.loads(value)) for value in records.values()])

    def trusted(self, collection: str, period_start: date) -> bytes | None:
        """Return the public key for a period; None: no shuffler is trusted."""
        effective = [
            key
            for key in self.keys
            if key.collection in {collection, ANY} and date.fromisoformat(key.start) <= period_start
        ]
        if not effective:
            return None
        newest = max(effective, key=lambda key: (key.collection != ANY, key.start))
        return bytes.fromhex(newest.public)


class _KeyFile(msgspec.Struct):
    shuffler_key: Literal[1]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=60, pattern="^[ -~]+$")]
    public: str


def load_shuffler_keys(store: RecordStore) -> ShufflerKeys:
    """Return the trusted shufflers of a store."""
    return ShufflerKeys.from_records(store.records(KIND))


def read_key_file(text: str | bytes) -> tuple[str, str]:
    """Return name and public key of the file that `veilcount shuffler init` writes."""
    try:
        file = msgspec.json.decode(text, type=_KeyFile)
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(file.public))
    except (msgspec.MsgspecError, ValueError) as error:
        fix = "give the file of the public key that `veilcount shuffler init` writes"
        raise SettingsError("shuffler key", "", fix) from error
    return file.name, file.public


def trust_shuffler(
    store: RecordStore, text: str | bytes, collection: str, now: datetime
) -> ShufflerKey:
    """Trust a shuffler for a collection (ANY: for all that have none of their own).

    The first one is trusted for every period; another one from the next day on.
    """
    name, public = read_key_file(text)

    def decide() -> tuple[Sequence[Record], ShufflerKey]:
        all_keys = load_shuffler_keys(store).keys
        current = [key for key in all_keys if key.collection in {collection, ANY}]
        start = now.date() + timedelta(days=1) if current else ALWAYS
        key = ShufflerKey(collection, start.isoformat(), name, public)
        act = audit_record(store, now, "cli", "shuffler trust", f"{name} {collection}".strip())
        return [key.record(), act], key

    return update_records(store, decide)
