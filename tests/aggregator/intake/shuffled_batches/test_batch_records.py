"""What a shuffler signs of a batch is compared with what has come of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from veilcount_aggregator.intake.shuffled_batches import batch_intake
from veilcount_aggregator.intake.shuffled_batches.batch_checks import require_numbers, require_time
from veilcount_aggregator.records.shuffled_batches import record_store
from veilcount_aggregator.service import Aggregator
from veilcount_serving.findings import Severity
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState
from veilcount_shared.shuffling.part import BatchPart

from ...operate.doctor.doctor_fixtures import examine_deployment
from .batch_fixtures import TestShuffler


def whole(shuffler: TestShuffler) -> list[BatchPart]:
    return shuffler.batch([shuffler.seal(number % 2) for number in range(6)])


def record_of(shuffler: TestShuffler, part: BatchPart, **changed: Any) -> BatchRecord:
    """Return the record of the batch of a part; `changed` is what it states otherwise."""
    head = part.head
    numbers: dict[str, Any] = {
        "reports": head.reports,
        "covers": head.covers,
        "digest": head.digest,
    } | changed
    record = BatchRecord(BatchState.HANDED_OVER, head.crowd_id, head.period, **numbers)
    signed: BatchRecord = shuffler.sign(record)
    return signed


def ended(shuffler: TestShuffler, part: BatchPart, state: BatchState) -> BatchRecord:
    signed: BatchRecord = shuffler.sign(BatchRecord(state, part.head.crowd_id, part.head.period))
    return signed


def refusals(shuffler: TestShuffler) -> list[str]:
    shuffler.deployed.aggregator.flush()
    counts = shuffler.deployed.aggregator.store.service_counts()
    return [counter.word for counter in counts if counter.what == "batch"]


DIFFERENCES = {"reports": 7, "covers": 1, "digest": bytes([1]) * 32}


@pytest.mark.parametrize("name", DIFFERENCES)
@pytest.mark.parametrize("parts", [1, 2])
def test_a_record_of_another_batch_than_has_come_is_refused(
    shuffler: TestShuffler, name: str, parts: int
) -> None:
    """By name, with a finding of doctor; that of the batch itself is taken."""
    first, *_ = sent = whole(shuffler)[:parts]
    assert {shuffler.send(part).status for part in sent} == {200}
    reply = shuffler.send_record(record_of(shuffler, first, **{name: DIFFERENCES[name]}))

    assert (reply.status, reply.problem) == (409, "record-differs")
    assert refusals(shuffler) == ["record-differs"]
    finding = examine_deployment(shuffler.deployed)["batches"]
    assert finding.state is Severity.WRONG
    assert "a shuffler's record was refused" in finding.what
    assert shuffler.send_record(record_of(shuffler, first)).status == 200


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_batch_that_another_record_precedes_is_refused(shuffler: TestShuffler, name: str) -> None:
    first, _ = whole(shuffler)
    assert (
        shuffler.send_record(record_of(shuffler, first, **{name: DIFFERENCES[name]})).status == 200
    )

    assert shuffler.send(first).problem == "record-differs"
    assert shuffler.entries() == {}
    assert refusals(shuffler) == ["record-differs"]


def test_a_batch_that_its_record_precedes_is_taken(shuffler: TestShuffler) -> None:
    """Another one after that is a second batch still."""
    parts = whole(shuffler)
    assert shuffler.send_record(record_of(shuffler, parts[0])).status == 200
    assert [shuffler.send(part).status for part in parts] == [200, 200]
    second = shuffler.batch([shuffler.seal(1)] * 6, batch_id=bytes(16))[0]

    assert shuffler.send(second).problem == "second-batch"


@pytest.mark.parametrize("state", [BatchState.EXPIRED, BatchState.BELOW_LEAST])
def test_a_batch_whose_parts_are_all_here_has_no_other_end(
    shuffler: TestShuffler, state: BatchState
) -> None:
    first, last = whole(shuffler)
    shuffler.send(first)
    record = ended(shuffler, first, state)
    shuffler.send(last)

    assert shuffler.send_record(record).problem == "record-differs"
    assert shuffler.send_record(ended(shuffler, first, BatchState.LOST)).status == 200


def test_a_batch_of_which_parts_are_missing_may_expire(shuffler: TestShuffler) -> None:
    first, _ = whole(shuffler)
    shuffler.send(first)

    assert shuffler.send_record(ended(shuffler, first, BatchState.EXPIRED)).status == 200


def test_planted_a_record_that_is_not_compared_is_taken(
    shuffler: TestShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_store, "_require_same_batch", lambda *_: None)
    first, last = whole(shuffler)
    shuffler.send(first)
    shuffler.send(last)

    assert shuffler.send_record(record_of(shuffler, first, reports=7)).status == 200


# -- retries of what has come ----------------------------------------------------------------------


@pytest.mark.parametrize("days", [36, 50, 90])
def test_a_retry_of_a_whole_batch_is_answered_at_any_time(
    shuffler: TestShuffler, days: int
) -> None:
    """Its last answer was lost; also where the batch was closed meanwhile. It counts once."""
    first, last = whole(shuffler)
    shuffler.send(first)
    answer, counters = shuffler.send(last).json, shuffler.counters()
    later(shuffler, days)

    assert shuffler.send(last).json == answer
    assert answer["missing"] == []
    assert shuffler.counters() == counters == [3, 3]


@pytest.mark.parametrize("days", [36, 50])
def test_a_retry_of_an_unfinished_batch_is_too_late(shuffler: TestShuffler, days: int) -> None:
    """Its other parts are not taken any more: answered, its shuffler would go on with them."""
    first, last = whole(shuffler)
    shuffler.send(first)
    later(shuffler, days)

    assert [shuffler.send(part).problem for part in (first, last)] == ["batch-late"] * 2
    second = shuffler.batch([shuffler.seal(1)] * 6, batch_id=bytes(16))[0]
    assert shuffler.send(second).problem == "second-batch"


def later(shuffler: TestShuffler, days: int) -> None:
    """Be so many days later, what is due then closed."""
    shuffler.deployed.clocks.now += timedelta(days=days)
    aggregator: Aggregator = shuffler.deployed.aggregator
    aggregator._close_batches([shuffler.series()])


def test_planted_a_retry_that_looks_at_the_time_is_refused(
    shuffler: TestShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was once: its shuffler recorded a batch as expired that was counted."""
    parts = whole(shuffler)
    assert [shuffler.send(part).status for part in parts] == [200, 200]
    later(shuffler, 36)
    assert shuffler.send(parts[1]).status == 200
    now = shuffler.deployed.clocks.now

    def both(origin: Any, head: Any, **named: Any) -> None:
        require_numbers(origin, head, **named)
        require_time(origin, now)

    monkeypatch.setattr(batch_intake, "require_numbers", both)

    assert shuffler.send(parts[1]).problem == "batch-late"
