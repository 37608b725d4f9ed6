"""`veilcount decode`: the bytes that a device sends to JSON."""

from __future__ import annotations

from typing import BinaryIO

import click

from veilcount_shared.wire import decode_binary, encode_json


@click.command("decode", short_help="Translate a batch from its binary encoding to JSON.")
@click.argument("file", type=click.File("rb"), default="-")
def command(*, file: BinaryIO) -> None:
    """Print the batch in FILE, by default stdin, as JSON, or the place at which it is invalid."""
    click.echo(encode_json(decode_binary(file.read())))
