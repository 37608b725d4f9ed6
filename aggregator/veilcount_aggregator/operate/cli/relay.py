"""`veilcount relay serve`: a relay for development and tests, which says that it is one."""

from __future__ import annotations

import click

from veilcount_serving.listen_address import HIGHEST_PORT

from ...server.development_relay import DevelopmentRelay
from . import options
from .output import print_result


@click.group("relay")
def command() -> None:
    """Serve a relay for development."""


@command.command("serve")
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
