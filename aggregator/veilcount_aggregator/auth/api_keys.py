"""Keys and what they open. A key is shown once; the store keeps its SHA-256.

Thirty-two random bytes need no slow hash: nobody guesses them, and nobody finds them from it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum

from ..errors import SettingsError
from ..store import Record, Records, Store
from ..store.records import update_records
from .audit_log import audit_record

KIND = "key"
BYTES = 32
ID_DIGITS = 8
MOST_LABEL = 60


class Role(StrEnum):
    """What a key opens: each role its own doors, the admin also the analyst's."""

    DEVICE = "device"
    ANALYST = "analyst"
    ADMIN = "admin"

    def opens(self, door: Role) -> bool:
        """Whether a key of this role opens a door."""
        return self is door or (self is Role.ADMIN and door is Role.ANALYST)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key: everything but the key."""

    id: str
    role: Role
    label: str
    digest: str
    created: str  # days, not instants
    used: str = ""
    revoked: str = ""

    def record(self) -> Record:
        """Return the key as it is kept."""
        return Record(KIND, self.id, json.dumps(asdict(self)).encode())

    @classmethod
    def of(cls, value: bytes) -> ApiKey:
        """Read what is kept."""
        fields = json.loads(value)
        return cls(**fields | {"role": Role(fields["role"])})


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """All keys of a store."""

    keys: Mapping[str, ApiKey]  # by digest

    @classmethod
    def of(cls, records: Records) -> ApiKeys:
        """Read what is kept."""
        return cls({key.digest: key for key in map(ApiKey.of, records.values())})

    @property
    def intake_is_open(self) -> bool:
        """Whether devices need no key: until the first device key is made, and not after.

        Revoked ones count: taking the last key back must not open the door for everyone.
        """
        return not any(key.role is Role.DEVICE for key in self.keys.values())

    def find(self, secret: str) -> ApiKey | None:
        """Return the key that this is, unless it was revoked.

        Looked up by a hash, which tells a guesser nothing of the key; compared in constant time.
        """
        digest = _digest(secret)
        key = self.keys.get(digest)
        if key is None or not hmac.compare_digest(key.digest, digest) or key.revoked:
            return None
        return key


def load_api_keys(store: Store) -> ApiKeys:
    """Return all keys of a store."""
    return ApiKeys.of(store.records(KIND))


def create_key(
    store: Store, role: Role, label: str, now: datetime, who: str = "cli"
) -> tuple[ApiKey, str]:
    """Make a key; return it with its secret, which nobody can ask for again."""
    if len(label) > MOST_LABEL or not label.isprintable():
        raise SettingsError("label", label[:MOST_LABEL], f"give up to {MOST_LABEL} characters")
    secret = _new_secret(role)
    identity = secrets.token_hex(ID_DIGITS // 2)
    key = ApiKey(identity, role, label, _digest(secret), now.date().isoformat())

    def decide() -> tuple[list[Record], tuple[ApiKey, str]]:
        act = audit_record(store, now, who, f"keys create {role}", key.id)
        return [key.record(), act], (key, secret)

    return update_records(store, decide)


def revoke_key(store: Store, identity: str, now: datetime, who: str = "cli") -> ApiKey:
    """Take a key back: within a second no worker takes it."""

    def decide() -> tuple[list[Record], ApiKey]:
        kept = store.records_at(KIND, [identity]).get(identity)
        if kept is None:
            raise SettingsError("key", identity, "no such key: `veilcount keys list` shows them")
        key = ApiKey.of(kept)
        if key.revoked:
            return [], key
        gone = replace(key, revoked=now.date().isoformat())
        return [gone.record(), audit_record(store, now, who, "keys revoke", key.id)], gone

    return update_records(store, decide)


def record_key_use(store: Store, key: ApiKey, now: datetime) -> None:
    """Keep the day on which a key was last used: a day, so that it is written once a day."""
    today = now.date().isoformat()

    def decide() -> tuple[list[Record], None]:
        kept = store.records_at(KIND, [key.id]).get(key.id)
        current = ApiKey.of(kept) if kept else key
        if kept is None or current.used >= today:
            return [], None
        return [replace(current, used=today).record()], None

    update_records(store, decide)


def _new_secret(role: Role) -> str:
    """Return 32 random bytes, behind a mark that a scanner for leaked secrets can look for."""
    random = urlsafe_b64encode(secrets.token_bytes(BYTES)).rstrip(b"=").decode()
    return f"veilcount_{role}_{random}"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
