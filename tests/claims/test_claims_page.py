"""The page of claims lists the claims that are tested, and their sentences are the tests' own."""

from __future__ import annotations

import re

import pytest

from .claim_harness import CLAIMS, PAGE, PAPERS, ROOT, THEMES, Claim, render_page, theme_module

CITED = re.compile(r"\[([A-Z][^\]]+ (?:19|20)\d\d)[^\]]*\]\.$")
LISTED = re.compile(r"^- ([^*]+), \*[^*]+\*, (\d{4})\.$", re.MULTILINE)


def all_claims() -> list[Claim]:
    for theme in THEMES:
        theme_module(theme)
    return [claim for theme in THEMES for claim in CLAIMS[theme]]


def test_the_page_is_what_the_tests_declare() -> None:
    """A claim, sentence or module that changes in one place only is noticed."""
    written = PAGE.read_text(encoding="utf-8")

    assert written == render_page()
    assert written.count("| `test_") == len(all_claims())


@pytest.mark.parametrize("each", all_claims(), ids=lambda each: each.test)
def test_every_claim_is_one_sentence_with_a_source_and_a_module(each: Claim) -> None:
    assert CITED.search(each.sentence), each.sentence
    assert "|" not in each.sentence
    assert not each.module or (ROOT / each.module).is_file()


def test_the_papers_are_those_that_are_cited() -> None:
    """By authors and year, each with its title."""
    papers = PAGE.read_text(encoding="utf-8").partition(PAPERS)[2]
    sources = [match[1] for each in all_claims() if (match := CITED.search(each.sentence))]
    cited = {paper for source in sources for paper in source.split("; ")}

    assert sorted(f"{authors} {year}" for authors, year in LISTED.findall(papers)) == sorted(cited)


def test_every_module_of_a_theme_is_on_the_page() -> None:
    folder = ROOT / "tests" / "claims"
    declared = [p for p in folder.glob("test_*.py") if "\n@claim(" in p.read_text("utf-8")]

    assert {path.stem for path in declared} == {f"test_{theme}" for theme in THEMES}
