"""`veilcount shuffler trust`: whose batches this aggregator takes."""

from __future__ import annotations

from pathlib import Path

import click

from ...records.shuffler_keys import ALWAYS, ANY, trust_shuffler
from . import options
from .output import print_result


@click.group("shuffler")
def command() -> None:
    """Choose the shuffler whose batches are taken."""


@command.command("trust")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--collection", default=ANY, help="For this one alone.  [default: all]")
@options.store
@options.as_json
def trust(file: Path, collection: str, url: str | None, *, as_json: bool) -> None:
    """Trust the shuffler with this public key; in place of another, from tomorrow's periods on."""
    with options.opened(url) as store:
        key = trust_shuffler(store, file.read_bytes(), collection, options.now())
    first = "all periods" if key.start == ALWAYS.isoformat() else f"periods from {key.start} on"
    facts = {"name": key.name, "collection": key.collection, "from": key.start}
    line = f"{key.name} is trusted for {collection or 'all collections'}, {first}"
    print_result(facts, [line], as_json=as_json)
