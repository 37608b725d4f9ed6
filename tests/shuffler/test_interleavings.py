"""Workers hold while a round seals, shuffles, delivers and erases: interleaved step by step.

Every schedule in which a running task is switched away from once, and with `full` twice. Nothing
acknowledged is lost, nothing leaves twice, and one draw of covers is handed over.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from veilcount_shared.shuffling.batch_record import BatchState
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shuffler.crowd_states import CrowdState
from veilcount_shuffler.crowd_store import CrowdStore
from veilcount_shuffler.holding import EnvelopeAnswer, Holding
from veilcount_shuffler.served_crowds import ServedCrowd, crowds_of

from .faults import Schedule, ScheduledDisk, sampled_schedules, schedules
from .parties import HandClock, ShufflerStore, messages, small_parts

COVERS, HELD = 8, 110
SAMPLE, SEED = 40, 1
#: steps at which nothing happens that a worker could see: no switch there differs
UNSEEN = frozenset({"write", "sync folder", "rename", "create", "make folder", "record sent"})
#: at which files of a hand-over appear, or are written
WRITTEN = frozenset({"lock", "append", "rename", "write", "before shuffled", "send part"})


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    small_parts(monkeypatch)


@dataclass
class Tasks:
    """Some workers and rounds of hand-overs on a store that has reports already."""

    prepared: Path
    envelopes: list[Envelope]
    workers: int = 2
    rounds: int = 1
    groups: int = 2  # that a worker holds
    kind: type[Holding] = Holding
    is_seen: Callable[[str], bool] = lambda step: step not in UNSEEN
    wrong: list[str] = field(default_factory=list)  # after any schedule

    def run(self, choices: Sequence[int]) -> Schedule:
        """Run them by a schedule, and note what is wrong."""
        folder = self.prepared.with_name("interleaved")
        shutil.copytree(self.prepared, folder)
        disk = ScheduledDisk(self.is_seen)
        clock = HandClock()
        store = ShufflerStore(folder, clock, disk, covers=COVERS)
        early, late = HandClock(clock.now), HandClock(store.crowd.leaves + timedelta(minutes=1))
        acknowledged: set[bytes] = set()
        workers = [store.worker(self.kind) for _ in range(self.workers)]
        rounds = [store.hand_over() for _ in range(self.rounds)]
        for worker in workers:  # their clock is behind: the lock alone keeps them out
            object.__setattr__(worker._store, "clock", early)
        for hand_over in rounds:
            object.__setattr__(hand_over.store, "clock", late)
        clock.now = late.now
        firsts = range(HELD, HELD + self.workers)
        held = [self.envelopes[first : first + self.groups] for first in firsts]
        schedule = disk.schedule = Schedule(choices)
        schedule.run(
            [
                *(partial(hold, *pair, acknowledged) for pair in zip(workers, held, strict=True)),
                *(hand_over.round for hand_over in rounds),
            ]
        )
        store.rounds()  # what is left of it
        store.close()
        self.wrong += self.problems(store, acknowledged, schedule)
        shutil.rmtree(folder)
        return schedule

    def problems(
        self, store: ShufflerStore, acknowledged: set[bytes], schedule: Schedule
    ) -> Iterable[str]:
        """Yield what is wrong at the end."""
        yield from map(repr, schedule.failures)
        if store.aggregator.states() != [BatchState.HANDED_OVER]:
            yield f"records: {store.aggregator.states()}"
            return
        batch = store.aggregator.sealed(store.crowd.crowd_id)
        if not acknowledged <= set(batch):
            yield "lost"
        if len(batch) != len(set(batch)):
            yield "twice"
        if len(set(batch) - {envelope.sealed for envelope in self.envelopes}) != COVERS:
            yield "other covers"


def hold(worker: Holding, envelopes: list[Envelope], acknowledged: set[bytes]) -> None:
    """Hold one after the other, as groups of their own."""
    for envelope in envelopes:
        if worker.hold([envelope]) == [EnvelopeAnswer.HELD]:
            acknowledged.add(envelope.sealed)


@pytest.fixture
def tasks(tmp_path: Path) -> Tasks:
    """Two workers and a round."""
    store = ShufflerStore(tmp_path / "prepared", HandClock(), covers=COVERS)
    envelopes = messages(next(crowds_of(store.settings)), HELD + 3)
    store.worker().hold(envelopes[:HELD])
    store.close()
    return Tasks(tmp_path / "prepared", envelopes)


def number_of(all_schedules: Iterable[Schedule]) -> int:
    """Run all of them; return how many there were."""
    return sum(1 for _ in all_schedules)


def test_every_interleaving_loses_nothing(tasks: Tasks) -> None:
    assert number_of(schedules(1, tasks.run)) > 100
    assert not tasks.wrong


def test_some_interleavings_with_two_switches_lose_nothing(tasks: Tasks) -> None:
    assert number_of(sampled_schedules(2, tasks.run, SAMPLE, SEED)) == SAMPLE
    assert not tasks.wrong


@pytest.mark.full
def test_every_interleaving_with_two_switches_loses_nothing(tasks: Tasks) -> None:
    tasks.groups = 1
    assert number_of(schedules(2, tasks.run)) > 1000
    assert not tasks.wrong


def test_two_hand_overs_at_once_draw_covers_once(tasks: Tasks) -> None:
    """A server that was killed leaves its hand-over for a second, and is started again."""
    twice(tasks)
    assert number_of(schedules(2, tasks.run)) > 10
    assert not tasks.wrong


def twice(tasks: Tasks) -> None:
    """Have two rounds and no worker."""
    tasks.workers, tasks.rounds, tasks.is_seen = 0, 2, WRITTEN.__contains__


# -- planted faults --------------------------------------------------------------------------------


class StaleHolding(Holding):
    """The planted fault: the state of a crowd is read before the lock, not under it."""

    def _hold(self, crowd: ServedCrowd, sealed: Sequence[bytes]) -> EnvelopeAnswer:
        if self._store.states.state(crowd.crowd_id) is not CrowdState.OPEN:
            return EnvelopeAnswer.OVER
        folder = self._store.folder(crowd.crowd_id)
        with folder.lock(exclusive=False):
            self._file(crowd, folder).append(sealed)
        return EnvelopeAnswer.HELD


def is_found(tasks: Tasks, run: Iterable[Schedule]) -> bool:
    """Whether a schedule has something wrong; those after it are not run."""
    return any(tasks.wrong for _ in run)


def test_a_state_that_is_read_outside_the_lock_loses_reports(tasks: Tasks) -> None:
    tasks.kind = StaleHolding

    assert is_found(tasks, schedules(1, tasks.run))


def test_hand_overs_without_their_lock_lose_covers(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two switches: covers are published that another process has just begun to write."""
    monkeypatch.setattr(CrowdStore, "alone", lambda _: nullcontext())
    twice(tasks)

    assert is_found(tasks, schedules(2, tasks.run))
    assert tasks.wrong == ["other covers"]
