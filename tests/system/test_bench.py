"""What the bench times is still accepted: its figures are of what a server or a client does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bench import client, device, growth, pages, randomize, redeem, separate, stated, tokens
from bench.__main__ import PARTS
from bench.table import Table, as_json, figure

ROOT = Path(__file__).parents[2]
MOMENT = 1e-9  # seconds: one call


def test_a_document_says_what_each_part_measures() -> None:
    text = (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`[\w-]+`(?:, )?)+) \|", text, re.MULTILINE)

    assert {name for row in rows for name in re.findall(r"[\w-]+", row)} == set(PARTS)


def test_the_intake_counts_what_redeem_times(tmp_path: Path) -> None:
    intake = redeem.Intake(tmp_path)
    row = intake.row(2, 1)  # refuses every verdict but `counted`
    intake.close()

    assert int(str(row["bytes with tokens"])) - int(str(row["bytes bare"])) == 256


def test_the_issuer_signs_what_tokens_times(tmp_path: Path) -> None:
    """A request for one answer, and one for all that an account may have."""
    timed = [row["what"] for row in tokens._issuing(tmp_path, MOMENT)]  # refuses all but 200

    assert f"issuer: request of {tokens.ANSWERS}" in timed


def test_the_persons_whose_records_are_timed_have_consented(tmp_path: Path) -> None:
    arguments = ("http://127.0.0.1:9", str(tmp_path), 20)
    figures = separate.run(client.record_persons, *arguments)

    assert figures["p50"] > 0  # it has counted the answers that were stored


def test_every_report_whose_sending_is_timed_arrives(tmp_path: Path) -> None:
    with client.Listener(client._counting) as sink:
        separate.run(client.send_alone, sink.url, str(tmp_path), 5)

    assert sink.reports == 5


def test_every_case_that_randomize_times_can_be_defined() -> None:
    cases = list(randomize._cases())

    assert {case.selected_by for case in cases} >= {"1 of 2", "mean", "distribution", "ranges"}


@pytest.mark.parametrize("cost", growth.COSTS, ids=lambda cost: cost.name)
def test_the_sizes_of_a_cost_are_enough_for_its_exponent(cost: growth.Cost) -> None:
    sizes = cost.sizes(quick=False)

    assert len(sizes) >= 7
    assert (sizes[0], sizes[-1]) == (cost.least, cost.most)
    assert cost.us(sizes[0]) > 0


def test_an_idle_device_wakes_for_what_is_due_and_its_log_is_bounded(tmp_path: Path) -> None:
    sizes = separate.run(device.log, "http://127.0.0.1:9", str(tmp_path), 300)

    assert 0 < device.wakes() <= device.MOST_WAKES
    assert 0 < sizes["later"] <= device.MOST_LOG_KB


def test_every_page_is_viewed() -> None:
    viewed = {str(row["where"]).partition(" ")[0] for row in pages.run(quick=True).rows}

    assert viewed >= {"overview", "planner", "keys", "collection", "compare", "contrast", "report"}


def state(folder: Path, file: str, day: str, load: float, value: float) -> None:
    table = Table("", [{**figure("us", value, "SQLite"), "load": load}, {"k": 3}])
    (folder / file).write_text(as_json(day, {"load before": 0.0}, {"ingest": table}))


def test_a_figure_is_compared_with_that_of_the_newest_day_at_the_nearest_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state(tmp_path, "before.json", "2026-11-20", 8.0, 10.0)
    state(tmp_path, "busy.json", "2026-11-21", 20.0, 80.0)
    state(tmp_path, "quiet.json", "2026-11-21", 1.0, 40.0)
    (tmp_path / "other.json").write_text(json.dumps({"day": "2026-11-22", "machine": {}}))
    run = Table("", [figure("us", 60.0, "SQLite"), figure("us", 5.0, "new"), {"k": 3}])
    ratios = {}
    for load in (2.0, 17.0):
        monkeypatch.setattr(stated, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        shown = stated.compared("ingest", run, tmp_path)
        ratios[load] = [row.get("x last") for row in shown.rows], shown.notes

        assert [row["load"] for row in shown.rows] == [load] * 3

    assert ratios == {
        2.0: ([1.5, None, None], ("x last: over the figure in bench/history/quiet.json, load 1.",)),
        17.0: (
            [0.75, None, None],
            ("x last: over the figure in bench/history/busy.json, load 20.",),
        ),
    }


def test_a_part_without_stated_figures_is_compared_with_none(tmp_path: Path) -> None:
    shown = stated.compared("ingest", Table("", [figure("us", 60.0)]), tmp_path)

    assert shown.rows[0].keys() >= {"load"}
    assert "x last" not in shown.rows[0]
    assert shown.notes == ()
