"""What follows from each outcome of a body, without a state, a network or a clock."""

from __future__ import annotations

import pytest

from veilcount_client.delivery.decisions import Effects, decide, decide_verdicts
from veilcount_client.delivery.transport import Delivered, Later, Rejected
from veilcount_client.state import QueuedReport
from veilcount_client.state.losses import Loss
from veilcount_shared.report import Report
from veilcount_shared.verdict import UNKNOWN_VERDICT, Verdict

REPORT = Report("00" * 32, 0, 0, bytes(16), 0, b"\0")
QUEUED = [QueuedReport(number, b"person", REPORT, 0.0, 1) for number in range(len(Verdict))]
ONE = QUEUED[:1]


def test_every_report_is_delivered_dropped_or_retried_and_never_two_of_them() -> None:
    effects = decide(QUEUED, Delivered(tuple(Verdict)))

    retried = [report.number for report in effects.retried]
    numbers = [*effects.delivered, *effects.dropped, *retried]
    assert sorted(numbers) == [report.number for report in QUEUED]
    assert (len(effects.delivered), len(effects.dropped), len(retried)) == (2, 4, 3)


def test_an_unknown_verdict_keeps_its_report_and_the_others_are_applied() -> None:
    effects = decide(QUEUED[:3], Delivered((Verdict.STALE, UNKNOWN_VERDICT, Verdict.COUNTED)))

    assert (effects.retried, effects.delivered) == (QUEUED[1:2], [2])
    assert effects.dropped == {0: Loss.STALE}


@pytest.mark.parametrize("verdict", [each for each in Verdict if each.dropped])
def test_a_dropped_report_is_lost_by_its_verdict(verdict: Verdict) -> None:
    assert decide_verdicts(ONE, [verdict]).dropped == {0: Loss(verdict.value)}


@pytest.mark.parametrize("verdict", Verdict)
def test_only_a_closing_closes_rows(verdict: Verdict) -> None:
    assert bool(decide_verdicts(ONE, [verdict]).closed) == (verdict is Verdict.CLOSED)


def test_what_could_not_be_sent_is_all_tried_again_and_settles_nothing() -> None:
    """No row got through, so no failure of any is forgotten."""
    effects = decide(QUEUED, Later("timeout", 60.0, seen=False))

    assert effects == Effects(retried=QUEUED, after=60.0, seen=False)


def test_a_rejected_body_drops_all_of_its_reports() -> None:
    effects = decide(QUEUED, Rejected("400"))

    assert effects.dropped == dict.fromkeys(range(len(QUEUED)), Loss.MALFORMED)
    assert (effects.delivered, effects.retried) == ([], [])


def test_a_reply_of_fewer_verdicts_than_reports_is_a_defect() -> None:
    with pytest.raises(ValueError, match="shorter"):
        decide(QUEUED, Delivered((Verdict.COUNTED,)))
