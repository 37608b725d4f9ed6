"""`veilcount collections push | list | close`: in a store, or at a running server."""

from __future__ import annotations

from pathlib import Path

import click

from ..catalog.definitions import read_source
from ..text import number_format
from ..text.byte_sizes import format_bytes
from . import name_completion, options
from .definition_targets import place
from .output import tell_json, tell_lines, tell_table
from .query_source import place_options


@click.group("collections")
def command() -> None:
    """Definitions: what is asked, and until when."""


@command.command("push")
@click.argument("file", type=click.Path(path_type=Path))
@place_options
@options.as_json
def push(file: Path, *, url: str | None, server: str | None, key: str, as_json: bool) -> None:
    """Take reports for a definitions file, in every worker within a second."""
    source = read_source(file)
    with place(url, server, key) as there:
        new = there.push(source)
    if as_json:
        tell_json({"new": new})
    elif new:
        columns = ("new", "fingerprint", "counters at most")
        tell_table(
            columns,
            (
                (each["name"], each["fingerprint"], format_bytes(each["counter_bytes"]))
                for each in new
            ),
        )
    else:
        tell_lines(["nothing new: each of its series was known"])


@command.command("list")
@place_options
@options.as_json
def list_all(*, url: str | None, server: str | None, key: str, as_json: bool) -> None:
    """Show all collections, each by its newest definition."""
    with place(url, server, key) as there:
        lines = there.collections()
    if as_json:
        tell_json(lines)
        return
    figures = ("event", "day", "user", "by")
    columns = ("name", "fingerprint", "unit", "from", "until", *figures, "state")
    tell_table(
        columns,
        (
            (
                line["name"],
                line["fingerprint"][:12],
                *(line[field] for field in ("unit", "from", "until")),
                *(line["epsilon"][field] for field in ("event", "day", "user")),
                number_format.adjacency(line["epsilon"]["adjacency"]),
                "closed" if line["closed"] else "open",
            )
            for line in lines
        ),
    )


@command.command("close")
@click.argument("name", shell_complete=name_completion.of_store)
@place_options
@options.as_json
def close(name: str, *, url: str | None, server: str | None, key: str, as_json: bool) -> None:
    """Take no more reports for a collection, under any of its definitions."""
    with place(url, server, key) as there:
        closed = there.close(name)
    if as_json:
        tell_json({"closed": closed})
    else:
        tell_lines([f"{name} is closed" if closed else f"{name} was closed already"])
