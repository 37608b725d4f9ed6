"""Browser sessions of the pages. A browser holds 32 random bytes; the store keeps their SHA-256.

Nothing is signed, so there is no secret that a copy of the store would give away, and a session
that is ended is over in every worker.

Whoever starts an aggregator logs in by a one-time link: no key is shown on the screen. Its secret
is in the fragment of the URL, which browsers do not send: no server or proxy logs it. The page that
opens posts it once; the store keeps its SHA-256 here too.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from ..store import Record, Records, RecordStore
from ..store.records import update_records
from .api_keys import ApiKeys, Role, digest_secret
from .audit_log import audit_record

KIND = "session"
BYTES = 32
LASTS = timedelta(hours=12)
SIGNED_IN_LASTS = timedelta(hours=1)  # then the provider is asked again: groups change
PERSON = "person:"  # before a name in the audit log: no key and no command is called so
MOST = 100  # of one key at a time: the oldest gives way

LINK_KIND = "link"
LINK_LASTS = timedelta(minutes=15)
LINK_ACTOR = "link"
LINK_PATH = "/enter"


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """One log-in: its role, the key that began it, and when it expires."""

    digest: str
    role: Role
    actor: str  # the key's id, that it was a link, or whom the organization signed in
    until: str
    apps: tuple[str, ...] = ()  # of whom the organization signed in; a key has its own

    def record(self) -> Record:
        """Return the record of the session."""
        fields = asdict(self)
        if not self.apps:  # as it was written before there were any
            del fields["apps"]
        return Record(KIND, self.digest, json.dumps(fields).encode())

    @classmethod
    def from_record(cls, value: bytes) -> BrowserSession:
        """Parse what the store holds."""
        fields = json.loads(value)
        apps = tuple(fields.get("apps", ()))
        return cls(**fields | {"role": Role(fields["role"]), "apps": apps})

    def is_valid(self, api_keys: ApiKeys, now: datetime) -> bool:
        """Whether the session has not expired and its key was not revoked."""
        valid = {key.id for key in api_keys.keys.values() if not key.revoked}
        lives = self.actor.startswith(PERSON) or self.actor in (LINK_ACTOR, *valid)
        return lives and datetime.fromisoformat(self.until) > now


def parse_sessions(records: Records) -> Mapping[str, BrowserSession]:
    """Return all stored sessions, by digest."""
    return {key: BrowserSession.from_record(value) for key, value in records.items()}


def begin_session(
    store: RecordStore, role: Role, actor: str, now: datetime, apps: tuple[str, ...] = ()
) -> str:
    """Begin a session; return the secret for the browser's cookie."""
    secret = secrets.token_urlsafe(BYTES)
    lasts = SIGNED_IN_LASTS if actor.startswith(PERSON) else LASTS
    session = BrowserSession(digest_secret(secret), role, actor, (now + lasts).isoformat(), apps)

    def decide() -> tuple[list[Record], str]:
        sessions = parse_sessions(store.records(KIND))
        return [*_gone(sessions, actor, now), session.record()], secret

    return update_records(store, decide)


def end_session(store: RecordStore, secret: str) -> None:
    """End a session, for every worker."""

    def decide() -> tuple[list[Record], None]:
        digest = digest_secret(secret)
        stored_sessions = store.records_at(KIND, [digest])
        return [Record(KIND, digest, None)] if stored_sessions else [], None

    update_records(store, decide)


def form_token(secret: str) -> str:
    """Return the CSRF token of a session's forms."""
    return hmac.new(secret.encode("utf-8", "surrogateescape"), b"form", "sha256").hexdigest()


def _gone(kept: Mapping[str, BrowserSession], actor: str, now: datetime) -> list[Record]:
    """Return the removal of expired sessions, and of a key's oldest beyond its limit."""
    over = [session for session in kept.values() if datetime.fromisoformat(session.until) <= now]
    same = sorted(
        (session for session in kept.values() if session.actor == actor),
        key=lambda session: session.until,
    )
    gone = {session.digest for session in (*over, *same[: max(0, len(same) - MOST + 1)])}
    return [Record(KIND, session_digest, None) for session_digest in sorted(gone)]


# -- log-in links ----------------------------------------------------------------------------------


def create_link(store: RecordStore, role: Role, now: datetime) -> str:
    """Return the secret of a new link: it opens pages once, within a quarter of an hour."""
    secret = secrets.token_urlsafe(BYTES)
    link = json.dumps({"role": role, "until": (now + LINK_LASTS).isoformat()}).encode()

    def decide() -> tuple[list[Record], str]:
        act = audit_record(store, now, "cli", f"links make {role}", LINK_ACTOR)
        return [
            *_expired_links(store, now),
            Record(LINK_KIND, digest_secret(secret), link),
            act,
        ], secret

    return update_records(store, decide)


def link_url(base: str, secret: str) -> str:
    """Return the URL of a link."""
    return f"{base}{LINK_PATH}#{secret}"


def redeem_link(store: RecordStore, secret: str, now: datetime) -> Role | None:
    """Redeem a link: return its role; None if it was used, has expired or is unknown."""

    def decide() -> tuple[list[Record], Role | None]:
        digest = digest_secret(secret)
        link = store.records_at(LINK_KIND, [digest]).get(digest)
        if link is None or _until(link) <= now:
            return [], None
        used = [
            Record(LINK_KIND, digest, None),
            audit_record(store, now, LINK_ACTOR, "links take", LINK_ACTOR),
        ]
        return used, Role(json.loads(link)["role"])

    return update_records(store, decide)


def _expired_links(store: RecordStore, now: datetime) -> list[Record]:
    links = store.records(LINK_KIND)
    return [Record(LINK_KIND, key, None) for key, value in links.items() if _until(value) <= now]


def _until(kept: bytes) -> datetime:
    return datetime.fromisoformat(json.loads(kept)["until"])
