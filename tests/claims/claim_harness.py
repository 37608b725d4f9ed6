"""A claim: a sentence of the theory, the code that embodies it, and the check that computes it.

A test that is decorated with `@claim` runs once with what is claimed and once with each planted
falsehood, which the same check must reject; `holds` says which of the two it is. Its docstring's
first paragraph is the sentence on the page `docs/claims.md`, which is made from the tests:

    python -m tests.claims.claim_harness
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "claims.md"
THEMES = (
    "definitions",
    "sensitivity",
    "noise",
    "randomness",
    "composition",
    "attackers",
    "local_model",
    "shuffling",
    "continual_counting",
)
PAPERS = "## Papers\n"
COMPARISON = ""  # the module of a claim about what the product does not offer

Test = TypeVar("Test", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class Claim:
    """One row of the page."""

    test: str
    sentence: str
    module: str
    theme: str

    @property
    def row(self) -> str:
        name = Path(self.module).name
        embodied = f"[`{name}`](../{self.module})" if self.module else "(for comparison)"
        return f"| {self.sentence} | {embodied} | `{self.test}` |"


CLAIMS: dict[str, list[Claim]] = {}


def claim(module: str, true: object, *planted: object) -> Callable[[Test], Test]:
    """Declare a test of `stated` and `holds`: the claim, and falsehoods that it must reject."""

    def declare(test: Test) -> Test:
        sentence = " ".join((test.__doc__ or "").partition("\n\n")[0].split())
        theme = test.__module__.rpartition(".test_")[2]
        CLAIMS.setdefault(theme, []).append(Claim(test.__name__, sentence, module, theme))
        cases = [
            pytest.param(true, True, id="claim"),
            *(pytest.param(each, False, id=f"planted-{i}") for i, each in enumerate(planted, 1)),
        ]
        assert planted, "a claim without a planted falsehood may be a test that cannot fail"
        marked: Test = pytest.mark.parametrize(("stated", "holds"), cases)(test)
        return marked

    return declare


def theme_module(theme: str) -> ModuleType:
    return import_module(f"tests.claims.test_{theme}")


def page_lines() -> Iterator[str]:
    """Yield the page's sections: a theme's title, its module and its claims in order."""
    for theme in THEMES:
        title = (theme_module(theme).__doc__ or "").partition("\n")[0].rstrip(".")
        path = f"tests/claims/test_{theme}.py"
        yield f"## {title}"
        yield ""
        yield f"Checked in [`{Path(path).name}`](../{path})."
        yield ""
        yield "| claim | embodied in | test |"
        yield "|---|---|---|"
        yield from (each.row for each in CLAIMS[theme])
        yield ""


def render_page() -> str:
    """Return the page: introduction and papers as written, the tables as the tests declare them."""
    introduction, _, remainder = PAGE.read_text(encoding="utf-8").partition("\n## ")
    return "\n".join([introduction, *page_lines(), PAPERS + remainder.partition(PAPERS)[2]])


if __name__ == "__main__":  # as itself: the themes declare their claims to the imported module
    harness = import_module("tests.claims.claim_harness")
    PAGE.write_text(harness.render_page(), encoding="utf-8")
