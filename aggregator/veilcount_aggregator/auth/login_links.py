"""One-time log-in links, for whoever starts an aggregator: no key is shown on the screen.

The secret is in the fragment of the URL, which browsers do not send: no server or proxy logs it.
The page that opens posts it once; the store keeps its SHA-256.
"""

from __future__ import annotations

import json
import secrets
from datetime import datetime, timedelta

from ..store import Record, Store
from ..store.records import update_records
from .api_keys import Role, digest_secret
from .audit_log import audit_record

KIND = "link"
BYTES = 32
LASTS = timedelta(minutes=15)
WHO = "link"
PATH = "/enter"


def create_link(store: Store, role: Role, now: datetime) -> str:
    """Return the secret of a new link: it opens pages once, within a quarter of an hour."""
    secret = secrets.token_urlsafe(BYTES)
    kept = json.dumps({"role": role, "until": (now + LASTS).isoformat()}).encode()

    def decide() -> tuple[list[Record], str]:
        act = audit_record(store, now, "cli", f"links make {role}", WHO)
        return [*_expired(store, now), Record(KIND, digest_secret(secret), kept), act], secret

    return update_records(store, decide)


def link_url(base: str, secret: str) -> str:
    """Return the URL of a link."""
    return f"{base}{PATH}#{secret}"


def redeem_link(store: Store, secret: str, now: datetime) -> Role | None:
    """Redeem a link: return its role; None if it was used, has expired or is unknown."""

    def decide() -> tuple[list[Record], Role | None]:
        digest = digest_secret(secret)
        kept = store.records_at(KIND, [digest]).get(digest)
        if kept is None or _until(kept) <= now:
            return [], None
        used = [Record(KIND, digest, None), audit_record(store, now, WHO, "links take", WHO)]
        return used, Role(json.loads(kept)["role"])

    return update_records(store, decide)


def _expired(store: Store, now: datetime) -> list[Record]:
    kept = store.records(KIND)
    return [Record(KIND, key, None) for key, value in kept.items() if _until(value) <= now]


def _until(kept: bytes) -> datetime:
    return datetime.fromisoformat(json.loads(kept)["until"])
