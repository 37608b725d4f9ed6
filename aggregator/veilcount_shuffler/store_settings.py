"""What an operator loads: definitions, gateway keys, where batches go, and the key that signs.

Only added to, so that nothing changes a crowd that has begun: a load adds a file of definitions, a
key takes effect with periods that begin after its load, and so does the end of one. All of it may
be backed up; the crowds beside it never.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from veilcount_shared import Collection
from veilcount_shared.collection.compiled import parse_compiled
from veilcount_shared.compilation import compile_collections
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.oblivious_http.key_file import RelayKey

from .disk import Disk
from .errors import ShufflerError

SETTINGS, DEFINITIONS, CROWDS, WITNESS_ID = "settings", "definitions", "crowds", "witness.id"
SIGNING_KEY, GATEWAY_KEYS, TARGET = "signing.key", "gateway-keys.json", "target.json"
PUBLIC_FILE = "shuffler.pub"
MOST_CROWDS = 2  # of a period: for the apps that have the newest key, and those with the one before


@dataclass(frozen=True, slots=True)
class LoadedCollection:
    """A definition, and the day on which it was loaded."""

    collection: Collection
    since: date


@dataclass(frozen=True, slots=True)
class LoadedKey:
    """A gateway key, for periods that begin from one day on, before another."""

    start: date
    encoded: bytes
    retired: date | None = None

    @property
    def config(self) -> KeyConfig:
        """What is used of it; a key that cannot be used is never loaded."""
        config = KeyConfig.decode(self.encoded)
        if config is None:
            raise ShufflerError("a gateway key of the store has algorithms that are unknown here")
        return config

    def serves(self, first_day: date) -> bool:
        """Whether it may have a crowd in the period that begins on this day."""
        return self.start <= first_day and (self.retired is None or first_day < self.retired)


class StoreSettings:
    """The settings of one store."""

    def __init__(self, store: Path, disk: Disk) -> None:
        """Read nothing yet."""
        self.store = store
        self._disk = disk
        self._folder = store / SETTINGS

    @property
    def crowds(self) -> Path:
        """Where the crowds are."""
        return self.store / CROWDS

    @property
    def exists(self) -> bool:
        """Whether the store was made."""
        return (self._folder / TARGET).exists()

    def require(self) -> None:
        """Refuse a folder that is no store."""
        if not self.exists:
            message = f"{self.store}: no shuffler's store; `veilcount shuffler init` makes one"
            raise ShufflerError(message)

    # -- reading -----------------------------------------------------------------------------------

    @cached_property
    def signing_key(self) -> Ed25519PrivateKey:
        """What parts and records are signed with."""
        return Ed25519PrivateKey.from_private_bytes(self._read(SIGNING_KEY))

    @cached_property
    def target(self) -> tuple[str, str]:
        """The URL of the aggregator, and its API key, which may be empty."""
        document = json.loads(self._read(TARGET))
        return document["to"], document["key"]

    def collections(self) -> list[LoadedCollection]:
        """Return what was loaded, each definition once."""
        loaded: dict[str, LoadedCollection] = {}
        for file in sorted((self._folder / DEFINITIONS).glob("*.json")):
            document = json.loads(file.read_text(encoding="utf-8"))
            since = date.fromisoformat(document["since"])
            for collection in parse_compiled(document["compiled"], file.name).values():
                loaded.setdefault(collection.fingerprint, LoadedCollection(collection, since))
        return list(loaded.values())

    def gateway_keys(self) -> list[LoadedKey]:
        """Return the gateway keys, the newest first."""
        rows = json.loads(self._read(GATEWAY_KEYS))
        keys = [
            LoadedKey(
                date.fromisoformat(row["from"]),
                bytes.fromhex(row["config"]),
                date.fromisoformat(row["retired"]) if row["retired"] else None,
            )
            for row in rows
        ]
        return sorted(keys, key=lambda key: (key.start, key.encoded), reverse=True)

    @property
    def witness_id(self) -> bytes:
        """What the store knows its witness by; empty: it had none so far."""
        path = self._folder / WITNESS_ID
        return path.read_bytes() if path.exists() else b""

    def _read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    # -- writing -----------------------------------------------------------------------------------

    def make(self, target: str, api_key: str, name: str) -> None:
        """Make a store with a fresh key; its last file is the one that says that it is there."""
        if self.exists:
            raise ShufflerError(f"{self.store}: there is a store already; use `load`")
        self.store.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.store.chmod(0o700)
        for folder in (self._folder, self._folder / DEFINITIONS, self.crowds):
            self._disk.make_folder(folder)
        self._disk.create(
            self._folder / SIGNING_KEY, Ed25519PrivateKey.generate().private_bytes_raw()
        )
        public = self.signing_key.public_key().public_bytes_raw().hex()
        document = {"shuffler_key": 1, "name": name, "public": public}
        self._disk.replace(self.store / PUBLIC_FILE, json.dumps(document).encode() + b"\n")
        target_file = json.dumps({"to": target, "key": api_key}).encode()
        self._disk.replace(self._folder / TARGET, target_file)

    def add_collections(self, collections: Sequence[Collection], today: date) -> int:
        """Add the definitions that are not there yet; return how many."""
        present = {loaded.collection.fingerprint for loaded in self.collections()}
        added = [item for item in collections if item.fingerprint not in present]
        if added:
            document = {"since": today.isoformat(), "compiled": compile_collections(added)}
            number = len(list((self._folder / DEFINITIONS).glob("*.json"))) + 1
            path = self._folder / DEFINITIONS / f"{number:06}.json"
            self._disk.create(path, json.dumps(document).encode())
        return len(added)

    def set_witness_id(self, identity: bytes) -> None:
        """Know the witness from now on."""
        self._disk.create(self._folder / WITNESS_ID, identity)

    def set_keys(self, keys: Sequence[RelayKey], today: date) -> None:
        """Add keys, and end those that are not among these; periods that have begun stay."""
        path = self._folder / GATEWAY_KEYS
        loaded = {key.encoded: key for key in self.gateway_keys()} if path.exists() else {}
        earliest = today + timedelta(days=1) if loaded else date.min
        listed = {key.encoded: LoadedKey(max(key.start, earliest), key.encoded) for key in keys}
        ended = {
            encoded: key if key.retired else replace(key, retired=earliest)
            for encoded, key in loaded.items()
            if encoded not in listed
        }
        every = (listed | loaded | ended).values()
        _require_few_of_a_day(every)
        rows = [_key_row(key) for key in every]
        self._disk.replace(path, json.dumps(rows).encode())


def _require_few_of_a_day(keys: Iterable[LoadedKey]) -> None:
    """Refuse keys of which some would have no crowd in the periods that they are for."""
    numbers = Counter(key.start for key in keys if key.retired is None)
    for start, number in numbers.items():
        if number > MOST_CROWDS:
            raise ShufflerError(
                f"--gateway-keys: {number} keys from {start}: a period has {MOST_CROWDS} at most"
            )


def _key_row(key: LoadedKey) -> dict[str, str | None]:
    return {
        "from": key.start.isoformat(),
        "config": key.encoded.hex(),
        "retired": key.retired.isoformat() if key.retired else None,
    }
