"""What two processes, two clocks and a restored store must not do to a crowd that holds reports.

Each case was a real loss once: it is set up as it happened, and then nothing of it may happen.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest

from veilcount_shared import parse_collections
from veilcount_shared.oblivious_http.key_config import AES_128_GCM, KeyConfig
from veilcount_shared.oblivious_http.key_file import RelayKey
from veilcount_shared.shuffling.batch_record import BatchState
from veilcount_shuffler import aggregator_client, hand_over
from veilcount_shuffler.crowd_states import CrowdState
from veilcount_shuffler.errors import AggregatorAway, NotTaken, ShufflerError, StateUnavailable
from veilcount_shuffler.serve import check_witness
from veilcount_shuffler.served_crowds import ServedCrowd, ServedCrowds, crowds_of
from veilcount_shuffler.shuffling_pass import shuffle

from .parties import (
    RELAY_KEYS,
    START,
    CheckingAggregator,
    HandClock,
    ShufflerStore,
    definition,
    held,
    messages,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ShufflerStore]:
    """A store whose first crowd holds 150 reports."""
    opened = ShufflerStore(tmp_path / "store", HandClock())
    opened.worker().hold(messages(opened.crowd, 150))
    yield opened
    opened.close()


def outcome(store: ShufflerStore) -> list[BatchState]:
    """Return what the aggregator's records state of the first crowd."""
    records = store.aggregator.records
    return [record.state for record in records if record.crowd_id == store.crowd.crowd_id]


def load_another(store: ShufflerStore) -> ServedCrowd:
    """Load a second question, and return its first crowd."""
    text = definition(name="other")
    other = parse_collections(text, lambda _: [])["other"]
    store.settings.add_collections([other], START)
    return next(crowd for crowd in crowds_of(store.settings) if crowd.collection.name == "other")


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_definition_that_is_loaded_while_serving_loses_no_report(
    store: ShufflerStore, rounds: int
) -> None:
    """A worker may know it before the process that hands over does."""
    handing_over = store.hand_over()
    handing_over.round()  # what it serves is computed
    crowd = load_another(store)
    worker = store.worker()
    worker._store = replace(worker._store, served=ServedCrowds(store.settings))
    envelopes = messages(crowd, 150)
    assert len(held(worker.hold(envelopes), envelopes)) == 150
    for _ in range(rounds):
        store.clock.advance(minutes=1)
        handing_over.round()

    assert store.states().state(crowd.crowd_id) is CrowdState.OPEN


def test_a_crowd_of_a_definition_that_is_gone_alerts_and_stays(store: ShufflerStore) -> None:
    for file in (store.settings.store / "settings" / "definitions").glob("*.json"):
        file.rename(file.with_suffix(".gone"))
    store.clock.now += timedelta(days=4)
    (event,) = store.rounds(1)

    assert (event.what, event.is_alert) == ("crowd unserved", True)
    assert list(store.settings.crowds.glob("*/held.*"))


# -- the witness -----------------------------------------------------------------------------------


def with_witness(tmp_path: Path) -> tuple[ShufflerStore, Path]:
    """Return a store that has served with its witness, and the backup of it while it was open."""
    witness = tmp_path / "witness"
    witness.mkdir()
    store = ShufflerStore(tmp_path / "store", HandClock(), witness=witness)
    store.store().witness.identify(store.settings)
    store.worker().hold(messages(store.crowd, 150))
    store.close()
    shutil.copytree(tmp_path / "store", tmp_path / "backup")
    store.leave()
    store.rounds()
    return store, tmp_path / "backup"


@pytest.mark.parametrize("place", ["empty", None])
def test_a_restored_store_without_its_witness_is_not_started(
    tmp_path: Path, place: str | None
) -> None:
    """As where the disk of the witness is not mounted, or nobody remembers it."""
    original, backup = with_witness(tmp_path)
    if place:
        (tmp_path / place).mkdir()
    folder = tmp_path / place if place else None
    restored = ShufflerStore(backup, original.clock, witness=folder, aggregator=original.aggregator)

    with pytest.raises(ShufflerError, match="--witness: "):
        restored.store()
    assert len(original.aggregator.heads) == 1


def test_a_witness_that_goes_away_acknowledges_nothing(tmp_path: Path) -> None:
    store, _ = with_witness(tmp_path)
    crowd = load_another(store)
    worker = store.worker()
    (tmp_path / "witness" / "witness.id").unlink()  # as an unmounted disk does
    envelopes = messages(crowd, 3)

    assert held(worker.hold(envelopes), envelopes) == set()


def test_a_store_that_was_lost_once_starts_again(tmp_path: Path) -> None:
    """Also where it handed over other numbers than its witness has."""
    original, backup = with_witness(tmp_path)
    (backup / "settings" / "witness.id").unlink()  # of a release without ids
    original.aggregator.refuses_second = False
    blind = ShufflerStore(backup, original.clock, aggregator=original.aggregator)
    blind.worker().hold(messages(blind.crowd, 9, first=150))
    blind.rounds()
    blind.close()
    restored = ShufflerStore(
        backup, original.clock, witness=tmp_path / "witness", aggregator=original.aggregator
    )

    with pytest.raises(ShufflerError, match="recorded as lost"):
        check_witness(restored.settings, restored.hand_over())
    check_witness(restored.settings, restored.hand_over())
    ids = {head.batch_id for head in original.aggregator.heads.values()}
    assert len(ids) == 2, "fresh covers are another batch, by their id as well"


# -- clocks ----------------------------------------------------------------------------------------


def test_a_clock_that_is_set_right_during_a_round_hands_nothing_over_early(
    store: ShufflerStore,
) -> None:
    right, readings = store.clock.now, iter([timedelta(days=3)])

    def clock() -> datetime:
        return right + next(readings, timedelta())

    handing_over = store.hand_over()
    replace(handing_over, store=replace(handing_over.store, clock=clock)).round()

    assert not store.aggregator.heads
    assert store.states().state(store.crowd.crowd_id) is CrowdState.OPEN


def test_after_a_month_off_a_batch_is_delivered_while_the_aggregator_takes_it(
    store: ShufflerStore,
) -> None:
    store.clock.now = store.crowd.expires + timedelta(minutes=1)
    store.rounds(1)

    assert outcome(store) == [BatchState.HANDED_OVER]


def test_a_batch_whose_last_answer_was_lost_is_not_recorded_as_expired(
    store: ShufflerStore,
) -> None:
    store.leave()

    def lose(raw: bytes) -> list[int]:
        CheckingAggregator.take_part(store.aggregator, raw)
        raise AggregatorAway("its answer was lost")

    with patch.object(store.aggregator, "take_part", lose):
        store.rounds(1)
    store.clock.now = store.crowd.expires + timedelta(minutes=1)
    store.rounds(1)

    assert outcome(store) == [BatchState.HANDED_OVER]


def test_a_batch_that_its_aggregator_calls_late_expires(store: ShufflerStore) -> None:
    store.leave()

    def refuse(raw: bytes) -> list[int]:
        raise NotTaken(410, "batch-late")

    with patch.object(store.aggregator, "take_part", refuse):
        store.rounds(1)

    assert outcome(store) == [BatchState.EXPIRED]


# -- one crowd keeps back no other -----------------------------------------------------------------


def test_an_answer_of_nested_brackets_is_no_document() -> None:
    assert aggregator_client._document(b"[" * 900_000) == {}


def test_a_crowd_that_fails_in_any_way_keeps_back_no_other(store: ShufflerStore) -> None:
    other = load_another(store)
    store.served = ServedCrowds(store.settings)
    store.worker().hold(messages(other, 150))
    store.leave()
    first = store.crowd.crowd_id

    def fail(crowd: ServedCrowd, *rest: object) -> object:
        if crowd.crowd_id == first:
            raise RuntimeError("whatever it is")
        return shuffle(crowd, *rest)  # type: ignore[arg-type] # passed on

    with patch.object(hand_over, "shuffle", fail):
        events = store.rounds(1)

    assert [event.what for event in events if event.is_alert] == ["crowd waits"]
    assert list(store.aggregator.heads) == [other.crowd_id]


def test_a_file_of_states_that_cannot_be_read_is_named(store: ShufflerStore) -> None:
    states = store.states()
    states.close()

    with pytest.raises(StateUnavailable):
        states.state(store.crowd.crowd_id)


# -- keys and files --------------------------------------------------------------------------------


def test_more_keys_of_one_day_than_crowds_are_refused(store: ShufflerStore) -> None:
    keys = [
        RelayKey(START, config.encode(), config)
        for config in (KeyConfig(number, bytes([number]) * 32, (AES_128_GCM,)) for number in (2, 3))
    ]

    with pytest.raises(ShufflerError, match="3 keys from 2026-12-01"):
        ShufflerStore(store.settings.store.parent / "new", store.clock).settings.set_keys(
            [*RELAY_KEYS, *keys], START - timedelta(days=2)
        )


def test_the_files_of_states_are_their_owners_alone(store: ShufflerStore) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in store.settings.crowds.glob("*.sq*")}

    assert len(modes) > 1
    assert set(modes.values()) == {0o600}
