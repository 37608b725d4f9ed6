"""The process ends at every write, one by one; and every interleaving of two workers and a round.

Nothing acknowledged is lost, nothing counts twice, nothing below the least leaves.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from veilcount_shared.shuffling.batch_record import BatchState
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shuffler.crowd_states import CrowdState
from veilcount_shuffler.hand_over import HandOverEvent
from veilcount_shuffler.holding import EnvelopeAnswer, Holding
from veilcount_shuffler.served_crowds import ServedCrowd, crowds_of

from .faults import Crash, CrashingDisk, FullDisk, Schedule, ScheduledDisk, schedules
from .parties import CheckingAggregator, HandClock, ShufflerStore, messages

COVERS = 8
PART = 50


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a batch of 140 has three."""
    small_parts(monkeypatch)


def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have parts of 50 reports."""
    monkeypatch.setattr("veilcount_shared.shuffling.part.PART_REPORTS", PART)
    for module in ("delivery", "shuffling_pass"):
        monkeypatch.setattr(f"veilcount_shuffler.{module}.PART_REPORTS", PART)


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


# -- interleavings ---------------------------------------------------------------------------------


class StaleHolding(Holding):
    """The planted fault: the state of a crowd is read before the lock, not under it."""

    def _hold(self, crowd: ServedCrowd, sealed: Sequence[bytes]) -> EnvelopeAnswer:
        if self._store.states.state(crowd.crowd_id) is not CrowdState.OPEN:
            return EnvelopeAnswer.OVER
        folder = self._store.folder(crowd.crowd_id)
        with folder.lock(exclusive=False):
            self._file(crowd, folder).append(sealed)
        return EnvelopeAnswer.HELD


def interleaved(
    prepared: Path, folder: Path, large: list[Envelope], kind: type[Holding], choices: Sequence[int]
) -> tuple[Schedule, bool]:
    """Run two workers and a round by a schedule; return whether nothing acknowledged is lost."""
    shutil.copytree(prepared, folder)
    disk = ScheduledDisk()
    clock = HandClock()
    store = ShufflerStore(folder, clock, disk, covers=COVERS)
    workers, hand_over = [store.worker(kind), store.worker(kind)], store.hand_over()
    acknowledged: set[bytes] = set()
    events: list[HandOverEvent] = []
    early, late = HandClock(clock.now), HandClock(store.crowd.leaves + timedelta(minutes=1))

    def hold(worker: Holding, envelopes: list[Envelope]) -> None:
        for envelope in envelopes:
            if worker.hold([envelope]) == [EnvelopeAnswer.HELD]:
                acknowledged.add(envelope.sealed)

    for worker in workers:  # their clock is behind: the lock alone keeps them out
        object.__setattr__(worker._store, "clock", early)
    object.__setattr__(hand_over.store, "clock", late)
    clock.now = late.now
    schedule = disk.schedule = Schedule(choices)
    schedule.run(
        [
            partial(hold, workers[0], large[110:112]),
            partial(hold, workers[1], large[111:113]),
            lambda: events.extend(hand_over.round()),
        ]
    )
    store.close()
    assert not schedule.failures, schedule.failures
    batch = store.aggregator.sealed(store.crowd.crowd_id)
    shutil.rmtree(folder)
    return schedule, acknowledged <= set(batch) and len(batch) == len(set(batch))


@pytest.fixture
def prepared(tmp_path: Path, large: list[Envelope]) -> Path:
    """A store whose crowd has reports already."""
    store = ShufflerStore(tmp_path / "prepared", HandClock(), covers=COVERS)
    store.worker().hold(large[:110])
    store.close()
    return tmp_path / "prepared"


def outcomes(
    prepared: Path, large: list[Envelope], kind: type[Holding], most_switches: int
) -> list[bool]:
    """Return whether each interleaving lost nothing."""
    results: list[bool] = []

    def run(choices: Sequence[int]) -> Schedule:
        folder = prepared.with_name("interleaved")
        schedule, is_right = interleaved(prepared, folder, large, kind, choices)
        results.append(is_right)
        return schedule

    for _ in schedules(most_switches, run):
        pass
    return results


def test_every_interleaving_loses_nothing(prepared: Path, large: list[Envelope]) -> None:
    results = outcomes(prepared, large, Holding, 1)

    assert len(results) > 100
    assert all(results)


def test_a_state_that_is_read_outside_the_lock_loses_reports(
    prepared: Path, large: list[Envelope]
) -> None:
    assert not all(outcomes(prepared, large, StaleHolding, 1))


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
