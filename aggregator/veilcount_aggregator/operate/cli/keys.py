"""`veilcount keys create | link | list | revoke`."""

from __future__ import annotations

import click

from ...records.api_keys import ApiKey, Role, create_key, load_api_keys, revoke_key
from ...records.sessions import create_link, link_url
from ...settings import PREFIX
from . import options
from .output import confirm, facts_table, print_result, yes_option
from .serve import ADDRESS

COLUMNS = ("id", "role", "label", "created", "used", "revoked")  # and its apps
CLOSES = (
    "WARNING: this is the first device key. From now on, reports without a device key are refused"
    " with 401, and their devices keep them until an update of the app brings the key. Revoking"
    " it does not open the intake again."
)
ROLES = click.Choice([role.value for role in Role])


@click.group("keys")
def command() -> None:
    """Create, list and revoke API keys; print log-in links."""


@command.command("create")
@click.option("--role", type=ROLES, required=True, help="What the key gives access to.")
@click.option("--label", default="", help="The owner, shown by `keys list`.")
@click.option(
    "--app",
    "apps",
    multiple=True,
    metavar="NAME",
    help="Let an analyst read this app's collections alone; repeatable.",
)
@options.store
@yes_option
@options.as_json
def create(
    role: str, label: str, apps: tuple[str, ...], url: str | None, *, yes: bool, as_json: bool
) -> None:
    """Create an API key, and print it once.

    From the first device key on, reports require a device key, and revoking it does not change
    that.
    """
    with options.opened(url) as store:
        closes = role == Role.DEVICE and load_api_keys(store).intake_is_open
        if closes and not yes:
            confirm(CLOSES, "Require a device key from now on?")
        key, secret = create_key(store, Role(role), label, options.now(), apps=apps)
    lines = [f"{role} key {key.id}, shown this once: {secret}"]
    if closes:
        lines.append("reports require a device key from now on")
    print_result({"key": secret, **public_columns(key)}, lines, as_json=as_json)


@command.command("link")
@click.option(
    "--role",
    type=click.Choice([Role.ANALYST.value, Role.ADMIN.value]),
    default=Role.ADMIN.value,
    show_default=True,
    help="What the link gives access to.",
)
@click.option(
    "--url",
    "server",
    default=f"http://{ADDRESS}",
    show_default=True,
    envvar=f"{PREFIX}URL",
    metavar="URL",
    help="Address at which a browser reaches the server.",
)
@options.store
@options.as_json
def link(role: str, server: str, url: str | None, *, as_json: bool) -> None:
    """Print a link that logs a browser in, once, within 15 minutes."""
    with options.opened(url) as store:
        address = link_url(server.rstrip("/"), create_link(store, Role(role), options.now()))
    print_result({"link": address, "role": role}, [address], as_json=as_json)


@command.command("list")
@options.store
@options.as_json
def list_keys(url: str | None, *, as_json: bool) -> None:
    """List all keys, without the secrets."""
    with options.opened(url) as store:
        ring = load_api_keys(store)
    facts = [public_columns(key) for key in sorted(ring.keys.values(), key=lambda key: key.created)]
    print_result(facts, [facts_table(facts, "no keys")], as_json=as_json)


@command.command("revoke")
@click.argument("identity", metavar="ID")
@options.store
@options.as_json
def revoke(identity: str, url: str | None, *, as_json: bool) -> None:
    """Revoke a key: servers refuse it within a second."""
    with options.opened(url) as store:
        key = revoke_key(store, identity, options.now())
    print_result(public_columns(key), [f"{key.role} key {key.id} is revoked"], as_json=as_json)


def public_columns(key: ApiKey) -> dict[str, str]:
    """Return the public columns of a key."""
    columns = {column: str(getattr(key, column)) for column in COLUMNS}
    return columns | {"apps": ",".join(key.apps)}
