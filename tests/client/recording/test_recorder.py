"""From what was recorded to what a period reports: units, takes, dates, absences, clocks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilcount_client.delivery.padded_bodies import SIZES
from veilcount_client.recording import recorder
from veilcount_client.state import DrawOutcome, ReportDraw, StateError
from veilcount_client.state.losses import Loss
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared import schedule

from ..device_fixtures import (
    DAY,
    HOUR,
    MINUTE,
    Device,
    at,
    device_in_memory,
    file,
    minutes_of,
    one_collection,
    set_clock,
)

EVENING = 3  # a person whose instant of the first day is late
RANGE = {"range": [0, 100]}


def new_device(
    place: Path, start: float = at(0, 9), /, person: object = "answers", **keys: Any
) -> Device:
    return Device(place, one_collection("it", **keys), start, person=person)


def periods(device: Device) -> list[int]:
    """Return the periods of the reports that arrived."""
    return sorted(report.period for report in device.wire.reports)


# -- units and dates -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "days", "answered"),
    [
        ("day", (0, 0.2, 1, 2, 2.1), [0, 1, 2]),
        ("week", (0, 3, 5, 6, 13), [0, 1, 2]),  # the first is cut: December begins on a Tuesday
        ("month", (0, 15, 30, 31, 60), [0, 1]),
        ("user", (0, 1, 40), [0]),
    ],
)
def test_a_period_has_one_answer(
    tmp_path: Path, unit: str, days: Sequence[float], answered: list[int]
) -> None:
    device = new_device(tmp_path, unit=unit, until="2027-01-31")
    for day in days:
        device.record_at(at(day, 9))
    device.run_until(at(65))

    assert periods(device) == answered


def test_events_over_the_daily_cap_and_of_unknown_segments_are_losses(tmp_path: Path) -> None:
    device = new_device(tmp_path, unit="event", per_day=3, segments={"arm": ["A", "B"]})
    for arm in "BAACAB":
        device.record(arm=arm)
    device.run_until(at(1))

    assert sorted(report.slot for report in device.wire.reports) == [0, 1, 2]
    assert sorted(report.segment for report in device.wire.reports) == [0, 0, 1]
    assert device.losses() == {Loss.SEGMENT: 1, Loss.FROZEN: 2}


def test_a_person_answers_within_the_dates_in_the_drawn_periods(tmp_path: Path) -> None:
    device = new_device(tmp_path, at(0, 1), answers=7, **{"from": "2026-12-03"})
    drawn = schedule.draw_answering_periods(device.person.root, device.collections["it"])
    for day in range(31):
        device.record_at(at(day, 9))
    device.run_until(at(32))

    assert len(drawn) == 7
    assert periods(device) == sorted(drawn)
    assert device.losses() == {Loss.NOT_SELECTED: 24}


def test_a_person_answers_one_of_two_cohorts(tmp_path: Path) -> None:
    left, right = ({"cohort": {"draw": "d", "of": 2, "number": number}} for number in range(2))
    device = Device(tmp_path, file(left=left, right=right))
    device.record()
    device.run_until(at(1))

    assert len(device.wire.reports) == 1


# -- takes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("takes", "keys", "values", "reported"),
    [
        ("first", {}, (True, False, False), True),
        ("last", {}, (True, True, False), False),
        ("any", {}, (False, True, False), True),
        ("max", RANGE, (3, "much", 12), 12),
        ("max", RANGE, (3, 400), 100),
        ("sum", RANGE, (3, 20, 12), 35),
        ("sum", RANGE, (60, None), 60),
    ],
)
def test_a_period_reports_what_it_takes(
    tmp_path: Path, takes: str, keys: dict[str, Any], values: Sequence[object], reported: int
) -> None:
    """A collection for a trusted curator makes the value visible."""
    collections = one_collection("it", model="central", budget=1, takes=takes, **keys)
    device = Device(tmp_path, collections, at(0, 0.1), person=EVENING, trust_curator=True)
    for place, value in enumerate(values):
        device.record_at(at(0, 0.2 + place / 100), value=value)
    device.run_until(at(2))

    assert [int.from_bytes(each.message, "big") for each in device.wire.reports] == [reported]


def test_a_held_value_is_drawn_at_its_instant_and_then_frozen(tmp_path: Path) -> None:
    device = new_device(tmp_path, at(0, 0.1), takes="last")
    due = device.instant()
    device.client.record("it", True)
    device.run_until(due - 1)
    before = device.stored
    device.run_until(due)
    after = device.stored
    device.client.record("it", False)
    device.run_until(at(2))

    assert before == []
    assert after == device.wire.reports
    assert device.losses() == {Loss.FROZEN: 1}


def test_a_failing_disk_loses_no_held_value(tmp_path: Path) -> None:
    device = new_device(tmp_path, at(0, 0.1), takes="last")
    device.record()
    set_clock(device.clock, at(1, 1))
    with patch.object(SqliteState, "commit", side_effect=StateError("no space")):
        assert not device.worker.store()
    device.run_until(at(2))

    assert len(device.wire.reports) == 1


# -- hidden presence -------------------------------------------------------------------------------


def test_hidden_answers_leave_in_the_minute_after_next_of_their_instants(tmp_path: Path) -> None:
    """Never before, whatever is recorded and however often it is flushed."""
    device = new_device(tmp_path, at(0, 23), unit="event", per_day=3, presence="hidden")
    for hour in (0.1, 0.2, 0.3, 0.4):
        device.record_at(at(1, hour))
        device.client.flush()
    device.run_until(at(2))
    instants = sorted(device.instant("it", 1, answer) for answer in range(3))
    arrivals = device.wire.arrivals
    left = [each.instant for each in arrivals if each.batch.reports[0].period == 1]

    assert len(left) == 3
    assert all(MINUTE <= b - a <= 3 * MINUTE for a, b in zip(instants, left, strict=True))


def test_periods_in_which_the_app_did_not_run_are_caught_up(tmp_path: Path) -> None:
    """After a week away, each day that the aggregator still accepts is answered."""
    with minutes_of(HOUR):
        device = new_device(tmp_path, presence="hidden", late=3)
        device.run_until(at(1, 3))
        device.stop()
        device.start_at(at(8, 12))
        device.run_until(at(11, 3))

    assert sorted({*periods(device)} - {1, 11}) == [0, 5, 6, 7, 8, 9, 10]


def test_many_absences_that_are_due_at_once_are_stored_in_small_commits(tmp_path: Path) -> None:
    """Other processes wait for one of them and not for all; what fails is drawn again later."""
    collections = one_collection("it", presence="hidden", late=7)
    device = Device(tmp_path, collections, persons=True, lazy=True)
    for number in range(20):
        device.client.person(number).consent(True)
    device.clock.advance(days=4)
    commit, sizes = device.state.commit, list[int]()

    def noted(draws: Sequence[ReportDraw]) -> list[DrawOutcome]:
        sizes.append(len(draws))
        if len(sizes) == 2:
            raise StateError("disk full")
        return commit(draws)

    with (
        minutes_of(HOUR),
        patch.object(recorder, "MOST_DRAWN", 16),
        patch.object(device.state, "commit", noted),
    ):
        device.run_until(at(5))

    assert max(sizes) <= 16
    assert [Counter(periods(device))[day] for day in range(4)] == [20] * 4


def test_no_period_before_consent_is_caught_up(tmp_path: Path) -> None:
    with minutes_of(HOUR):
        collections = one_collection("it", presence="hidden")
        device = Device(tmp_path, collections, consent=None, person="answers")
        device.run_until(at(4, 12))
        device.client.consent(True)
        device.run_until(at(6, 3))

    assert sorted({*periods(device)} - {6}) == [4, 5]
    assert device.wire.arrivals[0].instant >= at(4, 12)


# -- clocks ----------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.floats(-40 * DAY, 40 * DAY), st.sampled_from(["it", "event", "kept", "flush"])
        ),
        max_size=12,
    )
)
def test_no_jump_of_the_clock_gains_a_slot(jumps: list[tuple[float, str]]) -> None:
    """Set back and forward at will, a clock yields each slot once, and never more than the cap."""
    collections = file(it={}, event={"unit": "event", "per_day": 2}, kept={"presence": "hidden"})
    with device_in_memory("answers", collections, at(0, 9), minute=HOUR) as device:
        for jump, what in jumps:
            set_clock(device.clock, device.clock.now() + jump)
            if what == "flush":
                device.client.flush()
            else:
                device.record(what)
        device.client.flush()
        spent = {name: device.spent(name) for name in collections}
        reports = device.stored
        device.stop()
    slots = Counter((each.fingerprint, each.period, each.slot) for each in reports)
    stored = Counter(each.fingerprint for each in reports)

    assert all(count == 1 for count in slots.values())
    for name, collection in collections.items():
        cap = collection.epsilon_user * 10**6
        assert stored[collection.fingerprint] * 10**6 <= spent[name] <= cap


def test_a_clock_that_was_ahead_answers_nothing_until_it_has_caught_up(tmp_path: Path) -> None:
    """Its period is answered once, early or not; none before it is, whatever is recorded then."""
    device = new_device(tmp_path)
    for day in (0, 5, 2, 4, 5.1, 6):
        set_clock(device.clock, at(day, 9))
        device.record()
    device.client.flush()

    assert periods(device) == [0, 5, 6]
    assert device.losses() == {Loss.FROZEN: 3}


@pytest.mark.parametrize("reading", [1e18, math.nan, -math.inf, -1.0])
def test_a_clock_outside_the_calendar_draws_nothing(tmp_path: Path, reading: float) -> None:
    collections = file(it={}, last={"takes": "last"}, kept={"presence": "hidden"})
    device = Device(tmp_path, collections)
    device.stop()
    device.start_at(reading)
    device.record()
    device.client.flush()
    device.client.explain("it")
    device.stop()

    assert device.wire.reports == []
    device.start_at(at(1, 9))
    device.record_at(at(1, 10))
    device.client.flush()
    assert collections["it"].fingerprint in {each.fingerprint for each in device.wire.reports}


def test_a_clock_that_was_ahead_does_not_hold_back_what_failed(tmp_path: Path) -> None:
    """A failure weeks ahead is no reason to wait for so long."""
    device = new_device(tmp_path, until="2028-12-01")
    device.wire.offline()
    device.record_at(at(0, 10))
    set_clock(device.clock, at(20))
    device.client.flush()
    device.wire.online()
    set_clock(device.clock, at(2))
    device.work()
    device.run_until(at(2, 2))

    assert len(device.wire.reports) == 1


def test_a_row_longer_than_a_body_leaves_in_bodies_of_a_few_lengths(tmp_path: Path) -> None:
    keys = {"unit": "event", "per_day": 512, "linkage": "collection", "until": "2026-12-02"}
    device = new_device(tmp_path, **keys)
    device.wire.offline()
    for _ in range(512):
        device.client.record("it", True)
    device.run_until(at(1))
    device.wire.online()
    device.client.flush()

    assert len({report.slot for report in device.wire.reports}) == 512
    assert {len(each.body) for each in device.wire.arrivals} == {SIZES[0], SIZES[2]}
