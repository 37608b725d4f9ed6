"""`held = "device"`: a period reports its running value, however many processes recorded it.

A collection for a trusted curator makes the value visible: its message is the value. Before a value
was kept on the device, of 20 daily sessions in a month the first one's was reported.
"""

from __future__ import annotations

import math
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.recording.held_values import decode
from veilcount_client.recording.recorder import Recorder
from veilcount_client.state import HeldValue, StateError
from veilcount_client.state.losses import Loss
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared import Collection

from ..device_fixtures import MINUTE, Device, at, one_collection, set_clock

RANGE: dict[str, object] = {"range": [0, 1000]}
SESSIONS = range(0, 30, 3)  # the days of a month in which the app is used
PERSONS = 4
MARKED = "marked-for-the-search"

#: what is recorded in the sessions, and what they add up to
VALUES: dict[str, tuple[list[Any], Callable[[Sequence[Any]], Any]]] = {
    "last": ([day % 2 == 0 for day in SESSIONS], lambda values: values[-1]),
    "any": ([day == 3 for day in SESSIONS], any),
    "max": ([(37 * day) % 101 for day in SESSIONS], max),
    "sum": ([day + 1 for day in SESSIONS], sum),
}


def monthly(takes: str, held: str = "device") -> dict[str, Collection]:
    """Return a question of the month whose report is the very value."""
    keys = {"model": "central", "budget": 1, "unit": "month", "takes": takes, "held": held}
    return one_collection("it", **keys, **(RANGE if takes in {"max", "sum"} else {}))


class MonthlyDevice(Device):
    """A device that answers one question of the month, from the first morning of December on."""

    def __init__(
        self, place: Path, collections: dict[str, Collection], person: int = 0, **options: Any
    ) -> None:
        super().__init__(place, collections, person=person, trust_curator=True, **options)

    def month(self, values: Sequence[object], *, crashes: bool = False) -> None:
        """Live through a month: each session is a process of a minute; run until all is sent."""
        self.stop()
        for day, value in zip(SESSIONS, values, strict=True):
            self.start_at(at(day, 9))
            self.client.record("it", value)
            self.run_for(MINUTE)
            self.crash() if crashes else self.stop()
        self.finish()

    def finish(self) -> None:
        if not self.runs:
            self.start()
        self.run_until(at(32))

    def expected(self, takes: str) -> int:
        """Return the running value of the sessions up to the instant."""
        values, fold = VALUES[takes]
        before = [
            each for day, each in zip(SESSIONS, values, strict=True) if at(day, 9) < self.instant()
        ]
        return int(fold(before or values[:1]))

    @property
    def sent(self) -> list[int]:
        """Return the values that arrived."""
        return [int.from_bytes(report.message, "big") for report in self.wire.reports]

    @property
    def held(self) -> HeldValue | None:
        """Return what the device holds."""
        return self.state.held(self.key, self.collections["it"].fingerprint)


# -- many processes --------------------------------------------------------------------------------


def lives(
    folder: Path, takes: str, held: str = "device", *, crashes: bool = False
) -> tuple[list[list[int]], list[list[int]]]:
    """Return what some persons reported of a month of sessions, and what they should have."""
    sent, expected = [], []
    for person in range(PERSONS):
        device = MonthlyDevice(folder / f"{held} {person}", monthly(takes, held), person)
        expected.append([device.expected(takes)])
        device.month(VALUES[takes][0], crashes=crashes)
        sent.append(device.sent)
    return sent, expected


@pytest.mark.parametrize("takes", VALUES)
def test_a_month_of_sessions_reports_its_running_value(memory: Path, takes: str) -> None:
    """Not the first session's, which is what `held = "process"` reports: the planted variant."""
    folder = memory / f"months of {takes}"
    sent, expected = lives(folder, takes)
    planted, _ = lives(folder, takes, "process")

    assert sent == expected
    assert planted == [[int(VALUES[takes][0][0])]] * PERSONS
    assert sent != planted


def test_sessions_that_are_killed_lose_nothing_that_was_stored(memory: Path) -> None:
    """Each recorded, stored and was killed; held in memory, all of it would be gone."""
    sent, expected = lives(memory / "killed", "sum", crashes=True)
    with patch.object(Recorder, "_put_on_device", lambda _: None):
        planted, _ = lives(memory / "killed in memory", "sum", crashes=True)

    assert sent == expected
    assert planted != expected


def two_devices(place: Path) -> tuple[MonthlyDevice, Device]:
    """Return a device, and a second process on its state."""
    device = MonthlyDevice(place, monthly("sum"))
    second = Device(place, device.collections, device.clock, device.wire, trust_curator=True)
    return device, second


def test_two_processes_add_to_one_value(tmp_path: Path) -> None:
    """Each record counts once, whichever process wrote last."""
    device, second = two_devices(tmp_path)
    for turn in range(10):
        (device, second)[turn % 2].record(value=1 << turn % 9)
    device.stop()
    set_clock(device.clock, at(31))
    second.run_until(at(31, 6))
    second.stop()

    assert device.sent == [511 + 1]
    assert len(device.wire.counted) == 1


def test_a_process_that_was_overtaken_merges_again(tmp_path: Path) -> None:
    """Between its look and its write the other one writes; replacing that would lose a record."""

    def overtaken(place: Path) -> object:
        device, second = two_devices(place)
        read, others = SqliteState.held, [100]

        def race(state: SqliteState, key: bytes, series: str) -> HeldValue | None:
            found = read(state, key, series)
            while others:
                second.record(value=others.pop())
            return found

        device.client.record("it", 7)
        with patch.object(SqliteState, "held", race):
            device.work()
        assert device.held
        return decode(device.held.value)

    def replaced(state: SqliteState, _: HeldValue | None, new: HeldValue, number: int) -> bool:
        current = state.held(new.person, new.series)
        return hold(state, current, new, number)

    hold = SqliteState.hold
    mended = overtaken(tmp_path / "merge")
    with patch.object(SqliteState, "hold", replaced):
        planted = overtaken(tmp_path / "replaced")

    assert mended == 107
    assert planted == 7


def test_a_state_that_fails_while_holding_counts_nothing_twice(tmp_path: Path) -> None:
    """What could not be put on the device waits in memory, with what comes after it."""
    device = MonthlyDevice(tmp_path, monthly("sum"))
    for value in (1, 20):
        device.client.record("it", value)
        with patch.object(SqliteState, "hold", side_effect=StateError("no space")):
            device.work()
    device.record(value=300)
    device.restart()
    device.finish()

    assert device.sent == [321]


def test_a_value_never_moves_to_another_period(tmp_path: Path) -> None:
    """A record whose clock was set back leaves the later period's value as it is.

    Before, the later value was merged into the earlier period, and its own period stayed empty.
    """
    keys: dict[str, object] = {"model": "central", "budget": 1, "takes": "sum", "held": "device"}
    device = MonthlyDevice(tmp_path, one_collection("it", **keys, **RANGE))
    device.record(value=5)
    set_clock(device.clock, at(3, 0.01))
    device.work()
    device.record(value=70)
    set_clock(device.clock, at(2, 0.01))
    device.record(value=100)
    device.run_until(at(6))

    values = {each.period: int.from_bytes(each.message, "big") for each in device.wire.reports}
    assert values == {0: 5, 2: 100, 3: 70}


# -- what stays on the disk ------------------------------------------------------------------------


LABELLED = one_collection("it", unit="month", takes="last", held="device", values=["plain", MARKED])


def is_on_disk(place: Path) -> bool:
    """Whether any file of a state holds the label, or the true value's own bytes."""
    return any(MARKED.encode() in each.read_bytes() for each in place.rglob("*") if each.is_file())


def holding(place: Path) -> MonthlyDevice:
    """Return a device whose files hold the label."""
    device = MonthlyDevice(place, LABELLED)
    device.client.record("it", MARKED)
    device.restart()
    assert is_on_disk(place)
    return device


def remove_the_definition(device: Device) -> None:
    """Ship a file without the question, nor any other that is held on the device."""
    device.stop()
    device.start(one_collection("other"))
    device.record()


ENDS: dict[str, Callable[[MonthlyDevice], None]] = {
    "frozen": MonthlyDevice.finish,
    "withdrawn": lambda device: device.client.consent(False),
    "forgotten": lambda device: device.client.forget(),
    "replaced": lambda device: device.record(value="plain"),
    "no longer asked": remove_the_definition,
}


@pytest.mark.parametrize("end", ENDS)
def test_a_value_is_wiped_from_the_files(tmp_path: Path, end: str) -> None:
    """From every byte of them, once the process that did it has closed the state.

    Before, what a definition held that is gone stayed for good if no other is held on the device.
    """
    device = holding(tmp_path)
    ENDS[end](device)
    device.stop()

    assert not is_on_disk(tmp_path)


def test_a_state_that_is_not_wiped_is_found(tmp_path: Path) -> None:
    """The planted variant of the search: a deletion that leaves the bytes in the file."""

    def careless(state: SqliteState, key: bytes) -> None:
        with state._writing() as database:
            database.execute("pragma secure_delete = off")
            database.execute("delete from held where person = ?", (key,))

    device = holding(tmp_path)
    with patch.object(SqliteState, "forget", careless):
        device.client.forget()
    device.stop()

    assert is_on_disk(tmp_path)


def test_a_value_that_another_process_had_in_memory_does_not_come_back(tmp_path: Path) -> None:
    """A person is forgotten here while the state fails there: the value is dropped, and counted."""
    device, second = two_devices(tmp_path)
    device.client.record("it", 7)
    with patch.object(SqliteState, "hold", side_effect=StateError("no space")):
        device.work()
    second.client.forget()
    device.work()

    assert device.state.held_due(math.inf, 10) == []
    assert device.state.losses()[Loss.NO_CONSENT, "it"] == 1


def test_only_the_owner_reads_the_files(tmp_path: Path) -> None:
    """The directory, the file, its log and its mark."""
    device = MonthlyDevice(tmp_path / "state", LABELLED)
    device.record(value=MARKED)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in device.place.iterdir()}

    assert stat.S_IMODE(device.place.stat().st_mode) == 0o700
    assert "veilcount.db-wal" in modes
    assert set(modes.values()) == {0o600}
