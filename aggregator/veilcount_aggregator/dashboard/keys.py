"""Keys: which there are, make one, take one back. A key is shown once, on the page that made it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flask import Response, g, request

from ..api.problems import refusal
from ..auth.api_keys import MOST_LABEL, ApiKey, ApiKeys, Role, create_key, load_api_keys, revoke_key
from ..errors import SettingsError
from .layout import Frame, go

OPENS = {
    Role.DEVICE: "sends answers, and reads nothing: ships with an app, one for all its devices",
    Role.ANALYST: "reads estimates, asks for releases; changes nothing else",
    Role.ADMIN: "reads all an analyst reads, and changes keys and definitions",
}
OPEN = "No device key was ever made: the intake takes reports of everyone."
SHUT = "The intake takes reports of those alone who show a device key."
ONLY_REVOKED = "All device keys were taken back: the intake takes no report at all."


@dataclass(frozen=True, slots=True)
class Line:
    """A key as a row of the table."""

    id: str
    role: Role
    label: str
    created: str
    used: str
    revoked: str
    own: bool  # of whoever looks


@dataclass(frozen=True, slots=True)
class Asked:
    """The form, as it was sent."""

    role: str = Role.ANALYST
    label: str = ""
    wrong: str = ""


def pages(frame: Frame) -> None:
    """Add the pages."""
    aggregator = frame.aggregator

    @frame.page("/keys", Role.ADMIN)
    def keys() -> Response:
        """All keys, the newest first; never a key itself."""
        return _told(Asked())

    @frame.page("/keys", Role.ADMIN, methods=("POST",))
    def make_key() -> Response:
        """Make a key, and show it: here, and never again."""
        asked = Asked(request.form.get("role", ""), request.form.get("label", "").strip())
        if asked.role not in OPENS:
            raise refusal("bad-field", f"role: give {', '.join(OPENS)}", "role")
        try:
            key, secret = create_key(
                aggregator.store, Role(asked.role), asked.label, aggregator.clock(), g.visit.who
            )
        except SettingsError as error:
            return _told(Asked(asked.role, asked.label, str(error)), status=422)
        aggregator.watch.refresh()
        return _told(Asked(), key, secret, status=201)

    @frame.page("/keys/<identity>/revoke", Role.ADMIN, methods=("POST",))
    def take_key_back(identity: str) -> Response:
        """Take a key back: within a second no worker takes it."""
        try:
            revoke_key(aggregator.store, identity, aggregator.clock(), g.visit.who)
        except SettingsError as error:
            raise refusal("not-found", "no such key") from error
        aggregator.watch.refresh()
        return go("keys")

    def _told(
        asked: Asked, made: ApiKey | None = None, secret: str = "", status: int = 200
    ) -> Response:
        ring = load_api_keys(aggregator.store)
        return frame.told(
            "keys.html",
            status,
            asked=asked,
            made=made,
            secret=secret,
            lines=_lines(ring.keys.values(), g.visit.who),
            intake=_intake(ring),
            first_device=ring.intake_is_open,
            opens=OPENS,
            most_label=MOST_LABEL,
        )


def _lines(keys: Iterable[ApiKey], who: str) -> list[Line]:
    """Return those that work before those that were taken back, each the newest first."""
    newest = sorted(keys, key=lambda key: (key.created, key.id), reverse=True)
    return [
        Line(key.id, key.role, key.label, key.created, key.used, key.revoked, key.id == who)
        for key in sorted(newest, key=lambda key: bool(key.revoked))
    ]


def _intake(ring: ApiKeys) -> str:
    """Return who may send reports."""
    if ring.intake_is_open:
        return OPEN
    devices = [key for key in ring.keys.values() if key.role is Role.DEVICE and not key.revoked]
    return SHUT if devices else ONLY_REVOKED
