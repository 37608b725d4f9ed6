"""A redefinition pays for no time range again: epsilon a unit survives it.

A campaign whose `from` moved within a month once took a second answer of the same person-month, and
a month that became days took up to 17 more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.state import sqlite_commit
from veilcount_client.state.interface import ReportDraw
from veilcount_client.state.losses import Loss
from veilcount_shared import Collection

from ..device_fixtures import Device, at, file, one_collection, set_clock

UNTIL = {"until": "2027-02-28"}
MONTH: dict[str, object] = {"unit": "month", **UNTIL}
LIMITS: dict[str, Any] = {"ceiling": 1000, "daily_ceiling": 100}  # what the app allows


def days_answered(
    place: Path, old: Mapping[str, Collection], new: Mapping[str, Collection], *, until: int = 31
) -> tuple[int, list[int]]:
    """Return how many answers the old form took until the 15th, and on which days the new one did.

    Days of the campaign's first month, counted from 0; something is recorded every day.
    """
    device = Device(place, old, person="redefinitions", **LIMITS)
    for day in range(15):
        _use(device, day)
    before = len(device.wire.counted)
    device.stop()
    device.start(new)
    device.client.consent(True)
    for day in range(15, until):
        _use(device, day)
    device.run_until(at(until, 12))
    device.stop()
    [name] = {each.fingerprint for each in new.values()}
    charged = [each for each in device.wire.reports if each.fingerprint == name]
    return before, sorted(each.period for each in charged)


def _use(device: Device, day: int) -> None:
    set_clock(device.clock, max(at(day, 9), device.clock.now()))
    device.send()


MONTHLY = one_collection("it", **MONTH)
DAILY = one_collection("it", unit="day", **UNTIL)
CHANGES = {
    "from moved within the month": one_collection("it", **MONTH, **{"from": "2026-12-10"}),
    "month to day": DAILY,
    "month to event": one_collection("it", unit="event", per_day=3, **UNTIL),
    "month to week": one_collection("it", unit="week", **UNTIL),
    "replaced under another name": file(its_heir={"unit": "day", "replaces": "it", **UNTIL}),
    "epsilon raised": one_collection("it", **MONTH, epsilon=1.5),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_month_that_was_answered_is_not_answered_again(tmp_path: Path, change: str) -> None:
    """Of December, answered as a month, no part is paid for again, whatever it is called."""
    assert days_answered(tmp_path, MONTHLY, CHANGES[change]) == (1, [])


@pytest.mark.parametrize(
    ("old", "new", "until", "answered"),
    [
        ({"epsilon": 0.1}, {"unit": "month"}, 40, (15, [1])),  # the month is asked from January on
        ({"unit": "user"}, {"unit": "month"}, 80, (1, [])),  # one answer is not one a month
        ({}, {"epsilon": 0.5}, 20, (15, [15, 16, 17, 18, 19])),  # the same days go on
    ],
)
def test_only_units_that_were_not_answered_are_answered(
    tmp_path: Path,
    old: dict[str, object],
    new: dict[str, object],
    until: int,
    answered: tuple[int, list[int]],
) -> None:
    forms = [one_collection("it", **UNTIL, **keys) for keys in (old, new)]

    assert days_answered(tmp_path, *forms, until=until) == answered


def test_who_is_refused_reads_why(tmp_path: Path) -> None:
    """`explain` names the day from which the new form is answered; the loss is counted."""
    device = Device(tmp_path, MONTHLY, **LIMITS)
    device.send()
    device.stop()
    device.start(DAILY)
    device.client.consent(True)
    device.send()
    [reason] = device.client.explain("it").reasons

    assert reason.startswith("cap: until 2027-01-01")
    assert device.losses() == {Loss.OVER_CAP: 1}


def test_the_old_rule_pays_again(tmp_path: Path) -> None:
    """Charged by the first day alone, the month that became days is paid for up to 17 times."""
    charge = sqlite_commit.charge

    def old(database: Any, draw: ReportDraw) -> bool:
        database.execute("update ledger set end_day = first_day + 1")
        return charge(database, draw)

    with patch.object(sqlite_commit, "charge", old):
        before, answered = days_answered(tmp_path, MONTHLY, DAILY)

    assert before == 1
    assert len(answered) > 10
