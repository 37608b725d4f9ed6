"""Requests that the bench times are still accepted: their figures are of what a server does."""

from __future__ import annotations

from pathlib import Path

from bench import redeem, tokens

MOMENT = 1e-9  # seconds: one call


def test_the_intake_counts_what_redeem_times(tmp_path: Path) -> None:
    intake = redeem.Intake(tmp_path)
    row = intake.row(2, 1)  # refuses every verdict but `counted`
    intake.close()

    assert int(str(row["bytes with tokens"])) - int(str(row["bytes bare"])) == 256 + 2


def test_the_issuer_signs_what_tokens_times(tmp_path: Path) -> None:
    """A request for one answer, and one for all that an account may have."""
    timed = [row["what"] for row in tokens._issuing(tmp_path, MOMENT)]  # refuses all but 200

    assert f"issuer: request of {tokens.ANSWERS}" in timed
