"""Keys: is there one to get in with, is there one too many, is the strongest one in daily use?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from ..auth.api_keys import ApiKey, Role
from .finding import CheckResult, problems_or_ok, warn
from .store_snapshot import StoreSnapshot

UNUSED = timedelta(days=30)
SETTLED = timedelta(days=7)  # an admin's key that is older is used for more than setting up
RECENT = timedelta(days=1)


def api_keys(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Look at the keys that open something."""
    ring = stored.api_keys
    valid = [key for key in ring.keys.values() if not key.revoked]
    devices = "any device" if ring.intake_is_open else "devices with a key"
    well = f"{len(valid)} keys open something; reports are taken of {devices}"
    yield from problems_or_ok(_complaints(valid, stored.today, open_=ring.intake_is_open), well)


def _complaints(valid: list[ApiKey], today: date, *, open_: bool) -> Iterator[CheckResult]:
    roles = {key.role for key in valid}
    if Role.ADMIN not in roles:
        yield warn("no admin key: nobody can push over HTTP", "`veilcount init --key`")
    if not open_ and Role.DEVICE not in roles:
        yield warn(
            "all device keys are revoked: no device gets in",
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
            f"{name} was used on {key.used}: an admin's key changes what is asked",
            "if somebody only reads with it: `veilcount keys create --role analyst`",
        )


def _recent(key: ApiKey, today: date) -> bool:
    return bool(key.used) and today - date.fromisoformat(key.used) <= RECENT
