"""A state that is put back: what may have been answered since is not answered again; it says so.

Once it was detected and drew again all the same: with epsilon 1 for life, eight restorations gave
nine independent reports, under a receipt of "1.0 of 1.0".
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.diagnostics.state_checks import check_state
from veilcount_client.recording import answer_times
from veilcount_client.state import file_checks
from veilcount_client.state.sqlite_database import FILE

from ..device_fixtures import Device, Wire, at, clock_at, file

EVER = {"unit": "user", "linkage": "none"}
MONTH = {"unit": "month", "until": "2027-06-01", "linkage": "none"}
DAILY = {"linkage": "none"}
SLOW = {"measure": "trend", "changes": 1}


def back_up(device: Device, place: Path) -> None:
    device.stop()
    shutil.copytree(device.place, place)


def put_back(device: Device, backup: Path, day: float) -> None:
    """Restore the state's file, as a backup does, and ask and record again."""
    if device.runs:
        device.stop()
    for path in device.place.glob(f"{FILE}*"):
        path.unlink()
    shutil.copy(backup / FILE, device.place / FILE)
    device.start_at(at(day))
    if device.client.must_ask:
        device.client.consent(True)
    device.record()


def answered(place: Path, keys: Mapping[str, object], restorations: int = 8) -> list[int]:
    """Return the periods of all reports of a device whose state is put back day after day."""
    device = Device(place / "state", file(it=keys))
    back_up(device, place / "backup")
    device.start()
    device.record()
    device.run_until(at(0, 23))
    for day in range(1, restorations + 1):
        put_back(device, place / "backup", day + 0.4)
        device.run_until(at(day, 23))
    device.run_until(at(restorations + 3))
    return [report.period for report in device.wire.counted.values()]


@pytest.mark.parametrize("keys", [EVER, MONTH, SLOW], ids=["user", "month", "trend"])
def test_a_restored_state_answers_none_twice(tmp_path: Path, keys: Mapping[str, object]) -> None:
    periods = answered(tmp_path, keys)

    assert len(periods) == len(set(periods))
    assert keys is SLOW or periods == [0]


@contextmanager
def begins_anew() -> Iterator[None]:
    """Wrong, and once so: whose state was moved begins as another person."""

    def first_period(*arguments: Any) -> int:
        return answer_times._first_covered(*arguments)

    with (
        patch.object(answer_times, "first_period", first_period),
        patch("veilcount_client.recording.recorder.first_period", first_period),
    ):
        yield


def test_a_state_that_begins_anew_is_seen(tmp_path: Path) -> None:
    """The planted variant: nine reports of one person, as it was."""
    with begins_anew():
        assert answered(tmp_path, EVER) == [0] * 9


def test_answers_count_from_next_period(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Said by log, explain and doctor, with the day; the app can tell; what waits is dropped."""
    device = Device(tmp_path / "state", file(it=DAILY, ever=EVER))
    never_moved = device.client.state_moved
    device.record()
    back_up(device, tmp_path / "backup")
    with caplog.at_level(logging.WARNING, "veilcount"):
        put_back(device, tmp_path / "backup", 2.4)
    explained = [str(device.client.explain(name)) for name in ("it", "ever")]
    settings = device.client.settings
    device.work()
    device.stop()
    results = list(check_state(device.place, settings, device.collections, device.clock.now()))
    device.start()
    device.run_until(at(2, 23))
    before = len(device.wire.counted)
    device.record_at(at(3, 9))
    device.run_until(at(4))

    assert never_moved is None
    assert device.client.state_moved is not None
    assert "from 2026-12-04 on" in explained[0]
    assert "never again" in explained[1]
    assert "Answers count: it from 2026-12-04 on; ever never again" in caplog.text
    assert [each.subject for each in results if not each.ok][-1:] == ["state, moved"]
    assert (before, [each.period for each in device.wire.counted.values()]) == (0, [3])


def test_a_state_in_an_image_answers_nothing_and_names_the_fix_at_every_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One image, started ten times in a month: no two of its containers answer for one person."""
    wire = Wire(clock_at(at(0, 9)))
    built = Device(tmp_path / "image", file(it=MONTH), wire.clock, wire)
    built.stop()
    with caplog.at_level(logging.WARNING, "veilcount"):
        for start in range(10):
            place = tmp_path / str(start)
            shutil.copytree(built.place, place)
            container = Device(place, file(it=MONTH), wire.clock, wire)
            container.record()
            container.run_for(86_400)
            container.stop()

    assert wire.attempts == []
    assert caplog.text.count("it is part of a container image: keep the state's directory") == 10


def test_a_state_that_moves_at_every_start_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Twice within a period is no accident."""
    device = Device(tmp_path, file(it=MONTH))
    for start in range(1, 3):
        device.stop()
        with (
            caplog.at_level(logging.WARNING, "veilcount"),
            patch.object(file_checks, "machine_digest", lambda _, start=start: f"host {start}"),
        ):
            device.start_at(at(start))
    explained = str(device.client.explain("it"))

    assert "It was moved 2 times within one month: is it part of a container image" in explained
    assert caplog.text.count("It was moved 2 times") == 1
