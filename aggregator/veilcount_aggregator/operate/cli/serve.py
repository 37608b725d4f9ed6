"""`veilcount serve`: run the aggregator, in production or for development."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from veilcount_serving.listen_address import ListenAddress

from ...server.serve import serve
from ...settings import PREFIX, Settings, declarations
from . import options
from .output import print_startup

ADDRESS = "127.0.0.1:8420"


@click.command("serve")
@options.store
@options.bind(ADDRESS, envvar=f"{PREFIX}BIND")
@options.setting_options(*(name for name in declarations() if name != "store"))
@options.startup_json
@click.pass_context
def command(
    context: click.Context, /, *, url: str | None, bind: str, as_json: bool, **values: Any
) -> None:
    """Accept reports and answer analysts, until SIGTERM."""
    settings = Settings(options.required_url(url), **values)
    announce = partial(print_startup, as_json=as_json)
    context.exit(serve(settings, ListenAddress.parse(bind), announce))
