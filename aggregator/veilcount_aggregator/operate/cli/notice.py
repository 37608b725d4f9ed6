"""`veilcount notice`: the privacy notice of a definitions file, for its respondents."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from veilcount_analysis.privacy.shuffled import full_notice
from veilcount_shared import Collection, load_collections
from veilcount_shared.definition_changes import spending
from veilcount_shared.notice import Notice
from veilcount_shared.notice.drafts import Draft, draft_assessment, draft_record

from . import options
from .output import print_json, print_lines, terminal_width

MAX_WIDTH = 88


@click.command("notice")
@options.definitions_file
@click.argument("name", required=False, shell_complete=options.complete_from_file)
@click.option(
    "--relay",
    default="",
    metavar="OPERATOR",
    help="Who operates the relay that the app sends through; by default, it sends directly.",
)
@click.option(
    "--shuffler",
    default="",
    metavar="OPERATOR",
    help="Who runs the shuffler of collections with a batch.",
)
@click.option(
    "--persons",
    is_flag=True,
    help="The app's own server records for many persons, as Client(persons=True) does.",
)
@click.option("--dpia", is_flag=True, help="A draft of an impact assessment (Art. 35 GDPR).")
@click.option("--records", is_flag=True, help="A draft of a record of processing (Art. 30 GDPR).")
@click.option("--language", default="", metavar="TAG", help="Which texts of the definitions.")
@options.as_json
def command(
    file: Path,
    name: str | None,
    *,
    relay: str,
    shuffler: str,
    persons: bool,
    dpia: bool,
    records: bool,
    language: str,
    as_json: bool,
) -> None:
    """Print a privacy notice in Markdown for each collection of FILE.

    In plain language: the question and its purpose, what is sent, how often and until when, what it
    reveals and what it does not hide, retention, withdrawal, and the contact.

    --dpia and --records print drafts for whoever is responsible, with blanks for what software
    cannot know. They are no legal advice.
    """
    if dpia and records:
        raise click.UsageError("give --dpia or --records: each is a document of its own")
    family = load_collections(file)
    chosen = list(family.values()) if name is None else [options.find_collection(family, name)]
    notices = [
        full_notice(
            collection, relay=relay or None, shuffler=shuffler, by_app=persons, language=language
        )
        for collection in chosen
    ]
    if dpia or records:
        draft = _assessment(family, notices) if dpia else draft_record(notices)
        _print_draft(draft, as_json=as_json)
        return
    if as_json:
        print_json([_document(text) for text in notices])
        return
    for text in notices:
        print_lines(_lines(text, _width()))


def _assessment(family: Mapping[str, Collection], notices: Sequence[Notice]) -> Draft:
    """Draft the assessment; a device's limit is that of the whole file."""
    sums = spending(family)
    return draft_assessment(notices, day=sums.day, month=sums.month, life=sums.life)


def _print_draft(draft: Draft, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(draft))
    else:
        print_lines(_draft_lines(draft, _width()))


def _draft_lines(draft: Draft, width: int | None) -> Iterator[str]:
    yield f"# {draft.title}"
    yield ""
    yield from [draft.status] if width is None else textwrap.wrap(draft.status, width)
    yield ""
    for section in draft.sections:
        yield f"{'#' * section.level} {section.title}"
        yield ""
        for text in section.paragraphs:
            yield from [text] if width is None else textwrap.wrap(text, width)
            yield ""


def _width() -> int | None:
    """Return the width to wrap at; None in a file or pipe."""
    width = terminal_width()
    return None if width is None else min(width, MAX_WIDTH)


def _document(notice_: Notice) -> dict[str, Any]:
    return {
        "app": notice_.app,
        "collection": notice_.collection,
        "fingerprint": notice_.fingerprint,
        "question": notice_.question,
        "parts": [asdict(part) for part in notice_.texts()],
    }


def _lines(notice_: Notice, width: int | None) -> Iterator[str]:
    yield f"## {notice_.app}: {notice_.collection}"
    yield ""
    question = f"\u201c{notice_.question}\u201d"
    for text in (question, *(f"**{part.title}.** {part.text}" for part in notice_.texts())):
        yield from [text] if width is None else textwrap.wrap(text, width)
        yield ""
