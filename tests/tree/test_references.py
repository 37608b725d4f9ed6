"""A reader who follows a name in a comment, a docstring or a page arrives somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.page_parser import pages, title

from .import_graph import ROOT
from .references import FOLDERS, modules, stale, stale_in_module, stale_in_page


@pytest.mark.parametrize("folder", FOLDERS)
def test_comments_and_docstrings_name_what_exists(folder: str) -> None:
    """Files, modules, and names in backticks or with underscores."""
    problems = [
        f"{path.relative_to(ROOT)}:{problem}"
        for path in modules()
        if path.is_relative_to(ROOT / folder)
        for problem in stale_in_module(path)
    ]

    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    "page", [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=title
)
def test_a_page_names_files_and_modules_that_exist(page: Path) -> None:
    assert list(stale_in_page(page)) == []


@pytest.mark.parametrize(
    "reference",
    [
        "tests/store_contract.py",
        "interfaces.py",
        "docs/deploy.md",
        "`redis.stores`",
        "`store.redis.store.RediStore`",
        "veilcount_shared.ledgers",
        "`ledger-foldings`",
        "ledger-foldings",
    ],
)
def test_a_stale_reference_is_reported(reference: str) -> None:
    """Of the last two the hyphen stands for an underscore, or this file would have the name."""
    name = reference.strip("`").replace("-", "_")

    assert list(stale(f"As {reference.replace('-', '_')} says.")) == [name]


def test_references_of_every_form_are_followed() -> None:
    """By the end of a path, by a module's last names, and out of the tree."""
    text = "tests/tree/references.py, docs/operating.md, `redis.store`, `os._exit`, `stale_in_page`"

    assert list(stale(text)) == []


def test_comments_and_docstrings_are_read_and_strings_are_not(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    lines = ['"""See a.py."""', 'NAME = "b.py"  # c.py', "def f():  # why", '    """d.py"""']
    module.write_text("\n".join([*lines, '    return """', 'e.py # f.py"""']))

    assert list(stale_in_module(module)) == ["1: a.py", "2: c.py", "4: d.py"]


def test_a_page_may_name_the_files_that_it_writes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`app.py` and `other.py`:\n\n<!-- file: app.py -->\n```python\n```\n")

    assert list(stale_in_page(page)) == ["other.py"]
