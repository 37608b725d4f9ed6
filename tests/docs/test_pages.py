"""Every page for people: its blocks run, print what it says, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .links import broken
from .page_parser import Block, pages, steps, title
from .page_run import run

PAGES = pages()
HIDDEN = re.compile(r"<!--.*?-->")

#: what no test runs, and why: a block more is a decision, not an accident
UNRUN: dict[str, list[str]] = {"docs/operating.md": ["no host of this page is gone"]}


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert run(text, title(page), tmp_path) == sum(map(is_run, steps(text)))


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_a_page_points_at_what_is_there_and_names_its_files(page: Path) -> None:
    seen = HIDDEN.sub("", page.read_text(encoding="utf-8"))

    assert list(broken(page)) == []
    assert [each.file for each in blocks(page) if each.file not in seen] == []


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


def blocks(page: Path) -> list[Block]:
    found = steps(page.read_text(encoding="utf-8"))
    return [step for step in found if isinstance(step, Block)]


def is_run(step: object) -> bool:
    return isinstance(step, Block) and not step.unrun
