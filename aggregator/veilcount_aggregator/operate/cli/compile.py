"""`veilcount compile`: definitions that a client in any language loads as they are."""

from __future__ import annotations

from pathlib import Path

import click

from veilcount_shared import load_collections
from veilcount_shared.compilation import compile_collections

from . import options


@click.command("compile")
@options.definitions_file
@click.option("--json", is_flag=True, expose_value=False, help="It is JSON, also without this.")
def command(file: Path) -> None:
    """Print the compiled definitions of FILE as JSON.

    Of each collection: the canonical text and its fingerprint, the mechanism with its tables, the
    texts in all languages, and the sentences of notice and receipt.
    """
    click.echo(compile_collections(load_collections(file).values()), nl=False)
