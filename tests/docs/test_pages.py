"""Every page for people: its blocks run, print what it says, and its links lead somewhere."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli.new import TEMPLATE

from .links import broken
from .page_parser import ROOT, Block, pages, steps, title
from .page_run import run

PAGES = pages()
RUN_HERE = [page for page in PAGES if page.name != "drills.md"]  # tests/system/drills runs that one
HIDDEN = re.compile(r"<!--.*?-->")

#: the files from which people copy definitions
EXAMPLES = [
    *PAGES,
    ROOT / "docs" / "collections.toml",
    *ROOT.glob("aggregator/**/definitions.html"),
]
RELEASED = date(2026, 11, 23)
DATE = re.compile(r"\b(from|until) *= *(\d{4}-\d\d-\d\d)")

#: what no test runs, and why: a block more is a decision, not an accident
UNRUN: dict[str, list[str]] = {
    "docs/operating.md": [
        "test_watch.py runs such rules",
        "an event",
        "nothing is lost on this page",
        "no host of this page is gone",
    ],
    "docs/shuffler.md": ["it waits until the period is over; test_shuffler_canaries.py runs it"],
    "examples/README.md": ["they serve until they are stopped"] * 2,
    "loadtests/README.md": ["it needs the keys of a server; test_load_any_server.py runs it"],
}


@pytest.mark.parametrize("page", RUN_HERE, ids=title)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert run(text, title(page), tmp_path) == sum(map(is_run, steps(text)))


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_a_page_points_at_what_is_there_and_names_its_files(page: Path) -> None:
    seen = HIDDEN.sub("", page.read_text(encoding="utf-8"))

    assert list(broken(page)) == []
    assert [block.file for block in blocks(page) if block.file not in seen] == []


def test_what_is_not_run_is_listed_with_its_reason() -> None:
    unrun = {
        title(page): reasons
        for page in PAGES
        if (reasons := [step.unrun for step in blocks(page) if step.unrun])
    }

    assert unrun == UNRUN


def test_the_first_page_is_run() -> None:
    languages = {block.language for block in blocks(PAGES[0]) if not block.unrun}

    assert {"python", "sh"} <= languages


def test_the_campaign_of_every_example_has_begun_and_goes_on() -> None:
    """A definition that is copied must accept a report at once."""
    texts = (page.read_text(encoding="utf-8") for page in EXAMPLES)
    dates = [(key, date.fromisoformat(day)) for text in texts for key, day in DATE.findall(text)]

    assert {key for key, _ in dates} == {"from", "until"}
    assert max(day for key, day in dates if key == "from") <= RELEASED
    assert min(day for key, day in dates if key == "until") >= RELEASED + timedelta(days=60)


def test_the_first_definitions_are_those_that_veilcount_new_writes() -> None:
    shown = next(block.text for block in blocks(PAGES[0]) if block.language == "toml")

    assert shown == TEMPLATE.format(start="2026-09-01", until="2027-03-01")


def blocks(page: Path) -> list[Block]:
    found = steps(page.read_text(encoding="utf-8"))
    return [step for step in found if isinstance(step, Block)]


def is_run(step: object) -> bool:
    return isinstance(step, Block) and not step.unrun
