"""The pages of cells in docs: as notebooks, run as a reader runs them, true of the data."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from docs.notebook import PAGES, cells, notebook, write

from veilcount_aggregator.operate.demo.campaign import TRAILS, Campaign, Question
from veilcount_aggregator.operate.demo.deployment import DemoClock, deploy
from veilcount_aggregator.operate.demo.run import DemoResult, DemoRun
from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_analysis.kinds.features import MomentTerms, features_of, moment_figures

from .page_parser import ROOT

NEARBY = 2  # of what is tapped first
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
#: runs a notebook's cells as Jupyter does, without what `[reader]`, pandas and matplotlib lack
RUNNER = """
import ast, json, sys

LACKING = {"click", "flask", "granian", "msgspec", "opendp", "polars", "pyarrow", "redis", "rich",
    "scipy", "arro3", "veilcount_aggregator"}

class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in LACKING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Lacking())
import matplotlib
matplotlib.use("agg")
names, shown = {}, []
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            shown.append(repr(eval(compile(ast.Expression(last.value), "cell", "eval"), names)))
from matplotlib import pyplot
closed, taps, again = names["closed"], names["taps"], names["reader"].releases("way_there_central")
print(json.dumps({
    "map_stays": names["map_stays"], "least": names["least"], "price": names["price"],
    "wanted": names["wanted"]["of"].iloc[0], "by_hand": names["by_hand"],
    "figure": names["first"]["figure"], "closed": closed["figure"].tolist(),
    "open": int(closed["open_period"].sum()), "of": taps.of, "shown": shown,
    "unspent": bool(again.remaining().equals(names["budget"])),
    "drawings": len(pyplot.get_fignums()),
}))
"""
Facts = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside of the checkout, with the notebooks."""
    path = tmp_path_factory.mktemp("analysing")
    write(path)
    return path


@pytest.fixture(scope="module")
def ran(folder: Path) -> Iterator[tuple[Facts, DemoResult]]:
    """What `analysing` computed, and the true answers."""
    campaign = Campaign(NOW)
    with deploy(campaign, DemoClock(campaign.begins), clients=0) as place:
        demo = DemoRun.prepare(campaign, place, devices=4_000, clients=0, seed=2)
        result = demo.play(lambda *_: None)
        _, key = create_key(place.aggregator.store, Role.ANALYST, "analyst", NOW)
        place.aggregator.catalog_cache.refresh()
        environ = os.environ | {"VEILCOUNT_URL": place.url, "VEILCOUNT_KEY": key}
        run = subprocess.run(
            [sys.executable, "-c", RUNNER, str(folder / "analysing.ipynb")],
            cwd=folder, env=environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr[-2000:]
        yield json.loads(run.stdout), result


def test_its_decisions_are_those_of_the_true_answers(ran: tuple[Facts, DemoResult]) -> None:
    facts, result = ran
    trails, taps = result.truth(Question.TRAIL), result.truth(Question.FIRST_TAP)
    screens = (taps.where(taps.segments == screen) for screen in (0, 1))
    on_list, on_map = (np.bincount(part.values)[NEARBY] / len(part) for part in screens)

    assert facts["map_stays"] is bool(on_map - on_list > facts["least"]) is True
    assert facts["wanted"] == TRAILS[np.bincount(trails.values).argmax()]
    assert facts["by_hand"] == pytest.approx(facts["figure"])
    assert facts["closed"] == sorted(facts["closed"])
    assert facts["open"] == 0


def test_it_writes_a_file_and_spends_nothing(ran: tuple[Facts, DemoResult], folder: Path) -> None:
    facts, _ = ran
    lines = (folder / "first_tap.csv").read_text(encoding="utf-8").splitlines()

    assert len(lines) == 1 + len(facts["of"])
    assert facts["unspent"]
    assert "spends epsilon 0.5" in facts["price"]
    assert facts["drawings"] == 3


def test_each_result_is_shown_on_one_screen(ran: tuple[Facts, DemoResult]) -> None:
    facts, _ = ran

    assert len(facts["shown"]) > 10
    assert all(len(text.splitlines()) <= 70 for text in facts["shown"])
    assert not any("'figures'" in text or '"figures"' in text for text in facts["shown"])


def test_its_regression_is_that_of_all_persons_within_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At 0.9999: with another seed, one of three intervals would miss 3 times in 10,000."""
    monkeypatch.chdir(ROOT / "docs")
    names = runpy.run_path(str(ROOT / "docs" / "regression.py"))
    terms = MomentTerms(level=0.9999, regress="hours")
    rows = list(moment_figures(features_of(names["work"]), names["moments"], terms))[-3:]
    age, education, intercept = names["exact"]

    assert (age, education) == pytest.approx((0.0607, 0.6825), abs=1e-4)
    for row, exact in zip(rows, (age, education, intercept), strict=True):
        assert row.low < exact < row.high
    assert not rows[0].low < education < rows[0].high
    assert names["regression"]["exact"].tolist() == names["exact"].tolist()


# -- from cells to a notebook ----------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_every_line_of_a_page_is_in_its_cells(name: str, tmp_path: Path) -> None:
    """In order, each once; written twice, the bytes are the same."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    rows = notebook(text)["cells"]
    code = ["".join(row["source"]) for row in rows if row["cell_type"] == "code"]
    markdown = ["".join(row["source"]) for row in rows if row["cell_type"] == "markdown"]
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    first, second = (write(tmp_path / part) for part in "ab")

    assert [line for source in code for line in source.splitlines() if line] == lines
    assert markdown[0].startswith("# ")
    assert not any(line.startswith("# %%") for source in markdown for line in source.splitlines())
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_cells_are_what_stands_between_their_marks() -> None:
    text = "# %% [markdown]\n# # Title\n#\n# Text\n\n# %%\nx = 1\n\n\ny = 2\n"

    assert list(cells(text)) == [("markdown", "# Title\n\nText"), ("code", "x = 1\n\n\ny = 2")]
