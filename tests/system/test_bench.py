"""What the bench times is still accepted: its figures are of what a server or a client does."""

from __future__ import annotations

import re
from pathlib import Path

from bench import client, randomize, redeem, separate, tokens
from bench.__main__ import PARTS

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
