"""`veilcount init`: a new store, and its first admin key."""

from __future__ import annotations

from typing import Any

import click

from ..auth.api_keys import Role, create_key, load_api_keys
from ..store import Store
from . import options
from .output import tell_json, tell_lines

LABEL = "init"


@click.command("init")
@options.store
@click.option("--key", "another", is_flag=True, help="Make an admin key in an existing store too.")
@options.as_json
def command(url: str | None, *, another: bool, as_json: bool) -> None:
    """Make the store, and print its first admin key, once.

    On a store that exists it changes nothing.
    """
    with options.opened(url, make=True) as store:
        facts = _init(store, another=another)
    if as_json:
        tell_json(facts)
    else:
        tell_lines(_lines(facts))


def _init(store: Store, *, another: bool) -> dict[str, Any]:
    new = not load_api_keys(store).keys
    facts: dict[str, Any] = {"new": new, "engine": store.health().engine}
    if new or another:
        key, secret = create_key(store, Role.ADMIN, LABEL, options.now())
        facts |= {"key": secret, "id": key.id, "role": key.role}
    return facts


def _lines(facts: dict[str, Any]) -> list[str]:
    what = "a new store" if facts["new"] else "this store is in use already"
    lines = [f"{facts['engine']}: {what}"]
    if "key" not in facts:
        return [*lines, "no key was made: `veilcount init --key` makes one"]
    return [*lines, f"admin key, shown this once: {facts['key']}"]
