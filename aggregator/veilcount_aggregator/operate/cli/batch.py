"""`veilcount encode` and `decode`: a batch in JSON, and the bytes that a device sends."""

from __future__ import annotations

import json
from typing import BinaryIO

import click

from veilcount_shared.wire import BINARY_TYPE, decode_binary, encode_json, json_to_binary

from . import options
from .output import print_json


@click.command("encode")
@click.argument("file", type=click.File("rb"), default="-")
@options.as_json
def encode(*, file: BinaryIO, as_json: bool) -> None:
    """Write the binary encoding of the batch in FILE, by default stdin, for curl:

    veilcount encode FILE | curl --data-binary @- -H 'Content-Type: ...' URL/v1/reports
    """
    body = json_to_binary(file.read())
    if as_json:
        print_json({"content_type": BINARY_TYPE, "hexadecimal": body.hex()})
    else:
        click.echo(body, nl=False)


@click.command("decode")
@click.argument("file", type=click.File("rb"), default="-")
@options.as_json
def decode(*, file: BinaryIO, as_json: bool) -> None:
    """Print the batch in FILE, by default stdin, as JSON, or the place at which it is invalid."""
    document = encode_json(decode_binary(file.read()))
    if as_json:
        click.echo(document)
    else:
        print_json(json.loads(document))
