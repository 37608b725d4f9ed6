"""Browser sessions of the pages. A browser holds 32 random bytes; the store keeps their SHA-256.

Nothing is signed, so there is no secret that a copy of the store would give away, and a session
that is ended is over in every worker.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from ..store import Record, Records, Store
from ..store.records import update_records
from .api_keys import ApiKeys, Role, digest_secret
from .login_links import WHO

KIND = "session"
BYTES = 32
LASTS = timedelta(hours=12)
MOST = 100  # of one key at a time: the oldest gives way


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """One log-in: its role, the key that began it, and when it expires."""

    digest: str
    role: Role
    who: str  # the key's id, or that it was a link
    until: str

    def record(self) -> Record:
        """Return the record of the session."""
        return Record(KIND, self.digest, json.dumps(asdict(self)).encode())

    @classmethod
    def from_record(cls, value: bytes) -> BrowserSession:
        """Parse what the store holds."""
        fields = json.loads(value)
        return cls(**fields | {"role": Role(fields["role"])})

    def is_valid(self, api_keys: ApiKeys, now: datetime) -> bool:
        """Whether the session has not expired and its key was not revoked."""
        valid = {key.id for key in api_keys.keys.values() if not key.revoked}
        return datetime.fromisoformat(self.until) > now and self.who in (WHO, *valid)


def parse_sessions(records: Records) -> Mapping[str, BrowserSession]:
    """Return all stored sessions, by digest."""
    return {key: BrowserSession.from_record(value) for key, value in records.items()}


def begin_session(store: Store, role: Role, who: str, now: datetime) -> str:
    """Begin a session; return the secret for the browser's cookie."""
    secret = secrets.token_urlsafe(BYTES)
    session = BrowserSession(digest_secret(secret), role, who, (now + LASTS).isoformat())

    def decide() -> tuple[list[Record], str]:
        kept = parse_sessions(store.records(KIND))
        return [*_gone(kept, who, now), session.record()], secret

    return update_records(store, decide)


def end_session(store: Store, secret: str) -> None:
    """End a session, for every worker."""

    def decide() -> tuple[list[Record], None]:
        digest = digest_secret(secret)
        kept = store.records_at(KIND, [digest])
        return [Record(KIND, digest, None)] if kept else [], None

    update_records(store, decide)


def form_token(secret: str) -> str:
    """Return the CSRF token of a session's forms."""
    return hmac.new(secret.encode("utf-8", "surrogateescape"), b"form", "sha256").hexdigest()


def _gone(kept: Mapping[str, BrowserSession], who: str, now: datetime) -> list[Record]:
    """Return the removal of expired sessions, and of a key's oldest beyond its limit."""
    over = [each for each in kept.values() if datetime.fromisoformat(each.until) <= now]
    same = sorted((each for each in kept.values() if each.who == who), key=lambda each: each.until)
    gone = {each.digest for each in (*over, *same[: max(0, len(same) - MOST + 1)])}
    return [Record(KIND, each, None) for each in sorted(gone)]
