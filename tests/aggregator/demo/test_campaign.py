"""The campaign of the demo: its dates move with today, its definitions are an app's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.demo.campaign import Campaign, Question
from veilcount_aggregator.demo.deployment import DemoClock
from veilcount_shared import load_collections

DAYS = [date(2026, 11, 21), date(2027, 1, 1), date(2028, 2, 29), date(2026, 7, 31)]


def campaign(day: date) -> Campaign:
    return Campaign(datetime(day.year, day.month, day.day, 12, tzinfo=UTC))


@pytest.mark.parametrize("day", DAYS, ids=str)
def test_it_began_four_months_ago_and_ends_in_the_future(day: date) -> None:
    made = campaign(day)
    months = (day.year - made.start.year) * 12 + day.month - made.start.month

    assert (made.start.day, months) == (1, 4)
    assert made.until > day
    assert made.day(made.days - 1) == day
    assert {each.start for each in made.collections.values()} == {made.start}
    assert {each.until for each in made.collections.values()} == {made.until}


def test_a_device_reads_the_file_as_the_demo_does(tmp_path: Path) -> None:
    made = campaign(DAYS[0])
    file = made.write(tmp_path)

    assert load_collections(file) == made.collections
    assert made.collections[Question.TRAIL].domain.size == 2_000


def test_the_clock_never_goes_back_and_follows_the_machine_once_released() -> None:
    machine = datetime(2027, 1, 1, tzinfo=UTC)
    clock = DemoClock(datetime(2026, 7, 1, tzinfo=UTC), machine.timestamp)
    evening = datetime(2026, 7, 1, 20, tzinfo=UTC)
    clock.move(evening)
    clock.move(datetime(2026, 7, 1, 19, tzinfo=UTC))

    assert clock.instant() == evening
    assert clock.now() == evening.timestamp()

    clock.release()

    assert clock.instant() == machine
