"""`veilcount keys create | list | revoke`."""

from __future__ import annotations

import click

from ..auth.api_keys import ApiKey, Role, create_key, load_api_keys, revoke_key
from . import options
from .output import tell_json, tell_lines, tell_table

COLUMNS = ("id", "role", "label", "created", "used", "revoked")
ROLES = click.Choice([role.value for role in Role])


@click.group("keys")
def command() -> None:
    """Keys: what devices, analysts and admins show."""


@command.command("create")
@click.option("--role", type=ROLES, required=True, help="Which doors it opens.")
@click.option("--label", default="", help="Whose it is, for `keys list`.")
@options.store
@options.as_json
def create(role: str, label: str, url: str | None, *, as_json: bool) -> None:
    """Make a key and print it, once.

    The first device key closes the intake to devices without one.
    """
    with options.opened(url) as store:
        closes = role == Role.DEVICE and load_api_keys(store).intake_is_open
        key, secret = create_key(store, Role(role), label, options.now())
    if as_json:
        tell_json({"key": secret, **shown(key)})
        return
    lines = [f"{role} key {key.id}, shown this once: {secret}"]
    if closes:
        lines.append("from now on devices need a key")
    tell_lines(lines)


@command.command("list")
@options.store
@options.as_json
def list_keys(url: str | None, *, as_json: bool) -> None:
    """Show all keys: everything but the keys."""
    with options.opened(url) as store:
        ring = load_api_keys(store)
    facts = [shown(key) for key in sorted(ring.keys.values(), key=lambda key: key.created)]
    if as_json:
        tell_json(facts)
    else:
        tell_table(
            tuple(facts[0]) if facts else ("no keys",), [list(each.values()) for each in facts]
        )


@command.command("revoke")
@click.argument("identity", metavar="ID")
@options.store
@options.as_json
def revoke(identity: str, url: str | None, *, as_json: bool) -> None:
    """Take a key back: within a second nobody takes it any more."""
    with options.opened(url) as store:
        key = revoke_key(store, identity, options.now())
    if as_json:
        tell_json(shown(key))
    else:
        tell_lines([f"{key.role} key {key.id} is revoked"])


def shown(key: ApiKey) -> dict[str, str]:
    """Return what may be shown of a key."""
    return {column: str(getattr(key, column)) for column in COLUMNS}
