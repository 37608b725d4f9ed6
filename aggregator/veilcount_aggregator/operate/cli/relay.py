"""`veilcount relay-keys create | list | retire`, and `veilcount relay serve`, for development."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from veilcount_serving.listen_address import HIGHEST_PORT

from ...records.gateway_keys import (
    GatewayKey,
    create_gateway_key,
    key_file,
    load_gateway_keys,
    retire_gateway_key,
)
from ...server.development_relay import DevelopmentRelay
from . import options
from .output import facts_table, print_result


@click.group("relay")
def relay() -> None:
    """Serve a relay for development."""


@relay.command("serve")
@click.option("--to", "target", required=True, help="The server, such as http://127.0.0.1:8420.")
@click.option(
    "--port",
    type=click.IntRange(0, HIGHEST_PORT),
    default=8440,
    show_default=True,
    help="0: any that is free.",
)
@click.option("--dev-only", is_flag=True, help="Confirm that it is for development.")
@options.as_json
def serve(target: str, port: int, *, dev_only: bool, as_json: bool) -> None:
    """Hand requests on to one server's gateway, on the loopback, until it is ended."""
    if not dev_only:
        raise click.UsageError(
            "a relay hides addresses only if somebody else runs it: for development, add --dev-only"
        )
    with DevelopmentRelay(target, port) as relay:
        facts = {"url": relay.url, "to": target}
        print_result(facts, [f"relay at {relay.url}, to {target}"], as_json=as_json)
        relay.serve_forever()


@click.group("relay-keys")
def keys() -> None:
    """Make, list and retire the keys for requests through a relay."""


@keys.command("create")
@click.option("--out", type=click.Path(path_type=Path), help="Write the public keys for clients.")
@click.option(
    "--from",
    "start",
    type=click.DateTime(["%Y-%m-%d"]),
    help="First day of the periods whose reports a shuffler gets under it."
    "  [default: today; of a second key, in 90 days]",
)
@options.store
@options.as_json
def create(out: Path | None, start: datetime | None, url: str | None, *, as_json: bool) -> None:
    """Make a key; at most two are valid at a time."""
    first = start.date() if start else None
    with options.opened(url) as store:
        key = create_gateway_key(store, options.now(), first)
        file = key_file(load_gateway_keys(store))
    if out is not None:
        out.write_text(file)
    lines = [f"gateway key {key.key_id} is valid"]
    lines += [f"the public keys are in {out}: ship them with the app"] if out else []
    print_result(_columns(key), lines, as_json=as_json)


@keys.command("list")
@options.store
@options.as_json
def list_keys(url: str | None, *, as_json: bool) -> None:
    """List the valid keys, the newest first."""
    with options.opened(url) as store:
        facts = [_columns(gateway_key) for gateway_key in load_gateway_keys(store)]
    print_result(facts, [facts_table(facts, "no keys")], as_json=as_json)


@keys.command("retire")
@click.argument("key_id", metavar="ID", type=int)
@options.store
@options.as_json
def retire(key_id: int, url: str | None, *, as_json: bool) -> None:
    """Delete a key: requests under it are refused, and clients need a newer one."""
    with options.opened(url) as store:
        key = retire_gateway_key(store, key_id, options.now())
    print_result(_columns(key), [f"gateway key {key.key_id} is retired"], as_json=as_json)


def _columns(key: GatewayKey) -> dict[str, str]:
    facts = {"id": str(key.key_id), "created": key.created[:10], "from": key.start}
    return facts | {"public": key.config.public.hex()}
