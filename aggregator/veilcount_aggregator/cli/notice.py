"""`veilcount notice`: the privacy notice of a definitions file, for its respondents."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from veilcount_shared import load_collections

from ..analysis.privacy_notice import CollectionNotice, notice
from ..queries import plain
from . import options
from .output import print_json, print_lines, terminal_width

MAX_WIDTH = 88


@click.command("notice", short_help="Print the privacy notice of a definitions file.")
@options.definitions_file
@click.argument("name", required=False, shell_complete=options.complete_from_file)
@click.option(
    "--relay",
    default="",
    metavar="OPERATOR",
    help="Who operates the relay that the app sends through; by default, it sends directly.",
)
@options.as_json
def command(file: Path, name: str | None, *, relay: str, as_json: bool) -> None:
    """Print a privacy notice in Markdown for each collection of FILE.

    In plain language: the question and its purpose, what leaves the device, what it reveals and
    what it does not hide, retention, and the contact.
    """
    family = load_collections(file)
    chosen = list(family.values()) if name is None else [options.find_collection(family, name)]
    notices = [notice(each, relay) for each in chosen]
    if as_json:
        print_json(plain(notices))
        return
    for each in notices:
        print_lines(_lines(each, _width()))


def _width() -> int | None:
    """Return the width to wrap at; None in a file or pipe."""
    width = terminal_width()
    return None if width is None else min(width, MAX_WIDTH)


def _lines(notice_: CollectionNotice, width: int | None) -> Iterator[str]:
    yield f"## {notice_.app}: {notice_.collection}"
    yield ""
    for part in notice_.parts:
        text = f"**{part.title}.** {part.text}"
        yield from [text] if width is None else textwrap.wrap(text, width)
        yield ""
