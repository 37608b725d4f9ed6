"""`veilcount serve`: run the aggregator, in production or for development."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from veilcount_serving.listen_address import ListenAddress
from veilcount_serving.structured_logging import log_event
from veilcount_serving.worker_processes import StartupSummary

from ...server.serve import serve
from ...settings import PREFIX, Settings, declarations
from . import options
from .main import is_terminal

ADDRESS = "127.0.0.1:8420"


@click.command("serve")
@options.store
@click.option(
    "--bind",
    default=ADDRESS,
    show_default=True,
    envvar=f"{PREFIX}BIND",
    metavar="ADDRESS",
    help="host:port, [host]:port or unix:/path.",
)
@options.setting_options(*(name for name in declarations() if name != "store"))
@click.option("--json", "as_json", is_flag=True, help="Print the startup line as JSON.")
@click.pass_context
def command(
    context: click.Context, /, *, url: str | None, bind: str, as_json: bool, **values: Any
) -> None:
    """Accept reports and answer analysts, until SIGTERM."""
    settings = Settings(options.required_url(url), **values)
    context.exit(serve(settings, ListenAddress.parse(bind), _print_json if as_json else _print))


def _print(ready: StartupSummary) -> None:
    """Print a line for people, or log it: unbuffered, since workers are forked meanwhile."""
    if is_terminal():
        os.write(2, f"{ready}\n".encode())
    else:
        log_event("serving", **ready.facts)


def _print_json(ready: StartupSummary) -> None:
    os.write(1, f"{json.dumps(ready.facts)}\n".encode())
