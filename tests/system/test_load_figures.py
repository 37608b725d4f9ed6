"""What a load test's verdict rests on: the generators' diaries, memory and CPU as measured."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from loadtests.ipc import Assignment, Diary
from loadtests.load_profiles import STEADY, Terms
from loadtests.resource_usage import Meter, Sight


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
