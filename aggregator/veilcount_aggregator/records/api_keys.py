"""API keys, their roles and uses. A key is shown once; the store keeps its SHA-256.

Thirty-two random bytes need no slow hash: they cannot be guessed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from veilcount_serving.errors import SettingsError
from veilcount_shared.collection.validation import APP

from ..errors import StoreError
from ..store import Record, Records, RecordStore
from ..store.records import update_records
from .audit_log import audit_record

KIND = "key"
BYTES = 32
ID_DIGITS = 8
MOST_LABEL = 60


class Role(StrEnum):
    """The role of a key: each opens its own endpoints, an admin's also those of analysts."""

    DEVICE = "device"
    ANALYST = "analyst"
    ADMIN = "admin"
    SHUFFLER = "shuffler"

    def opens(self, required: Role) -> bool:
        """Whether a key of this role may use an endpoint that requires a role."""
        return self is required or (self is Role.ADMIN and required is Role.ANALYST)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is stored: everything but its secret."""

    id: str
    role: Role
    label: str
    digest: str
    created: str  # days, not instants
    used: str = ""
    revoked: str = ""
    apps: tuple[str, ...] = ()  # whose collections it reads; none: those of all

    def record(self) -> Record:
        """Return the record of the key."""
        fields = asdict(self)
        if not self.apps:  # as it was written before keys could be restricted
            del fields["apps"]
        return Record(KIND, self.id, json.dumps(fields).encode())

    @classmethod
    def from_record(cls, value: bytes) -> ApiKey:
        """Parse what the store holds."""
        fields = json.loads(value)
        apps = tuple(fields.get("apps", ()))
        return cls(**fields | {"role": Role(fields["role"]), "apps": apps})


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """All keys of a store.

    The intake is open, devices need no key, until the first device key is made, and not after.
    Revoked keys count: revoking the last one must not open the intake to everyone.
    """

    keys: Mapping[str, ApiKey]  # by digest
    intake_is_open: bool = field(init=False)  # here, since each report asks for it

    def __post_init__(self) -> None:
        is_open = all(key.role is not Role.DEVICE for key in self.keys.values())
        object.__setattr__(self, "intake_is_open", is_open)

    @classmethod
    def from_records(cls, records: Records) -> ApiKeys:
        """Parse what the store holds."""
        return cls({key.digest: key for key in map(ApiKey.from_record, records.values())})

    def apps_of(self, identity: str) -> tuple[str, ...]:
        """Return the apps that the key of this id is restricted to; a log-in link's reads all."""
        return next((key.apps for key in self.keys.values() if key.id == identity), ())

    def find(self, secret: str) -> ApiKey | None:
        """Return the key with this secret, unless it was revoked.

        Looked up by a hash, which tells a guesser nothing of the key; compared in constant time.
        """
        digest = digest_secret(secret)
        key = self.keys.get(digest)
        if key is None or not hmac.compare_digest(key.digest, digest) or key.revoked:
            return None
        return key


def load_api_keys(store: RecordStore) -> ApiKeys:
    """Return all keys of a store."""
    return ApiKeys.from_records(store.records(KIND))


def create_key(
    store: RecordStore,
    role: Role,
    label: str,
    now: datetime,
    actor: str = "cli",
    *,
    apps: Sequence[str] = (),
) -> tuple[ApiKey, str]:
    """Make a key; return it with its secret, which nobody can ask for again."""
    _check_apps(role, apps)
    if len(label) > MOST_LABEL or not label.isprintable():
        raise SettingsError("label", label[:MOST_LABEL], f"give up to {MOST_LABEL} characters")
    # the prefix is one that scanners for leaked secrets can search for
    secret = f"veilcount_{role}_{secrets.token_urlsafe(BYTES)}"
    identity = secrets.token_hex(ID_DIGITS // 2)
    today = now.date().isoformat()
    key = ApiKey(identity, role, label, digest_secret(secret), today, apps=tuple(apps))

    def decide() -> tuple[list[Record], tuple[ApiKey, str]]:
        act = audit_record(store, now, actor, f"keys create {role}", key.id)
        return [key.record(), act], (key, secret)

    return update_records(store, decide)


def _check_apps(role: Role, apps: Sequence[str]) -> None:
    """Refuse names that no app has, and a restriction that no endpoint would enforce."""
    if apps and role is not Role.ANALYST:
        raise SettingsError("apps", ",".join(apps), "restrict keys of the role analyst only")
    for app in apps:
        if not APP.fullmatch(app):
            raise SettingsError("apps", app, "give the `app` of a definitions file")


def revoke_key(store: RecordStore, identity: str, now: datetime, actor: str = "cli") -> ApiKey:
    """Revoke a key: within a second no worker accepts it."""

    def decide() -> tuple[list[Record], ApiKey]:
        stored = store.records_at(KIND, [identity]).get(identity)
        if stored is None:
            raise SettingsError("key", identity, "no such key: `veilcount keys list` lists them")
        key = ApiKey.from_record(stored)
        if key.revoked:
            return [], key
        gone = replace(key, revoked=now.date().isoformat())
        return [gone.record(), audit_record(store, now, actor, "keys revoke", key.id)], gone

    return update_records(store, decide)


def record_key_use(store: RecordStore, key: ApiKey, now: datetime) -> None:
    """Record the day on which a key was last used; written at most once a day."""
    today = now.date().isoformat()

    def decide() -> tuple[list[Record], None]:
        stored = store.records_at(KIND, [key.id]).get(key.id)
        current = ApiKey.from_record(stored) if stored else key
        if stored is None or current.used >= today:
            return [], None
        return [replace(current, used=today).record()], None

    update_records(store, decide)


def digest_secret(secret: str) -> str:
    """Return the SHA-256 under which the store knows a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


class KeyUses:
    """Collects uses, so that no request waits for a write or makes one. For any thread."""

    def __init__(self) -> None:
        self._days: dict[str, str] = {}  # by a key's id: the day of its last use here
        self._unwritten: dict[str, ApiKey] = {}

    def add(self, key: ApiKey, day: str) -> None:
        """Add a use, unless one of this day is known."""
        if key.used < day and self._days.get(key.id) != day:
            self._days[key.id] = day
            self._unwritten[key.id] = key

    def write(self, store: RecordStore, now: datetime) -> None:
        """Write the day to each key that was used; what cannot be written is left out."""
        keys, self._unwritten = self._unwritten, {}
        for key in keys.values():
            with suppress(StoreError):
                record_key_use(store, key, now)
