"""A redefinition pays for no time range again: epsilon a unit survives it.

A campaign whose `from` moved within a month once took a second answer of the same person-month, and
a month that became days took up to 17 more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.state import sqlite
from veilcount_client.state.interface import ReportDraw
from veilcount_client.state.losses import Loss
from veilcount_shared import Collection

from ..device_fixtures import (
    Device,
    Wire,
    at,
    clock_at,
    file,
    one_collection,
    pass_time,
    secrets,
    set_clock,
)

UNTIL = {"until": "2027-02-28"}
MONTH: dict[str, object] = {"unit": "month", **UNTIL}
LATER = {"from": "2026-12-10"}
LIMITS: dict[str, Any] = {"ceiling": 1000, "daily_ceiling": 100}  # what the app allows


@pytest.fixture(autouse=True)
def _the_same_persons() -> Iterator[None]:
    with secrets("redefinitions"):
        yield


def days_answered(
    place: Path,
    old: Mapping[str, Collection],
    new: Mapping[str, Collection],
    *,
    until: int = 31,
    plant: AbstractContextManager[Any] | None = None,
) -> tuple[int, list[int]]:
    """Return how many answers the old form took until the 15th, and on which days the new one did.

    Days of the campaign's first month, counted from 0; something is recorded every day.
    """
    clock = clock_at(at(0, 9))
    wire = Wire(clock)
    with plant or nullcontext():
        device = Device(place, old, clock, wire, **LIMITS)
        for day in range(15):
            _use(device, day)
        before = len(wire.counted)
        device.stop()
        device.start(new)
        device.client.consent(True)
        for day in range(15, until):
            _use(device, day)
        pass_time(clock, at(until, 12), device)
        device.stop()
    [name] = {each.fingerprint for each in new.values()}
    charged = [each for each in wire.reports if each.fingerprint == name]
    return before, sorted(each.period for each in charged)


def _use(device: Device, day: int) -> None:
    set_clock(device.clock, max(at(day, 9), device.clock.now()))
    for name in device.collections:
        device.client.record(name, True)
    device.client.flush()


CHANGES = {
    "from moved within the month": (
        one_collection("it", **MONTH),
        one_collection("it", **MONTH, **LATER),
    ),
    "month to day": (one_collection("it", **MONTH), one_collection("it", unit="day", **UNTIL)),
    "month to event": (
        one_collection("it", **MONTH),
        one_collection("it", unit="event", per_day=3, **UNTIL),
    ),
    "month to week": (one_collection("it", **MONTH), one_collection("it", unit="week", **UNTIL)),
    "replaced under another name": (
        one_collection("it", **MONTH),
        file(its_heir={"unit": "day", "replaces": "it", **UNTIL}),
    ),
    "epsilon raised": (one_collection("it", **MONTH), one_collection("it", **MONTH, epsilon=1.5)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_month_that_was_answered_is_not_answered_again(tmp_path: Path, change: str) -> None:
    """Of December, answered as a month, no part is paid for again, whatever it is called."""
    before, answered = days_answered(tmp_path, *CHANGES[change])

    assert (before, answered) == (1, [])


def test_days_that_were_answered_are_not_paid_for_as_a_month(tmp_path: Path) -> None:
    """The month is asked from January on."""
    day, month = (
        one_collection("it", unit="day", epsilon=0.1, **UNTIL),
        one_collection("it", **MONTH),
    )
    before, answered = days_answered(tmp_path, day, month, until=40)

    assert before == 15
    assert answered == [1]


def test_a_campaign_for_the_user_is_not_answered_in_parts(tmp_path: Path) -> None:
    """What was one answer for the campaign does not become one a month."""
    user, month = one_collection("it", unit="user", **UNTIL), one_collection("it", **MONTH)

    assert days_answered(tmp_path, user, month, until=80) == (1, [])


def test_the_same_days_go_on(tmp_path: Path) -> None:
    """Another epsilon for the same unit: each day that was not answered yet is asked."""
    old, new = one_collection("it", **UNTIL), one_collection("it", epsilon=0.5, **UNTIL)
    before, answered = days_answered(tmp_path, old, new, until=20)

    assert (before, answered) == (15, [15, 16, 17, 18, 19])


def test_who_is_refused_reads_why(tmp_path: Path) -> None:
    """`explain` names the day from which the new form is answered; the loss is counted."""
    clock = clock_at(at(0, 9))
    device = Device(tmp_path, one_collection("it", **MONTH), clock, Wire(clock), **LIMITS)
    device.client.record("it", True)
    device.client.flush()
    device.stop()
    device.start(one_collection("it", unit="day", **UNTIL))
    device.client.consent(True)
    device.client.record("it", True)
    device.client.flush()
    [reason] = device.client.explain("it").reasons

    assert reason.startswith("cap: until 2027-01-01")
    assert device.worker.state.losses()[Loss.OVER_CAP, "it"] == 1


def test_the_old_rule_pays_again(tmp_path: Path) -> None:
    """Charged by the first day alone, the month that became days is paid for up to 17 times."""
    charge = sqlite._charge

    def old(database: Any, draw: ReportDraw) -> bool:
        database.execute("update ledger set end_day = first_day + 1")
        return charge(database, draw)

    before, answered = days_answered(
        tmp_path, *CHANGES["month to day"], plant=patch.object(sqlite, "_charge", old)
    )

    assert before == 1
    assert len(answered) > 10
