"""Tables of the docs are complete: metrics, settings of `serve`, combinations of settings."""

from __future__ import annotations

import re
from pathlib import Path

import click
from bench.combinations import AXES, lines, published_rows
from packaging.requirements import Requirement

from veilcount_aggregator.operate.cli import serve
from veilcount_aggregator.records.api_keys import Role

from ..aggregator.web.api.deployment_fixtures import FILE, deployment
from ..matrix.adversaries import ADVERSARIES
from ..matrix.cells import ONE_BY_ONE, rows
from ..security.supply.__main__ import LOCKS
from ..security.supply.bill import licence
from ..security.supply.lock import pinned
from ..test_project_files import PROJECTS

PAGE = Path(__file__).parents[2] / "docs" / "operating.md"
TYPE = re.compile(r"^# TYPE (\w+) ", re.MULTILINE)
#: an issuer's and a shuffler's have tables of their own
METRICS = re.compile(r"^\| (`veilcount_(?!issuer_|shuffler_)[^|]*) \|", re.MULTILINE)
SETTING = re.compile(r"^\| `(--[\w-]+)` \| `(VEILCOUNT_\w+)` \|", re.MULTILINE)


def test_every_metric_has_a_row_and_every_row_a_metric(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE, max_counter_memory=1 << 30) as deployed:
        answer = deployed.ask("GET", "/metrics", key=deployed.key(Role.ANALYST))
    exported = TYPE.findall(answer.body.decode())
    rows = METRICS.findall(PAGE.read_text(encoding="utf-8"))

    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(exported)


def test_every_setting_of_serve_has_a_row_and_every_row_a_setting() -> None:
    settings = {
        (name, option.envvar)
        for option in serve.command.params
        if isinstance(option, click.Option) and option.envvar
        for name in option.opts
        if name.startswith("--")
    }
    rows = SETTING.findall(PAGE.read_text(encoding="utf-8"))

    assert sorted(rows) == sorted(settings)


def licences(page: str) -> dict[str, set[str]]:
    """Return the table of licences: the packages of each."""
    section = page.partition("\n### Licences\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|`]+) \| (`[^|]+) \|$", section, re.MULTILINE)
    return {terms: set(re.findall(r"`([^`]+)`", packages)) for terms, packages in rows}


def test_the_licence_of_each_package_is_that_of_its_metadata() -> None:
    expected: dict[str, set[str]] = {}
    for part in pinned(LOCKS[0]):
        if not part.developing:
            expected.setdefault(licence(part), set()).add(part.name)
    page = PAGE.read_text(encoding="utf-8")

    assert licences(page) == expected
    assert licences(page.replace("`cffi`", "`gmpy2`")) != expected


def test_what_is_under_the_lgpl_comes_with_an_extra_alone_that_says_so() -> None:
    page = PAGE.read_text(encoding="utf-8")
    bound = {name for terms, names in licences(page).items() if "LGPL" in terms for name in names}
    always = {Requirement(text).name for project in PROJECTS for text in project["dependencies"]}

    assert bound == {"gmpy2"}
    assert not bound & always
    for project in PROJECTS:
        for extra, requirements in project["optional-dependencies"].items():
            if bound & {Requirement(text).name for text in requirements}:
                (row,) = re.findall(rf"^\| `{extra}` \|.*$", page, re.MULTILINE)
                assert "LGPL" in row


def test_the_threat_model_has_all_rows_of_the_matrix() -> None:
    """A change of the rows needs new figures: `./dev bench combinations --markdown`."""
    counts = [
        sum(
            all(getattr(row, axis) in own for axis, own in zip(AXES, members, strict=True))
            for row in rows()
        )
        for members, _ in published_rows()
    ]

    assert counts == [count for _, count in published_rows()]
    assert sum(counts) == len(rows())


def test_a_line_of_the_threat_model_hides_nothing_that_is_joined() -> None:
    """Rows that fall to the same adversaries are one line, with the largest share of them."""

    def row(linkage: str, server: str) -> dict[str, str]:
        members = {"linkage": linkage, "presence": "public", "route": "relay", "life": "always"}
        return members | dict.fromkeys(ADVERSARIES, "") | {"server": server}

    kept_apart, joined = "questions 3 of 46 (9)", "**questions 23 of 46 (9)**"
    table_rows = [
        row("none", kept_apart),
        row("none", joined),
        row("token", kept_apart),
        row("period", kept_apart),
        row("collection", joined.replace("23", "46")),
    ]
    cells = [line.cells[:6] for line in lines(table_rows)]

    assert cells == [
        [ONE_BY_ONE, "public", "always", "collection, none", "3", "questions 100%"],
        [ONE_BY_ONE, "public", "always", "period, token", "2", "chance"],
    ]
