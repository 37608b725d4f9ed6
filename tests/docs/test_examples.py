"""Code blocks in the pages for people are run, and print what the page says."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted(ROOT.glob("[!.]*/*.md")))
    if ">>> " in page.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_print_what_the_page_says(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example of a page runs from the top of the repository."""
    monkeypatch.chdir(ROOT)

    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")

    assert tried
    assert not failed


def test_the_first_page_has_examples() -> None:
    """The list of pages is not empty by accident."""
    assert ROOT / "README.md" in PAGES
