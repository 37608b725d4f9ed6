"""`veilcount notice`: the privacy notice of a definitions file, for the people who are asked."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from veilcount_shared import load_collections

from ..analysis.privacy_notice import CollectionNotice, notice
from ..queries import plain
from . import name_completion, options, param_types
from .output import tell_json, tell_lines, terminal_width

WIDEST = 88  # a line that is read


@click.command("notice", short_help="Write the privacy notice of a definitions file.")
@param_types.file
@click.argument("name", required=False, shell_complete=name_completion.of_file)
@options.as_json
def command(file: Path, name: str | None, *, as_json: bool) -> None:
    """Write what the people who are asked should know, for each collection of FILE.

    In plain words, as Markdown: what is asked and why, what leaves the device, what it gives
    away, what is not hidden, how long what is kept, whom to ask.
    """
    family = load_collections(file)
    chosen = list(family.values()) if name is None else [param_types.one_of(family, name)]
    notices = [notice(each) for each in chosen]
    if as_json:
        tell_json(plain(notices))
        return
    for each in notices:
        tell_lines(_lines(each, _width()))


def _width() -> int | None:
    """Return where to break lines: for a person's terminal alone, a file has its own reader."""
    width = terminal_width()
    return None if width is None else min(width, WIDEST)


def _lines(told: CollectionNotice, width: int | None) -> Iterator[str]:
    yield f"## {told.app}: {told.collection}"
    yield ""
    for part in told.parts:
        text = f"**{part.title}.** {part.text}"
        yield from [text] if width is None else textwrap.wrap(text, width)
        yield ""
