"""`veilcount report`: one document, which needs nothing else."""

from __future__ import annotations

import re

from .conftest import Type

ROW = re.compile(r'<tr role="row"><th scope="row"[^>]*>dark</th>.*?</tr>', re.DOTALL)
NEEDS = re.compile(r"<script|<link|<img|<form|<a |url\(|@import|src=|href=")


def test_a_report_holds_the_finding_its_figures_and_how_to_read_them(
    typed: Type, answered: str
) -> None:
    printed = typed("report", "theme", "--store", answered)
    (row,) = ROW.findall(printed.out)

    assert printed.code == 0
    assert printed.out.lstrip().startswith("<!doctype html>")
    assert re.search(r'class="headline">\d\d to \d\d of 100 answers are dark', printed.out)
    assert re.search(r"<circle .*>\d\d\.\d+% to \d\d\.\d+%<", row)
    assert ">Privacy guarantee<" in printed.out
    assert ">How to read it<" in printed.out
    assert "[theme]" in printed.out


def test_a_report_loads_nothing_and_leads_nowhere(typed: Type, answered: str) -> None:
    for name in ("theme", "city", "minutes", "crash"):
        printed = typed("report", name, "--store", answered)

        assert printed.code == 0, printed.err
        assert NEEDS.findall(printed.out) == []


def test_a_collection_without_reports_says_so_and_an_unknown_one_is_refused(
    typed: Type, answered: str
) -> None:
    assert "No reports yet" in typed("report", "minutes", "--store", answered).out
    assert "No releases yet" in typed("report", "crash", "--store", answered).out
    unknown = typed("report", "them", "--store", answered)

    assert unknown.code == 2
    assert "theme" in unknown.err
