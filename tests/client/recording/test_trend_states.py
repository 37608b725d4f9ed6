"""A trend on the device: its state outlives processes, and no sign is used for two changes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.recording.trend_states import KeptState, TrendStates, decode_state
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared import Collection, schedule
from veilcount_shared.mechanisms import TrendState

from ..device_fixtures import HOUR, Device, at, minutes_of, one_collection, set_clock

DAYS, CHANGES = 12, 3
COST = 1_000_000  # of epsilon 1
#: when the state becomes what; it changes four times, once more than it has signs for
HISTORY = {(0, 1): True, (3, 9): False, (3, 20): True, (4, 2): False, (6, 12): True, (9, 5): False}


@pytest.fixture(autouse=True)
def hours() -> Iterator[None]:
    """Have instants lie on full hours: fewer of them are examined."""
    with minutes_of(HOUR):
        yield


class Crash(BaseException):
    """The process is gone, here and now."""


def trend(changes: int = CHANGES, **keys: Any) -> dict[str, Collection]:
    until = f"2026-12-{DAYS + 1:02}"
    return one_collection("it", measure="trend", changes=changes, until=until, **keys)


class TrendDevice(Device):
    """A device whose person reports at the end of every day, or of every two or four."""

    @property
    def drawn(self) -> TrendState:
        """The level and the signs of its person."""
        return schedule.draw_trend(self.person.secret, self.collections["it"])

    @property
    def kept(self) -> KeptState | None:
        held = self.state.held(self.key, self.collections["it"].fingerprint)
        return decode_state(held) if held else None

    @property
    def sent(self) -> dict[int, int]:
        """The messages that were counted, by period."""
        return {each.period: each.message[0] for each in self.wire.counted.values()}

    def live(self, *, crashes: bool = False, restarts: bool = False) -> None:
        """Record the history; end the process before each record."""
        for (day, hour), value in sorted(HISTORY.items()):
            self.run_until(at(day, hour))
            if crashes or restarts:
                self.crash() if crashes else self.stop()
                self.start()
            self.record(value=value)
        self.run_until(at(DAYS + 2))

    def value(self, period: int) -> bool:
        """Return the last value before the instant of a period."""
        instant = math.ceil(self.instant(period=period) / HOUR) * HOUR
        before = [when for when in HISTORY if at(*when) < instant]
        return HISTORY[max(before)] if before else False


def device(place: Path, level: int, **keys: Any) -> TrendDevice:
    """Return the device of the first person of a level."""
    for person in count():
        found = TrendDevice(place / str(person), trend(**keys), at(0, 0), person=person)
        if found.drawn.level == level:
            return found
        found.stop()
    raise AssertionError("persons have no end")


@pytest.mark.parametrize("ends", [{}, {"restarts": True}, {"crashes": True}], ids=str)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_end_of_each_interval_reports_the_net_change_by_the_next_sign(
    memory: Path, level: int, ends: dict[str, bool]
) -> None:
    """Whatever ends the processes in between, at one epsilon in all."""
    found = device(memory / f"{level} {ends}", level)
    found.live(**ends)

    assert list(found.sent) == list(range((1 << level) - 1, DAYS, 1 << level))
    initial, used = False, 0
    for period, message in found.sent.items():
        assert message >> 1 == level
        value = found.value(period)
        if value != initial and used < CHANGES:
            assert message & 1 == (found.drawn.signs >> used & 1 if value else
                                   1 - (found.drawn.signs >> used & 1))  # fmt: skip
            used += 1
        initial = value
    assert used > 1
    assert found.spent("it") == COST
    assert found.kept is None
    assert found.losses() == {}


def test_whoever_records_nothing_sends_as_much(memory: Path) -> None:
    found = device(memory / "idle", 1)
    found.run_until(at(DAYS + 2))

    assert list(found.sent) == [1, 3, 5, 7, 9, 11]
    assert found.spent("it") == COST


def crash_after_the_commit(found: TrendDevice) -> None:
    """Cut the process when its first report has become durable; start another one."""

    def cut(*_: Any) -> Any:
        commit(*_)
        raise Crash

    commit = SqliteState.commit
    with patch.object(SqliteState, "commit", cut), pytest.raises(Crash):
        found.run_until(at(2))
    found.crash()
    found.start()


def state_apart(states: TrendStates, collection: Collection, held: Any) -> Any:
    """Wrong: the report alone is committed, and its state would be kept by another step."""
    draw = drawing(states, collection, held)
    return type(draw)(**{each: getattr(draw, each) for each in draw.__slots__ if each != "held"})


drawing = TrendStates._draw


@pytest.mark.parametrize("plant", [drawing, state_apart])
def test_a_sign_is_used_up_by_the_step_that_stores_its_report(memory: Path, plant: Any) -> None:
    """A state kept apart is lost with the process, and the next change has the same sign."""
    found = device(memory / plant.__name__, 0)
    found.record(value=True)
    with patch.object(TrendStates, "_draw", plant):
        crash_after_the_commit(found)

    assert len(found.stored) == 1
    expected = KeptState(1, initial=1, used=1, paid=True)
    assert (found.kept == expected) is (plant is drawing)


def test_a_state_that_was_lost_has_no_sign_left(memory: Path) -> None:
    """Withdrawn, and agreed again: what was used is unknown, so nothing is revealed any more."""
    found = device(memory / "withdrawn", 0)
    found.record(value=True)
    found.run_until(at(2, 1))
    found.client.consent(False)
    found.client.consent(True)
    found.run_until(at(3, 1))  # who returns answers from the next period on
    found.record(value=True)

    assert found.kept == KeptState(1, used=CHANGES, paid=True)
    found.live()
    assert found.spent("it") == COST
    assert list(found.sent)[-1] == DAYS - 1


def test_who_was_forgotten_has_paid_and_sends_no_more(memory: Path) -> None:
    found = device(memory / "forgotten", 0)
    found.record(value=True)
    found.run_until(at(2, 1))
    before = list(found.sent)
    found.client.forget()
    found.client.consent(True)
    found.run_until(at(3, 1))
    found.record(value=False)
    found.run_until(at(DAYS + 2))

    assert list(found.sent) == before
    assert found.spent("it") == COST
    assert set(found.losses()) == {"over_cap"}


def test_a_process_that_was_overtaken_looks_again(memory: Path) -> None:
    """Between its look and its commit the other one records: that change is not lost."""
    found = device(memory / "two", 0)
    second = Device(found.place, found.collections, found.clock, found.wire)

    def overtaken(*arguments: Any) -> Any:
        with patch.object(SqliteState, "commit", commit):
            second.record(value=True)
        return commit(*arguments)

    commit = SqliteState.commit
    with patch.object(SqliteState, "commit", overtaken):
        found.run_until(found.instant() + HOUR)
    second.stop()
    found.run_until(at(2, 1))

    assert found.kept == KeptState(1, initial=1, used=1, paid=True)


def test_what_would_come_too_late_is_not_reported_and_uses_no_sign(memory: Path) -> None:
    found = device(memory / "late", 0, late=2)
    found.record(value=True)
    found.stop()
    set_clock(found.clock, at(8, 1))
    found.start()
    found.run_until(at(8, 2))

    assert found.kept is not None
    assert found.kept.used == 0
    assert found.kept.initial == 1
    found.run_until(at(DAYS + 2))
    assert min(found.sent) > 4
    assert found.losses() == {}
