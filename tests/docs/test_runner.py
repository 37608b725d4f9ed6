"""The runner itself: what is true passes, and whatever a page gets wrong is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from .links import anchors, broken
from .output_match import Untrue
from .page_parser import Block, Directive, Unreadable, steps
from .page_run import run


def fenced(language: str, *lines: str) -> str:
    return "\n".join(["", f"```{language}", *lines, "```", ""])


TRUE = {
    "an example": fenced("python", ">>> 1 + 1", "2"),
    "an example with a gap": fenced("python", ">>> list(range(99))", "[0, 1, ..., 98]"),
    "names that go on": fenced("python", "x = 2") + fenced("python", ">>> x", "2"),
    "a test": fenced("python", "def test_all_is_well(veilcount):", "    assert not veilcount.sent"),
    "a command": fenced("sh", "veilcount check collections.toml  # what it reveals"),
    "what it prints": fenced("console", "$ veilcount --help", "Usage: veilcount ...", "..."),
    "a failure that is meant": fenced(
        "console", "$ veilcount check no.toml", "veilcount: ...", "$ echo $?", "2"
    ),
    "a store": fenced("sh", "veilcount init --store sqlite:////var/lib/veilcount/store.db"),
    "a server": fenced(
        "console",
        "$ veilcount serve --dev --store sqlite:////var/lib/veilcount/store.db",
        "veilcount: serving at http://127.0.0.1:8420 from sqlite:////var/lib/... 1 worker, ...",
        "$ veilcount collections list --url https://stats.example.org --key veilcount_admin_...",
        "...",
    ),
    "a population": "<!-- population: theme 1000 dark=1 light=1 -->\n"
    + fenced(
        "console",
        "$ veilcount estimate theme --store sqlite:////var/lib/veilcount/store.db",
        "...n = 2,000 answers...",
    ),
    "a request": fenced("http", "GET /healthz", "", "HTTP/1.1 200 OK"),
    "a file": "<!-- file: app.py -->"
    + fenced("python", "x = 3")
    + fenced("python", ">>> import app", ">>> app.x", "3"),
    "an installation": fenced("sh", "pip install 'veilcount[aggregator]'"),
    "definitions": fenced(
        "toml",
        "[used]",
        'question = "Used?"',
        "boolean = true",
        "epsilon = 1",
        'unit = "user"',
        "from = 2027-01-01",
        "until = 2027-02-01",
    ),
}
UNTRUE = {
    "an example": fenced("python", ">>> 1 + 1", "3"),
    "an example that fails": fenced("python", ">>> 1 / 0", "2"),
    "a claim": fenced("python", "assert 1 + 1 == 3"),
    "a test": fenced("python", "def test_all_is_well(veilcount):", "    assert veilcount.sent"),
    "a name that is another page's": fenced("python", "client.record('theme', 'dark')"),
    "a command that is none": fenced("sh", "veilcount chekc collections.toml"),
    "a flag that is none": fenced("sh", "veilcount check collections.toml --nope"),
    "what is printed": fenced("console", "$ veilcount --version", "99.0"),
    "a failure": fenced("console", "$ veilcount check no.toml", "..."),
    "a failure in the middle": fenced(
        "console", "$ veilcount check no.toml", "...", "$ veilcount --help", "..."
    ),
    "an extra that is none": fenced("sh", "pip install 'veilcount[everything]'"),
    "another package": fenced("sh", "pip install veilcounts"),
    "a developers' command that is none": fenced("sh", "./dev nope"),
    "an unknown program": fenced("sh", "systemctl restart veilcount"),
    "definitions": fenced("toml", "[used]", 'question = "Used?"'),
    "a document": fenced("json", "{,}"),
    "a batch": fenced("json", '{"version": 2, "reports": []}'),
    "a reply": fenced("http", "GET /healthz", "", "HTTP/1.1 404 NOT FOUND"),
    "an unknown language": fenced("ruby", "puts 1"),
    "no language": fenced("", "veilcount serve"),
    "code by indentation": "\n    veilcount serve\n",
    "a block without an end": "```python\n1\n",
    "an unknown directive": "<!-- not rnu: why -->\n",
    "a reason without a block": "<!-- not run: why -->\n",
}


@pytest.mark.parametrize("page", TRUE.values(), ids=TRUE)
def test_a_true_page_passes(page: str, tmp_path: Path) -> None:
    assert run(page, "page", tmp_path) >= 1


@pytest.mark.parametrize("page", UNTRUE.values(), ids=UNTRUE)
def test_an_untrue_page_is_noticed(page: str, tmp_path: Path) -> None:
    wrong = (AssertionError, NameError, SyntaxError, Unreadable, Untrue, ValueError)

    with pytest.raises(wrong):
        run(page, "page", tmp_path)


def test_a_block_with_a_reason_is_not_run(tmp_path: Path) -> None:
    page = "<!-- not run: it never ends -->" + fenced("sh", "sleep forever")

    assert run(page, "page", tmp_path) == 0
    assert steps(page) == [Block("sh", "sleep forever\n", 3, unrun="it never ends")]


def test_directives_keep_their_position() -> None:
    page = "<!-- now: 2027-03-15 -->" + fenced("sh", "veilcount --help")

    assert steps(page)[0] == Directive("now", "2027-03-15", 1)


def test_all_clocks_show_the_day_of_a_page(tmp_path: Path) -> None:
    doctor = "$ python -m veilcount_client doctor --collections collections.toml"
    page = "<!-- now: 2027-03-15 -->" + fenced("console", doctor, "...it is 2027-03-15...")

    with pytest.raises(Untrue, match="failed with 1"):  # there is no consent yet
        run(page, "page", tmp_path)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[here](#a-heading-of-two)", []),
        ("[there](other.md#elsewhere) and `tests/one.py`", []),
        ("[gone](gone.md)", ["gone.md"]),
        ("![gone](gone.png)", ["gone.png"]),
        ("[gone](other.md#nowhere)", ["other.md#nowhere"]),
        ("[gone](#nowhere)", ["#nowhere"]),
        ("`tests/two.py` holds it", ["tests/two.py"]),
        ("[far](https://example.org/gone)", []),
    ],
)
def test_links_lead_somewhere(text: str, wrong: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A heading, of two\n\n{text}\n", encoding="utf-8")
    (tmp_path / "other.md").write_text("## Elsewhere\n", encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "one.py").touch()

    assert list(broken(page, tmp_path)) == wrong


def test_anchors_are_those_that_forges_make() -> None:
    page = "# What `record()` does\n```sh\n# no heading\n```\n## Epsilon, and [units](u.md)\n"

    assert anchors(page) == {"what-record-does", "epsilon-and-units"}
