"""The process ends at every write, one by one.

Nothing acknowledged is lost, nothing counts twice, nothing below the least leaves.
"""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from veilcount_shared.shuffling.batch_record import BatchState
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shuffler.holding import EnvelopeAnswer
from veilcount_shuffler.served_crowds import ServedCrowd, crowds_of

from .faults import Crash, CrashingDisk, FullDisk
from .parties import CheckingAggregator, HandClock, ShufflerStore, messages, small_parts

COVERS = 8


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a batch of 140 has three."""
    small_parts(monkeypatch)


class Scenario:
    """Two workers hold a large crowd and a small one, with a retry; then both leave."""

    def __init__(self, folder: Path, large: list[Envelope], small: list[Envelope]) -> None:
        self.folder, self.large, self.small = folder, large, small
        self.clock = HandClock()
        (folder / "witness").mkdir(parents=True)
        self.acknowledged: set[bytes] = set()
        self.aggregator: CheckingAggregator | None = None

    def run(self, disk: CrashingDisk) -> None:
        """Hold and hand over, to the end or to the crash."""
        store = self.store(disk)
        try:
            first, second = store.worker(), store.worker()
            for worker, envelopes in (
                (first, self.large[:60]),
                (second, self.large[60:120] + self.small),
                (first, self.large[40:132]),
            ):
                answers = worker.hold(envelopes)
                self.acknowledged |= {
                    envelope.sealed
                    for envelope, answer in zip(envelopes, answers, strict=True)
                    if answer is EnvelopeAnswer.HELD
                }
            self.hand_over(store)
        finally:
            store.close()

    def store(self, disk: CrashingDisk) -> ShufflerStore:
        """Open the store as a process does."""
        self.clock.now = self.clock.now.replace(day=3)
        witness, folder = self.folder / "witness", self.folder / "store"
        store = ShufflerStore(folder, self.clock, disk, covers=COVERS, witness=witness)
        self.aggregator = store.aggregator = self.aggregator or store.aggregator
        return store

    def hand_over(self, store: ShufflerStore) -> None:
        """Hand over what is due three days later."""
        self.clock.now = store.crowd.leaves + timedelta(days=1, minutes=1)
        store.rounds()

    def go_on(self) -> None:
        """Start again after a crash; devices do not retry."""
        store = self.store(CrashingDisk())
        self.hand_over(store)
        store.close()

    def problems(self, crowd: ServedCrowd) -> list[str]:
        """Return what is wrong at the end."""
        aggregator = self.aggregator
        assert aggregator is not None
        problems = []
        has_left = crowd.crowd_id in aggregator.heads
        batch = aggregator.sealed(crowd.crowd_id) if has_left else []
        large = {envelope.sealed for envelope in self.large}
        if has_left and not self.acknowledged & large <= set(batch):
            problems.append("lost")
        if not has_left and len(self.acknowledged & large) >= crowd.least:
            problems.append("not handed over")
        if len(batch) != len(set(batch)) or len(set(batch) - large) not in {0, COVERS}:
            problems.append("twice, or other covers")
        if set(aggregator.heads) - {crowd.crowd_id}:
            problems.append("below least")
        if len(aggregator.records) != 2:
            problems.append("records")
        if list((self.folder / "store" / "crowds").glob("*/*")):
            problems.append("files left")
        return problems


@pytest.fixture(scope="module")
def crowds(tmp_path_factory: pytest.TempPathFactory) -> list[ServedCrowd]:
    """The first crowds of every store of these tests: definitions and keys are the same."""
    store = ShufflerStore(tmp_path_factory.mktemp("named"), HandClock(), covers=COVERS)
    return list(crowds_of(store.settings))


@pytest.fixture(scope="module")
def large(crowds: list[ServedCrowd]) -> list[Envelope]:
    """Reports of a crowd that leaves."""
    return messages(crowds[0], 132)


@pytest.fixture(scope="module")
def small(crowds: list[ServedCrowd]) -> list[Envelope]:
    """Reports of one that does not."""
    return messages(crowds[1], 20)


def test_the_process_ends_at_every_write(
    tmp_path: Path, crowds: list[ServedCrowd], large: list[Envelope], small: list[Envelope]
) -> None:
    whole = Scenario(tmp_path / "whole", large, small)
    disk = CrashingDisk()
    whole.run(disk)
    assert not whole.problems(crowds[0])
    assert disk.steps > 100
    wrong, repeated = {}, 0
    for at in range(1, disk.steps + 1):
        scenario = Scenario(tmp_path / str(at), large, small)
        with pytest.raises(Crash):
            scenario.run(CrashingDisk(at))
        scenario.go_on()
        wrong[at] = scenario.problems(crowds[0])
        repeated += scenario.aggregator.repeated if scenario.aggregator else 0
        shutil.rmtree(tmp_path / str(at))

    assert not {at: problems for at, problems in wrong.items() if problems}
    assert repeated > 0  # parts whose answer was lost came again, and were the same bytes


def test_covers_that_are_drawn_again_after_a_crash_are_noticed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    crowds: list[ServedCrowd],
    large: list[Envelope],
    small: list[Envelope],
) -> None:
    """The planted fault: a store that shuffles afresh before it goes on."""
    scenario = Scenario(tmp_path / "planted", large, small)

    parts_taken = "veilcount_shuffler.crowd_states.CrowdStates.part_taken"
    with monkeypatch.context() as patched:
        patched.setattr(parts_taken, _crash)
        with pytest.raises(Crash):
            scenario.run(CrashingDisk())
    assert scenario.aggregator is not None
    folder = tmp_path / "planted" / "store" / "crowds" / crowds[0].crowd_id.hex()
    (folder / "covers").unlink()
    store = scenario.store(CrashingDisk())
    store.states()._db.execute("update crowd set state = 1 where state = 2")
    store.close()
    scenario.go_on()

    assert scenario.aggregator.states() != [BatchState.HANDED_OVER, BatchState.BELOW_LEAST]


def _crash(*_: object) -> None:
    raise Crash


# -- the disk --------------------------------------------------------------------------------------


def test_a_full_disk_acknowledges_nothing(tmp_path: Path, large: list[Envelope]) -> None:
    """Whoever was refused may come again; what was acknowledged stays."""
    disk = FullDisk(10_000)
    store = ShufflerStore(tmp_path / "store", HandClock(), disk, covers=COVERS)
    worker = store.worker()
    groups = [large[start : start + 10] for start in range(0, 130, 10)]
    answers = [worker.hold(group)[0] for group in groups]
    assert {EnvelopeAnswer.HELD, EnvelopeAnswer.UNAVAILABLE} == set(answers)
    disk.left = 1 << 30
    assert all(worker.hold(group)[0] is EnvelopeAnswer.HELD for group in groups[3:])
    store.leave()
    store.rounds()
    store.close()
    acknowledged = {e.sealed for group in groups for e in group}

    assert acknowledged <= set(store.aggregator.sealed(store.crowd.crowd_id))


def test_a_full_disk_delays_a_hand_over(tmp_path: Path, large: list[Envelope]) -> None:
    disk = FullDisk(1 << 30)
    store = ShufflerStore(tmp_path / "store", HandClock(), disk, covers=COVERS)
    store.worker().hold(large)
    store.leave()
    disk.left = 100
    events = store.rounds(1)
    assert [(event.what, event.is_alert) for event in events] == [("crowd waits", True)]
    disk.left = 1 << 30
    store.rounds()
    store.close()

    assert store.aggregator.states() == [BatchState.HANDED_OVER]
