"""The runner itself: whatever a page gets wrong is noticed. What is true passes in the pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from .links import broken
from .output_match import Untrue
from .page_parser import Block, Directive, Unreadable, steps
from .page_run import run


def fenced(language: str, *lines: str) -> str:
    return "\n".join(["", f"```{language}", *lines, "```", ""])


UNTRUE = {
    "an example": fenced("python", ">>> 1 + 1", "3"),
    "a claim": fenced("python", "assert 1 + 1 == 3"),
    "a test": fenced("python", "def test_all_is_well(veilcount):", "    assert veilcount.sent"),
    "a name that is another page's": fenced("python", "client.record('theme', 'dark')"),
    "a command that is none": fenced("sh", "veilcount chekc collections.toml"),
    "a flag that is none": fenced("sh", "veilcount check collections.toml --nope"),
    "what is printed": fenced("console", "$ veilcount --version", "99.0"),
    "a failure": fenced("console", "$ veilcount check no.toml", "..."),
    "a failure in the middle": fenced("console", "$ veilcount check no.toml", "...", "$ ls", "..."),
    "an extra that is none": fenced("sh", "pip install '.[everything]'"),
    "a package that no index has": fenced("sh", "pip install 'veilcount[aggregator]'"),
    "a developers' command that is none": fenced("sh", "./dev nope"),
    "an unknown program": fenced("sh", "systemctl restart veilcount"),
    "an unknown program behind a pipe": fenced("sh", "cat collections.toml | tee copy"),
    "a pipe whose first command fails": fenced("sh", "veilcount encode collections.toml | cat"),
    "definitions": fenced("toml", "[used]", 'question = "Used?"'),
    "a document": fenced("json", "{,}"),
    "a batch": fenced("json", '{"version": 2, "reports": []}'),
    "a reply": fenced("http", "GET /healthz", "", "HTTP/1.1 404 NOT FOUND"),
    "no language": fenced("", "veilcount serve"),
    "code by indentation": "\n    veilcount serve\n",
    "a block without an end": "```python\n1\n",
    "an unknown directive": "<!-- not rnu: why -->\n",
    "a reason without a block": "<!-- not run: why -->\n",
}


@pytest.mark.parametrize("page", UNTRUE.values(), ids=UNTRUE)
def test_an_untrue_page_is_noticed(page: str, tmp_path: Path) -> None:
    wrong = (AssertionError, NameError, SyntaxError, Unreadable, Untrue, ValueError)

    with pytest.raises(wrong):
        run(page, "page", tmp_path)


def test_directives_belong_to_the_block_after_them_or_keep_their_position(tmp_path: Path) -> None:
    """A block with a reason is not run."""
    page = "<!-- now: 2027-03-15 --><!-- not run: it never ends -->".replace("><", ">\n<")
    page += fenced("sh", "sleep forever")

    assert run(page, "page", tmp_path) == 0
    assert steps(page) == [
        Directive("now", "2027-03-15", 1),
        Block("sh", "sleep forever\n", 4, unrun="it never ends"),
    ]


def test_all_clocks_show_the_day_of_a_page(tmp_path: Path) -> None:
    doctor = "$ python -m veilcount_client doctor --collections collections.toml"
    page = "<!-- now: 2027-03-15 -->" + fenced("console", doctor, "...it is 2027-03-15...")

    with pytest.raises(Untrue, match="failed with 1"):  # there is no consent yet
        run(page, "page", tmp_path)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[here](#a-heading-of-two) and [far](https://example.org/gone)", []),
        ("[there](other.md#elsewhere) and `tests/one.py`", []),
        ("[gone](gone.md)", ["gone.md"]),
        ("[gone](other.md#nowhere)", ["other.md#nowhere"]),
        ("[gone](#no-heading)", ["#no-heading"]),
        ("`tests/two.py` holds it", ["tests/two.py"]),
    ],
)
def test_links_lead_somewhere(text: str, wrong: list[str], tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "one.py").touch()
    (tmp_path / "u.md").touch()
    (tmp_path / "other.md").write_text("## Elsewhere\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        f"# A heading, of [`two`](u.md)\n```sh\n# no heading\n```\n{text}\n", encoding="utf-8"
    )

    assert list(broken(page, tmp_path)) == wrong
