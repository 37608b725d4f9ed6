"""`veilcount encode`: a batch in JSON to the bytes that a device would send."""

from __future__ import annotations

from typing import BinaryIO

import click

from veilcount_shared.wire import BINARY_TYPE, json_to_binary

from . import options
from .output import print_json


@click.command("encode", short_help="Translate a batch from JSON to its binary encoding.")
@click.argument("file", type=click.File("rb"), default="-")
@options.as_json
def command(*, file: BinaryIO, as_json: bool) -> None:
    """Write the binary encoding of the batch in FILE, by default stdin, for curl:

    veilcount encode FILE | curl --data-binary @- -H 'Content-Type: ...' URL/v1/reports
    """
    body = json_to_binary(file.read())
    if as_json:
        print_json({"content_type": BINARY_TYPE, "hexadecimal": body.hex()})
    else:
        click.echo(body, nl=False)
