"""Checks of API keys: a missing role, unused keys, an admin's key in daily use."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from ..auth.api_keys import ApiKey, Role
from .finding import CheckResult, problems_or_ok, warn
from .store_snapshot import StoreSnapshot

UNUSED = timedelta(days=30)
SETTLED = timedelta(days=7)  # an older admin's key is used for more than the set-up
RECENT = timedelta(days=1)


def api_keys(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check the valid keys."""
    ring = stored.api_keys
    valid = [key for key in ring.keys.values() if not key.revoked]
    devices = "any device" if ring.intake_is_open else "devices with a key"
    message = f"{len(valid)} valid keys; reports are accepted from {devices}"
    yield from problems_or_ok(_problems(valid, stored.today, open_=ring.intake_is_open), message)


def _problems(valid: list[ApiKey], today: date, *, open_: bool) -> Iterator[CheckResult]:
    roles = {key.role for key in valid}
    if Role.ADMIN not in roles:
        yield warn("no admin key: nobody can push over HTTP", "`veilcount init --key`")
    if not open_ and Role.DEVICE not in roles:
        yield warn(
            "all device keys are revoked: no device can report",
            "`veilcount keys create --role device`, and ship the key with the app",
        )
    for key in valid:
        yield from _key(key, today)


def _key(key: ApiKey, today: date) -> Iterator[CheckResult]:
    age = today - date.fromisoformat(key.created)
    name = f"{key.role} key {key.id}" + (f" ({key.label})" if key.label else "")
    if not key.used and age >= UNUSED:
        yield warn(
            f"{name} was made on {key.created} and never used", f"`veilcount keys revoke {key.id}`"
        )
    elif key.role is Role.ADMIN and age >= SETTLED and _recent(key, today):
        yield warn(
            f"{name} was used on {key.used}: an admin's key can change definitions",
            "if it is only used for reading: `veilcount keys create --role analyst`",
        )


def _recent(key: ApiKey, today: date) -> bool:
    return bool(key.used) and today - date.fromisoformat(key.used) <= RECENT
