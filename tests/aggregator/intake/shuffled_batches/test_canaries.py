"""Canaries in batches: known by their marks, counted nowhere, declared, shown to no shuffler."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest

from veilcount_aggregator.intake.shuffled_batches.batch_checks import find_origin
from veilcount_aggregator.intake.shuffled_batches.batch_intake import BatchIntake
from veilcount_aggregator.intake.shuffled_batches.opening import open_part
from veilcount_aggregator.records.shuffled_batches import batch_entry
from veilcount_aggregator.records.shuffled_batches.batch_entry import BatchEntry
from veilcount_aggregator.records.shuffled_batches.batch_states import (
    batch_states,
    covers_of_periods,
)
from veilcount_aggregator.records.shuffler_canary_plans import CanaryPlan, add_canary_plan
from veilcount_aggregator.store import Cell
from veilcount_serving.errors import SettingsError
from veilcount_shared.limits import PSEUDONYM_BYTES, TOKEN_BYTES
from veilcount_shared.shuffling.part import BatchHead, BatchPart, batch_digest
from veilcount_shared.shuffling.plain_report import PlainReport
from veilcount_shared.shuffling.sealed_report import seal_report

from . import test_tokens_in_batches as tokens
from .batch_fixtures import AFTER_GRACE, TestShuffler
from .test_tokens_in_batches import Sender, issued, sender

__all__ = ["sender"]  # a fixture

CANARIES = 3  # of the 100 of `least`
COVERS = 142


def planned(shuffler: TestShuffler, periods: range = range(1)) -> CanaryPlan:
    store, series = shuffler.deployed.aggregator.store, shuffler.series("theme")
    plan = CanaryPlan.draw(series, periods, CANARIES)
    add_canary_plan(store, series, plan, AFTER_GRACE)
    return plan


def marked(shuffler: TestShuffler, mark: bytes) -> bytes:
    return shuffler.seal(0, "theme", mark=mark)


def canaries(shuffler: TestShuffler, plan: CanaryPlan) -> list[bytes]:
    return [marked(shuffler, mark) for mark in plan.marks(shuffler.crowd_id("theme"))]


def reports(shuffler: TestShuffler, number: int) -> list[bytes]:
    """Covers and reports, of which none has the message of the canaries."""
    return [shuffler.seal(1 + place % 3, "theme") for place in range(COVERS + number)]


def sent(shuffler: TestShuffler, sealed: Sequence[bytes]) -> list[dict[str, object]]:
    replies = [shuffler.send(part) for part in shuffler.batch(sealed, "theme")]
    assert {reply.status for reply in replies} == {200}, replies[0].body
    return [reply.json for reply in replies]


def entry(shuffler: TestShuffler) -> BatchEntry:
    (raw,) = shuffler.entries("theme").values()
    return BatchEntry.decode(raw)


def state(shuffler: TestShuffler) -> tuple[str, str]:
    store, now = shuffler.deployed.aggregator.store, shuffler.deployed.clocks.now
    batch = batch_states(store, store, shuffler.series("theme"), now)[0]
    return batch.state, batch.text


def check_that_canaries_count_nowhere(shuffler: TestShuffler) -> None:
    store, series = shuffler.deployed.aggregator.store, shuffler.series("theme")
    listed = shuffler.counters("theme")
    assert listed[0] == 0
    assert sum(listed) == COVERS + 100
    assert store.report_counts(series) == {Cell(0, 0): 100}
    assert covers_of_periods(store, series, range(1)) == COVERS
    assert (entry(shuffler).n, entry(shuffler).canaries) == (100, CANARIES)


def test_canaries_are_left_out_exactly_declared_and_at_their_positions(
    shuffler: TestShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_entry, "PART_REPORTS", 4)
    first, second, third = canaries(shuffler, planned(shuffler))
    others = reports(shuffler, 100)
    sent(shuffler, [others[0], first, *others[1:5], third, *others[5:], second])

    check_that_canaries_count_nowhere(shuffler)
    assert entry(shuffler).canary_positions == {0: 1, 1: COVERS + 102, 2: 6}
    of_canaries = "of which 3 are canaries of the operator"
    assert state(shuffler) == ("handed-over", f"handed over: 103 reports, {of_canaries}")


def test_canaries_that_are_taken_for_reports_are_noticed(shuffler: TestShuffler) -> None:
    """Planted: the operator's reports have no mark."""
    planned(shuffler)
    sent(shuffler, [shuffler.seal(0, "theme")] * 3 + reports(shuffler, 100))

    with pytest.raises(AssertionError):
        check_that_canaries_count_nowhere(shuffler)
    assert shuffler.counters("theme")[0] == 3


def test_a_shuffler_is_not_shown_how_many_canaries_a_part_has(shuffler: TestShuffler) -> None:
    answers = sent(shuffler, canaries(shuffler, planned(shuffler)) + reports(shuffler, 100))

    assert {(answer["accepted"], answer["unreadable"]) for answer in answers[:-1]} == {(4, 0)}


def test_a_mark_of_no_plan_is_unreadable(shuffler: TestShuffler) -> None:
    """Forged, of another period's crowd, of a number that the plan does not have; twice."""
    plan = planned(shuffler)
    genuine = plan.marks(shuffler.crowd_id("theme"))[0]
    more = dataclasses.replace(plan, canaries=CANARIES + 1)
    forged = [
        b"\1" * 16,
        genuine[:-1] + bytes([genuine[-1] ^ 1]),
        plan.marks(shuffler.crowd_id("theme", 1))[1],
        more.marks(shuffler.crowd_id("theme"))[CANARIES],
        CanaryPlan.draw(shuffler.series("theme"), range(1), 1).marks(shuffler.crowd_id("theme"))[0],
    ]
    marks = [*forged, genuine, genuine, bytes(15) + b"\1", genuine]
    sent(shuffler, [marked(shuffler, mark) for mark in marks] + reports(shuffler, 100))

    assert (entry(shuffler).unreadable, entry(shuffler).canaries) == (len(forged) + 3, 1)
    assert entry(shuffler).canary_positions == {0: 4096 + 1}, "the second part's second report"
    assert sum(shuffler.counters("theme")) == COVERS + 100
    assert entry(shuffler).n == 100


def test_whatever_is_before_a_canarys_mark_it_spoils_nothing(shuffler: TestShuffler) -> None:
    mark = planned(shuffler).marks(shuffler.crowd_id("theme"))[0]
    padded = bytes([1]) + b"\xff" * 100 + bytes(75) + mark
    other_version = bytes([2]) + bytes(175) + mark
    sealed = [shuffler.seal_plain(plain, "theme") for plain in (padded, other_version)]
    sent(shuffler, sealed + reports(shuffler, 100))

    assert (entry(shuffler).unreadable, entry(shuffler).canaries) == (2, 0)


def test_canaries_never_bring_a_batch_to_least(shuffler: TestShuffler) -> None:
    """The shuffler cannot tell them, and hands over; nothing of it is counted."""
    store, series = shuffler.deployed.aggregator.store, shuffler.series("theme")
    sent(shuffler, canaries(shuffler, planned(shuffler)) + reports(shuffler, 99))

    assert sum(shuffler.counters("theme")) == 0
    assert store.report_counts(series) == {}
    assert covers_of_periods(store, series, range(1)) == 0
    text = "not counted: fewer than 100 reports without the operator's canaries"
    assert state(shuffler) == ("below-least", text)
    assert entry(shuffler).counters == b""


def test_a_small_batch_without_canaries_counts_where_it_was_taken(shuffler: TestShuffler) -> None:
    """In development a batch of any size is taken: canaries alone bring one below `least`."""
    part = shuffler.batch(reports(shuffler, 2)[:4], "theme", reports=4, covers=0)[0]
    empty = BatchEntry.begin(part.head, "2026-12-05")
    taken = empty.with_part(part, 4, 0, np.zeros(4, np.int64), {})
    with_canary = empty.with_part(part, 4, 0, np.zeros(4, np.int64), {0: 3})

    assert (empty.is_counted(100), taken.is_counted(100)) == (False, True)
    assert not with_canary.is_counted(100)


def test_canaries_that_are_counted_for_least_are_noticed(
    shuffler: TestShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a batch is compared with `least` as its shuffler says."""
    monkeypatch.setattr(
        BatchEntry, "is_counted", lambda self, least: self.is_complete and self.reports >= least
    )
    sent(shuffler, canaries(shuffler, planned(shuffler)) + reports(shuffler, 99))

    assert sum(shuffler.counters("theme")) == COVERS + 99


def test_a_plan_is_of_three_percent_of_least_at_most_and_of_periods_of_its_own(
    shuffler: TestShuffler,
) -> None:
    store, series = shuffler.deployed.aggregator.store, shuffler.series("theme")
    planned(shuffler, range(2, 5))
    with pytest.raises(SettingsError, match="give 1 to 3, 3 % of `least`"):
        add_canary_plan(store, series, CanaryPlan.draw(series, range(1), 4), AFTER_GRACE)
    with pytest.raises(SettingsError, match="a plan has canaries in 2 to 4"):
        planned(shuffler, range(4, 9))

    planned(shuffler, range(2))
    planned(shuffler, range(5, 6))


def test_a_plans_canaries_are_of_its_periods_alone(shuffler: TestShuffler) -> None:
    plan = planned(shuffler, range(1, 2))
    shuffler.deployed.clocks.now += timedelta(days=1)
    sent(shuffler, canaries(shuffler, plan) + reports(shuffler, 100))

    assert (entry(shuffler).unreadable, entry(shuffler).canaries) == (3, 0)


@pytest.mark.parametrize("parts", [1, 2])
def test_on_every_engine_a_canary_among_tokens_spends_none(sender: Sender, parts: int) -> None:
    plan = CanaryPlan.draw(tokens.SERIES, range(1), 2)
    marks = plan.marks(sender.crowd_id)
    token = {"pseudonym": bytes(PSEUDONYM_BYTES), "token": bytes(TOKEN_BYTES)}
    plain = [PlainReport(b"\0", **token, mark=mark).encode() for mark in marks]
    canary_reports = [seal_report(sender.config, sender.crowd_id, 0, content) for content in plain]
    people = [sender.seal(1, *issued()) for _ in range(2)]
    sealed = [canary_reports[0], *people, canary_reports[1]]
    pieces = [b"".join(sealed)]
    if parts == 2:  # the first canary once more: the shuffler makes doubles
        pieces.append(seal_report(sender.config, sender.crowd_id, 0, plain[0]))
    digest = batch_digest(BatchPart(head(sender, 4, 1, b""), 0, piece).digest for piece in pieces)
    origin = find_origin([tokens.SERIES], {sender.key_id: sender.secret}, sender.crowd_id, 0)
    taken = [
        BatchIntake(sender.store, open_part).take(
            BatchPart(head(sender, 3 + parts, parts, digest), number, piece),
            origin,
            AFTER_GRACE,
            marks,
        )
        for number, piece in enumerate(pieces)
    ]

    assert tokens.counters(sender) == [0, 2]
    (raw,) = sender.store.batches(tokens.SERIES).values()
    assert BatchEntry.decode(raw).canary_positions == {0: 0, 1: 3}
    assert [part.totals.unreadable for part in taken] == [0, 1][:parts]


def head(sender: Sender, reports: int, parts: int, digest: bytes) -> BatchHead:
    filled = digest.ljust(32, b"\0")
    return BatchHead(bytes(16), sender.crowd_id, 0, reports, 0, filled, parts, tokens.SIZE)


def test_a_plan_does_not_show_its_key(shuffler: TestShuffler) -> None:
    plan = planned(shuffler)

    assert plan.key not in repr(plan)
