"""`veilcount encode`: a batch in JSON to the bytes that a device would send."""

from __future__ import annotations

from typing import BinaryIO

import click

from veilcount_shared.wire import json_to_binary


@click.command("encode", short_help="Translate a batch from JSON to its binary encoding.")
@click.argument("file", type=click.File("rb"), default="-")
def command(*, file: BinaryIO) -> None:
    """Write the binary encoding of the batch in FILE, by default stdin, for curl:

    veilcount encode FILE | curl --data-binary @- -H 'Content-Type: ...' URL/v1/reports
    """
    click.get_binary_stream("stdout").write(json_to_binary(file.read()))
