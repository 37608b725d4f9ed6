"""The page of API keys: list, create, revoke. A key is shown once, in response to its creation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flask import Response, request

from veilcount_serving.errors import SettingsError

from ...records import api_keys
from ...records.api_keys import MOST_LABEL, ApiKey, ApiKeys, Role, load_api_keys
from ...settings import parse_labels
from ..api.problems import refusal
from .pages import Content, Context, page, redirect_to, render

ALLOWS = {
    Role.DEVICE: "sends reports, reads nothing; one key ships with an app, for all its devices",
    Role.ANALYST: "reads estimates, requests releases; changes nothing else",
    Role.ADMIN: "everything an analyst may do, and changes keys and definitions",
    Role.SHUFFLER: "hands batches over, reads nothing; one key for each shuffler",
}
NO_DEVICE_KEY = "There is no device key: reports are accepted without one."
KEY_REQUIRED = "Reports require a device key."
ALL_REVOKED = "All device keys are revoked: no report is accepted."
UNCONFIRMED = (
    "No key was created: the first device key closes the open intake for good. Confirm that below."
)
CLOSES = "closes"  # the field of that confirmation


@page("/keys", Role.ADMIN, "Keys", 5)
def keys(context: Context) -> Content:
    """List all keys, the newest first; never a key itself."""
    return _content(context)


@page("/keys", Role.ADMIN, methods=("POST",))
def create_key(context: Context) -> Response:
    """Create a key, and show it this once."""
    aggregator = context.aggregator
    role, label = request.form.get("role", ""), request.form.get("label", "").strip()
    apps = parse_labels(request.form.get("apps", ""))
    if role not in ALLOWS:
        raise refusal("bad-field", f"role: give {', '.join(ALLOWS)}", "role")
    closes = role == Role.DEVICE and load_api_keys(aggregator.store).intake_is_open
    if closes and CLOSES not in request.form:
        return _wrong(context, role, label, apps, UNCONFIRMED)
    try:
        key, secret = api_keys.create_key(
            aggregator.store, Role(role), label, aggregator.clock(), context.visit.actor, apps=apps
        )
    except SettingsError as error:
        return _wrong(context, role, label, apps, str(error))
    aggregator.catalog_cache.refresh()
    return render("keys", 201, **_content(context), created=key, secret=secret)


@page("/keys/<identity>/revoke", Role.ADMIN, methods=("POST",))
def revoke_key(context: Context, identity: str) -> Response:
    """Revoke a key: within a second no worker accepts it."""
    aggregator = context.aggregator
    try:
        api_keys.revoke_key(aggregator.store, identity, aggregator.clock(), context.visit.actor)
    except SettingsError as error:
        raise refusal("not-found", "no such key") from error
    aggregator.catalog_cache.refresh()
    return redirect_to("keys")


def _wrong(context: Context, role: str, label: str, apps: Sequence[str], text: str) -> Response:
    """Return the page with the form as it was sent, and what is wrong with it."""
    form = {"role": role, "label": label, "apps": ", ".join(apps), "wrong": text}
    return render("keys", 422, **_content(context, form=form))


def _content(context: Context, form: dict[str, str] | None = None) -> dict[str, Any]:
    ring = load_api_keys(context.aggregator.store)
    return {
        "form": form or {"role": Role.ANALYST, "label": "", "apps": ""},
        "keys": _sorted(ring.keys.values()),
        "intake": _intake(ring),
        "first_device": ring.intake_is_open,
        "allows": ALLOWS,
        "closes": CLOSES,
        "most_label": MOST_LABEL,
    }


def _sorted(keys: Iterable[ApiKey]) -> list[ApiKey]:
    """Return valid keys before revoked ones, the newest first within each."""
    newest = sorted(keys, key=lambda key: (key.created, key.id), reverse=True)
    return sorted(newest, key=lambda key: bool(key.revoked))


def _intake(ring: ApiKeys) -> str:
    if ring.intake_is_open:
        return NO_DEVICE_KEY
    valid = [key for key in ring.keys.values() if key.role is Role.DEVICE and not key.revoked]
    return KEY_REQUIRED if valid else ALL_REVOKED
