"""The gateway's keys, to which clients encrypt what travels through a relay: made, read, retired.

They are records of the store, so that every worker of every host has them. A copy of the store
therefore opens requests that a relay has kept; it has the counters as well. Two keys are valid at a
time: a new one is made, apps ship it, and then the old one is retired.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from veilcount_serving.errors import SettingsError
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.oblivious_http.key_file import encode_key_file
from veilcount_shared.shuffling.times import KEY_AHEAD

from ..store import Record, RecordStore
from ..store.records import update_records
from .audit_log import audit_record

KIND = "gateway-key"
MOST = 2  # valid at a time
IDS = 256


@dataclass(frozen=True, slots=True, repr=False)
class GatewayKey:
    """A private key and its id, which requests name."""

    key_id: int
    private: str  # in hexadecimal; empty once it is retired
    created: str
    start: str  # the first day of the periods that it is for, where reports travel by shuffler

    @property
    def secret(self) -> X25519PrivateKey:
        """The private key."""
        return X25519PrivateKey.from_private_bytes(bytes.fromhex(self.private))

    @property
    def config(self) -> KeyConfig:
        """What clients get."""
        return KeyConfig(self.key_id, self.secret.public_key().public_bytes_raw())

    def record(self) -> Record:
        """Return its record."""
        return Record(KIND, f"{self.key_id:03}", json.dumps(asdict(self)).encode())


def load_gateway_keys(store: RecordStore) -> list[GatewayKey]:
    """Return the valid keys of a store, the newest first."""
    return [key for key in _parse(store.records(KIND)) if key.private]


def gateway_secrets(records: Mapping[str, bytes]) -> dict[int, X25519PrivateKey]:
    """Return the private keys of these records that are valid, by the id that requests name."""
    return {key.key_id: key.secret for key in _parse(records) if key.private}


def key_file(keys: Sequence[GatewayKey]) -> str:
    """Return the file of these keys, which is shipped with an app and given to shufflers."""
    return encode_key_file([(date.fromisoformat(key.start), key.config.encode()) for key in keys])


def create_gateway_key(store: RecordStore, now: datetime, start: date | None = None) -> GatewayKey:
    """Make a key; the id is one that no key had for as long as possible.

    Without `start` the first key is for periods from today on, another one from 90 days on: until
    then apps that have it alone would be apart from all others.

    Were it that of a retired key, requests of devices that still have that one would not decrypt,
    and nothing would tell the device why.
    """
    private = X25519PrivateKey.generate().private_bytes_raw().hex()

    def decide() -> tuple[Sequence[Record], GatewayKey]:
        every = _parse(store.records(KIND))
        keys = [key for key in every if key.private]
        if len(keys) >= MOST:
            fix = f"retire one first: {MOST} are valid at a time"
            raise SettingsError("gateway key", str(keys[-1].key_id), fix)
        newest = every[0].key_id if every else 0
        valid = {key.key_id for key in keys}
        following = ((newest + step) % IDS for step in range(1, IDS))
        key_id = next(candidate for candidate in following if candidate not in valid)
        first = start or now.date() + (KEY_AHEAD if keys else timedelta(0))
        key = GatewayKey(key_id, private, now.isoformat(), first.isoformat())
        act = audit_record(store, now, "cli", "relay-keys create", str(key.key_id))
        return [key.record(), act], key

    return update_records(store, decide)


def retire_gateway_key(store: RecordStore, key_id: int, now: datetime) -> GatewayKey:
    """Delete a key: requests under it are refused from now on, and nobody can read them.

    Its id stays, so that it is not given again soon.
    """

    def decide() -> tuple[Sequence[Record], GatewayKey]:
        keys = {gateway_key.key_id: gateway_key for gateway_key in load_gateway_keys(store)}
        if key_id not in keys:
            fix = "no such key: `veilcount relay-keys list` lists them"
            raise SettingsError("gateway key", str(key_id), fix)
        gone = replace(keys[key_id], private="").record()
        act = audit_record(store, now, "cli", "relay-keys retire", str(key_id))
        return [gone, act], keys[key_id]

    return update_records(store, decide)


def _parse(records: Mapping[str, bytes]) -> list[GatewayKey]:
    keys = [GatewayKey(**json.loads(value)) for value in records.values()]
    return sorted(keys, key=lambda key: (key.created, key.key_id), reverse=True)
