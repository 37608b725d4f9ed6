"""What a crowd becomes: handed over once, below its least, expired, lost; each with its record."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from veilcount_shared.shuffling.batch_record import BatchState
from veilcount_shared.shuffling.part import PART_REPORTS, BatchPart
from veilcount_shuffler.crowd_states import CrowdState
from veilcount_shuffler.errors import NotTaken, ShufflerError
from veilcount_shuffler.holding import EnvelopeAnswer
from veilcount_shuffler.serve import check_witness

from .parties import CheckingAggregator, HandClock, ShufflerStore, held, messages


@pytest.fixture
def clock() -> HandClock:
    """In the grace of the first period."""
    return HandClock()


@pytest.fixture
def store(tmp_path: Path, clock: HandClock) -> Iterator[ShufflerStore]:
    """A store with one collection."""
    store = ShufflerStore(tmp_path / "store", clock)
    yield store
    store.close()


def test_a_crowd_is_handed_over_with_its_covers_once(store: ShufflerStore) -> None:
    crowd, envelopes = store.crowd, messages(store.crowd, 150)
    assert held(store.worker().hold(envelopes), envelopes) == {e.sealed for e in envelopes}
    store.leave()
    store.rounds(3)

    batch = store.aggregator.sealed(crowd.crowd_id)
    assert len(batch) == 150 + 142
    assert len(set(batch) & {e.sealed for e in envelopes}) == 150
    assert sum(store.aggregator.messages(crowd).values()) == 292
    (record,) = store.aggregator.records
    assert (record.state, record.reports, record.covers) == (BatchState.HANDED_OVER, 150, 142)
    assert record.digest == store.aggregator.heads[crowd.crowd_id].digest
    assert store.aggregator.repeated == 0


def test_nothing_leaves_before_its_time(store: ShufflerStore, clock: HandClock) -> None:
    envelopes = messages(store.crowd, 150)
    store.worker().hold(envelopes)
    clock.now = store.crowd.leaves - timedelta(seconds=1)
    store.rounds()

    assert not store.aggregator.heads
    assert store.states().state(store.crowd.crowd_id) is CrowdState.OPEN


def test_the_order_is_not_that_of_arrival(store: ShufflerStore) -> None:
    """Ranks of arrival and of the batch do not go together; in a planted store they do."""
    envelopes = messages(store.crowd, 1000)
    store.worker().hold(envelopes)
    store.leave()
    store.rounds()
    batch = store.aggregator.sealed(store.crowd.crowd_id)
    arrival = {envelope.sealed: place for place, envelope in enumerate(envelopes)}
    ranks = [arrival[sealed] for sealed in batch if sealed in arrival]

    assert rank_z(sorted(ranks)) > 20  # planted: arrival order
    assert abs(rank_z(ranks)) < 5  # one in 1.7 million


def rank_z(ranks: list[int]) -> float:
    """Return Spearman's correlation with the places, in its standard deviations."""
    n = len(ranks)
    squares = sum((place - rank) ** 2 for place, rank in enumerate(ranks))
    return float((1 - 6 * squares / (n * (n * n - 1))) * (n - 1) ** 0.5)


def test_too_few_are_never_handed_over(store: ShufflerStore) -> None:
    """99 devices, one of which came twice; with one more the crowd leaves."""
    envelopes = messages(store.crowd, 99)
    store.worker().hold([*envelopes, envelopes[0]])
    store.leave()
    store.rounds()

    assert not store.aggregator.heads
    assert store.aggregator.states() == [BatchState.BELOW_LEAST]
    assert store.aggregator.records[0].reports == 0
    assert not list(store.settings.crowds.glob("*/*"))


def test_a_crowd_that_nobody_sent_to_is_recorded(store: ShufflerStore) -> None:
    store.leave()
    store.rounds()

    assert store.aggregator.states() == [BatchState.BELOW_LEAST]


def test_a_retry_counts_once(store: ShufflerStore) -> None:
    """Also at another worker; sealed afresh it would count twice."""
    envelopes = messages(store.crowd, 120)
    first, second = store.worker(), store.worker()
    first.hold(envelopes)
    assert second.hold(envelopes[:50]) == [EnvelopeAnswer.HELD] * 50
    store.leave()
    store.rounds()

    assert store.aggregator.heads[store.crowd.crowd_id].reports == 120


def test_a_late_report_learns_that_its_crowd_is_over(
    store: ShufflerStore, clock: HandClock
) -> None:
    """By our clock alone none is over: until the crowd is sealed the device keeps its report."""
    worker, (late, early) = store.worker(), messages(store.crowd, 2)
    clock.now = store.crowd.opens - timedelta(seconds=1)
    assert worker.hold([early]) == [EnvelopeAnswer.UNKNOWN]
    assert not list(store.settings.crowds.glob("*/*"))
    clock.now = store.crowd.closes
    assert worker.hold([late]) == [EnvelopeAnswer.UNAVAILABLE]
    store.leave()
    store.rounds()

    assert worker.hold([late]) == [EnvelopeAnswer.OVER]


def test_an_unknown_crowd_makes_no_file(store: ShufflerStore) -> None:
    (envelope,) = messages(store.crowd, 1)
    worker = store.worker()
    other = type(envelope)(bytes(16), envelope.period, envelope.sealed)
    moved = type(envelope)(envelope.crowd_id, envelope.period + 1, envelope.sealed)
    short = type(envelope)(envelope.crowd_id, envelope.period, envelope.sealed[:-1])

    assert worker.hold([other, moved, short]) == [
        EnvelopeAnswer.UNKNOWN,
        EnvelopeAnswer.UNKNOWN,
        EnvelopeAnswer.WRONG_SIZE,
    ]
    assert not list(store.settings.crowds.glob("*/*"))


def test_a_torn_tail_was_never_acknowledged(store: ShufflerStore) -> None:
    """Cut off by the next writer, and skipped by the shuffle; zeros of a power cut as well."""
    envelopes = messages(store.crowd, 130)
    store.worker().hold(envelopes[:120])
    store.close()
    (file,) = store.settings.crowds.glob("*/held.0")
    with file.open("ab") as torn:
        torn.write(bytes(251) + b"torn")
    store.worker().hold(envelopes[120:])
    store.leave()
    store.rounds()

    assert store.aggregator.heads[store.crowd.crowd_id].reports == 130


def test_parts_hold_the_batch(store: ShufflerStore) -> None:
    """A batch of three parts; the aggregator loses one after all were taken."""
    number = 2 * PART_REPORTS
    store.worker().hold(messages(store.crowd, number))
    store.leave()
    lost: list[bytes] = []

    def take(raw: bytes) -> list[int]:
        missing = CheckingAggregator.take_part(store.aggregator, raw)
        if not missing and not lost:
            lost.append(store.aggregator.parts[store.crowd.crowd_id].pop(1))
            return [1]
        return missing

    store.aggregator.take_part = take  # type: ignore[method-assign]
    store.rounds()

    assert lost
    assert len(store.aggregator.sealed(store.crowd.crowd_id)) == number + 142
    assert store.aggregator.states() == [BatchState.HANDED_OVER]


# -- the aggregator's absence, and clocks ----------------------------------------------------------


def test_an_aggregator_that_is_away_a_week_gets_the_batch(
    store: ShufflerStore, clock: HandClock
) -> None:
    store.worker().hold(messages(store.crowd, 150))
    store.leave()
    store.aggregator.away = True
    for _ in range(7):
        store.rounds(1)
        clock.advance(days=1)
    store.aggregator.away = False
    store.rounds()

    assert store.aggregator.heads[store.crowd.crowd_id].reports == 150


def test_an_aggregator_that_is_away_40_days_gets_a_record(
    store: ShufflerStore, clock: HandClock
) -> None:
    """Erased after 30 days; the record follows once it is back."""
    store.worker().hold(messages(store.crowd, 150))
    store.leave()
    store.aggregator.away = True
    for day in range(40):
        store.rounds(1)
        if day == 29:
            assert list(store.settings.crowds.glob("*/held.*"))
        clock.advance(days=1)
    assert not list((store.settings.crowds / store.crowd.crowd_id.hex()).glob("*"))
    store.aggregator.away = False
    store.rounds()

    assert store.aggregator.heads.get(store.crowd.crowd_id) is None
    states = {record.crowd_id: record.state for record in store.aggregator.records}
    assert states[store.crowd.crowd_id] is BatchState.EXPIRED


@pytest.mark.parametrize("hours", [-2, 2, 24 * 400])
def test_a_wrong_clock_hands_over_nothing(
    store: ShufflerStore, clock: HandClock, hours: float
) -> None:
    """It waits, and alerts; set right, it goes on. Nothing is erased meanwhile."""
    store.worker().hold(messages(store.crowd, 150))
    store.leave()
    right = clock.now
    clock.advance(hours=max(hours, 0))
    store.aggregator.clock_error = timedelta(hours=-hours)
    events = store.rounds()
    assert [event.what for event in events] == ["clock", "clock"]
    assert all(event.is_alert for event in events)
    assert not store.aggregator.heads
    clock.now, store.aggregator.clock_error = right, timedelta(minutes=59)
    store.served = type(store.served)(store.settings)
    store.rounds()

    assert store.aggregator.heads[store.crowd.crowd_id].reports == 150


def test_a_clock_that_jumps_while_the_aggregator_is_away_erases_nothing(
    store: ShufflerStore, clock: HandClock
) -> None:
    store.worker().hold(messages(store.crowd, 150))
    store.aggregator.away = True
    clock.now = store.crowd.expires + timedelta(days=1)
    store.rounds(5)

    assert list(store.settings.crowds.glob("*/held.*"))


def test_a_server_that_stood_still_for_months_hands_nothing_over(
    store: ShufflerStore, clock: HandClock
) -> None:
    store.worker().hold(messages(store.crowd, 150))
    clock.now = store.crowd.closes + timedelta(days=90)
    store.rounds()
    states = {record.crowd_id: record.state for record in store.aggregator.records}

    assert not store.aggregator.heads
    assert states[store.crowd.crowd_id] is BatchState.EXPIRED
    assert not list(store.settings.crowds.glob("*/*"))


def test_a_batch_that_is_refused_waits_with_an_alert(
    store: ShufflerStore, clock: HandClock
) -> None:
    """As a second batch of a crowd: an alert at every round, and no further part leaves."""
    store.worker().hold(messages(store.crowd, 150))
    store.leave()
    refused: list[bytes] = []

    def take(raw: bytes) -> list[int]:
        refused.append(raw)
        raise NotTaken(409, "second-batch")

    store.aggregator.take_part = take  # type: ignore[method-assign]
    (event,) = store.rounds(1)
    assert (event.what, event.is_alert) == ("crowd refused", True)
    assert "second-batch" in event.reason
    assert len(refused) == 1
    clock.now = store.crowd.expires
    store.rounds()

    assert BatchState.EXPIRED in store.aggregator.states()


# -- backups ---------------------------------------------------------------------------------------


def restored(tmp_path: Path, clock: HandClock, witness: Path | None) -> ShufflerStore:
    """Return a store that was backed up while its crowd was open, left, and was restored."""
    if witness:
        witness.mkdir()
    store = ShufflerStore(tmp_path / "store", clock, witness=witness)
    store.worker().hold(messages(store.crowd, 150))
    store.close()
    shutil.copytree(tmp_path / "store", tmp_path / "backup")
    store.leave()
    store.rounds()
    store.close()
    assert store.aggregator.states() == [BatchState.HANDED_OVER]
    store.aggregator.refuses_second = False  # the counts are safe; it is the people we look at
    backup = tmp_path / "backup"
    return ShufflerStore(backup, clock, witness=witness, aggregator=store.aggregator)


def test_without_a_witness_a_restored_store_gives_the_covers_away(
    tmp_path: Path, clock: HandClock
) -> None:
    """The fault that the witness is for: what is in both batches are the true reports."""
    store = restored(tmp_path, clock, None)
    check_witness(store.settings, store.hand_over())
    store.rounds()
    store.close()
    first, second = (
        {sealed for raw in parts.values() for sealed in reports_of(raw)}
        for parts in store.aggregator.parts.values()
    )

    assert len(first & second) == 150
    assert len(first ^ second) == 2 * 142


def test_a_store_that_knows_less_than_its_witness_is_not_started(
    tmp_path: Path, clock: HandClock
) -> None:
    """Its crowds are recorded as lost; then it starts, and hands over nothing of them."""
    store = restored(tmp_path, clock, tmp_path / "witness")
    with pytest.raises(ShufflerError, match="1 crowds are recorded as lost"):
        check_witness(store.settings, store.hand_over())
    check_witness(store.settings, store.hand_over())
    store.rounds()
    store.close()

    assert len(store.aggregator.parts) == 1
    assert store.aggregator.states() == [BatchState.HANDED_OVER, BatchState.LOST]
    assert not list((tmp_path / "backup").glob("crowds/*/*"))


def reports_of(raw: bytes) -> list[bytes]:
    """Return the sealed reports of a part."""
    part = BatchPart.decode(raw)
    size = part.head.size
    return [part.sealed[start : start + size] for start in range(0, len(part.sealed), size)]
