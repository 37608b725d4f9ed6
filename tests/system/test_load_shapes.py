"""The course of a load test, and what its figures are made of: pure functions, and files."""

from __future__ import annotations

import os
import signal
import subprocess
from math import inf, isclose
from pathlib import Path

import pytest
from loadtests.ipc import Assignment, Diary
from loadtests.load_profiles import RAMP, SHAPES, SPIKE, STEADY, Terms, pace
from loadtests.phases import PhaseResult, knee, table, time_ranges
from loadtests.resource_usage import Meter, Sight

USERS = 32


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_has_somebody_at_work_and_once_everybody(name: str) -> None:
    shape = SHAPES[name]
    shares = [step / 100 for step in range(150)]

    assert all(0 < shape.working(share, USERS) <= USERS for share in shares)
    assert max(shape.working(share, USERS) for share in shares) == USERS


def test_a_spike_is_tenfold_for_a_fifth_of_the_run() -> None:
    shape = SHAPES[SPIKE]
    levels = [shape.level(step / 100) for step in range(100)]

    assert levels.count(1.0) == 20
    assert levels.count(0.1) == 80
    assert isclose(shape.area, sum(levels) / 100)


def test_a_device_waits_for_the_phase_that_wants_it() -> None:
    shape = SHAPES[SPIKE]

    assert shape.opens(0.1, 0, USERS) == 0.1
    assert shape.opens(0.1, 31, USERS) == 0.4
    assert shape.opens(0.5, 31, USERS) == 0.5
    assert shape.opens(0.7, 31, USERS) == inf
    assert SHAPES[RAMP].opens(0.0, 1, USERS) == pytest.approx(1 / 6)


@pytest.mark.parametrize("name", SHAPES)
def test_the_pace_spreads_all_sends_over_the_run(name: str) -> None:
    shape, seconds, sends = SHAPES[name], 60, 5_000
    between = pace(shape, USERS, seconds, sends)
    worked = sum(shape.level(step / 1000) for step in range(1000)) / 1000 * USERS * seconds

    assert worked / between == pytest.approx(sends, rel=0.01)


def test_a_send_belongs_to_the_phase_in_which_it_began() -> None:
    terms = Terms(SPIKE, 10, 20.0, 0.0)
    at = [100.0, 107.9, 108.0, 111.0, 119.0]
    took = [0.010, 0.020, 3.000, 9.000, 0.040]
    replies = [b"x", b"x", b"x", b"", b"x"]
    found = time_ranges(Diary([0] * 5, replies, took, 20.0, 1.0, at=at), terms)

    assert [len(each.answered) for each in found] == [2, 1, 1]
    assert [each.unanswered for each in found] == [0, 1, 0]
    assert [each.devices for each in found] == [1, 10, 1]
    assert [each.seconds for each in found] == pytest.approx([8.0, 4.0, 8.0])
    assert table(found)[2].split() == ["x10", "10", "0", "3,000.0", "3,000.0", "1"]


def test_the_knee_is_where_more_devices_only_wait_longer() -> None:
    found = [
        PhaseResult("1/4", 8, 1.0, [0.010] * 800, 0),
        PhaseResult("1/2", 16, 1.0, [0.015] * 1000, 0),
        PhaseResult("1/1", 32, 1.0, [0.200] * 1050, 0),
    ]

    assert knee(found, None) == "1,000 requests/s with 16 devices, p99 within 100 ms"
    assert knee(found, 250.0).startswith("not reached: 1,050 requests/s")
    assert knee(found, 1.0) == "none: p99 is above 1 ms with 8 devices already"


def test_what_generators_share_comes_back_as_one_diary(tmp_path: Path) -> None:
    Assignment([b"a", b"bc"], [1, 0, 1], Terms(STEADY, 2, 3.0, 0.5, generators=2)).save(tmp_path)
    Diary([0], [b"x"], [0.1], 1.0, 0.3, [200], [7.0]).save(tmp_path, 0)
    Diary([1, 1], [b"", b"yz"], [0.2, 0.3], 2.0, 0.4, [400, 200], [6.0, 8.0]).save(tmp_path, 1)
    message, diary = Assignment.load(tmp_path), Diary.load(tmp_path)

    assert message.bodies == [b"a", b"bc"]
    assert message.terms == Terms(STEADY, 2, 3.0, 0.5, generators=2)
    assert list(diary.bodies) == [1, 0, 1]
    assert list(diary.replies) == [b"", b"x", b"yz"]
    assert diary.answered == [True, True, True]
    assert (diary.begun, diary.lasted) == (6.0, 2.0)
    assert diary.cpu == pytest.approx(0.7)


def test_growing_memory_is_distinguished_from_memory_taken_once() -> None:
    meter = Meter(list)
    meter.sights += [Sight(float(at), 100 + 900 * (at > 1)) for at in range(100)]
    flat = meter.risen
    meter.sights[:] = [Sight(float(at), 1_000 + 10 * at) for at in range(100)]

    assert flat == pytest.approx(0.0, abs=1e-6)
    assert meter.growth == pytest.approx(10.0)
    assert meter.risen == pytest.approx(740.0)


def test_what_a_killed_process_computed_still_counts() -> None:
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    meter = Meter(lambda: [busy.pid])
    meter.look()
    while meter.computed < 0.05:
        meter.look()
    os.kill(busy.pid, signal.SIGKILL)
    busy.wait()
    before = meter.computed
    meter.look()

    assert meter.computed == before > 0
