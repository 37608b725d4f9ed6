"""`veilcount init`: new store, and its first admin key."""

from __future__ import annotations

from typing import Any

import click

from ..auth.api_keys import Role, create_key, load_api_keys
from ..store import Store
from . import options
from .output import print_result

LABEL = "init"


@click.command("init")
@options.store
@click.option(
    "--key", "another", is_flag=True, help="Create another admin key in an existing store."
)
@options.as_json
def command(url: str | None, *, another: bool, as_json: bool) -> None:
    """Create the store, and print its first admin key once.

    An existing store is left unchanged.
    """
    with options.opened(url, make=True) as store:
        facts = _init(store, another=another)
    print_result(facts, _lines(facts), as_json=as_json)


def _init(store: Store, *, another: bool) -> dict[str, Any]:
    new = not load_api_keys(store).keys
    facts: dict[str, Any] = {"new": new, "engine": store.health().engine}
    if new or another:
        key, secret = create_key(store, Role.ADMIN, LABEL, options.now())
        facts |= {"key": secret, "id": key.id, "role": key.role}
    return facts


def _lines(facts: dict[str, Any]) -> list[str]:
    what = "new store" if facts["new"] else "existing store"
    lines = [f"{facts['engine']}: {what}"]
    if "key" not in facts:
        return [*lines, "no key was created: `veilcount init --key` creates one"]
    return [*lines, f"admin key, shown this once: {facts['key']}"]
