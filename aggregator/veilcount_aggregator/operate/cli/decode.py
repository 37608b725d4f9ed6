"""`veilcount decode`: the bytes that a device sends to JSON."""

from __future__ import annotations

import json
from typing import BinaryIO

import click

from veilcount_shared.wire import decode_binary, encode_json

from . import options
from .output import print_json


@click.command("decode", short_help="Translate a batch from its binary encoding to JSON.")
@click.argument("file", type=click.File("rb"), default="-")
@options.as_json
def command(*, file: BinaryIO, as_json: bool) -> None:
    """Print the batch in FILE, by default stdin, as JSON, or the place at which it is invalid."""
    document = encode_json(decode_binary(file.read()))
    if as_json:
        click.echo(document)
    else:
        print_json(json.loads(document))
