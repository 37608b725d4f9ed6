"""Hidden presence when more than time changes: the definition, the machine, the clock, a consent.

With the same secrets, an idle and an active person send as many reports of each series. Before, a
definition that was removed let the active person's stored report leave (1.0 reports against 0.1),
one that changed had the old form answered by the active and the new one by the idle, and a state
that was moved to another machine silenced the active (0 against 0.95).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from unittest.mock import patch

import pytest

from veilcount_client.consent import ConsentDecisions
from veilcount_client.recording.answer_drawing import AnswerDrawer
from veilcount_client.state import file_checks, sqlite_database
from veilcount_client.testing import SeededRandomSource

from ..device_fixtures import HOUR, Device, at, device_in_memory, file, one_collection, set_clock

PERSONS = 2
MONTH: dict[str, object] = {"values": ["a", "b"], "unit": "month", "presence": "hidden"}
DAY: dict[str, object] = {"values": ["a", "b"], "presence": "hidden"}
Script = Callable[[Device, Callable[[], None]], None]


def removed(device: Device, use: Callable[[], None]) -> None:
    """An update of the app leaves the question out."""
    use()
    device.run_until(at(3))
    device.stop()
    device.start(file(other={}))
    device.run_until(at(31))


def changed(device: Device, use: Callable[[], None]) -> None:
    """An update of the app asks it in another form, within the month."""
    use()
    device.run_until(at(3))
    device.stop()
    device.start(one_collection("mood", **MONTH | {"values": ["a", "b", "c"]}))
    device.client.consent(True)
    device.run_until(at(31))


def moved(device: Device, use: Callable[[], None]) -> None:
    """The state is copied to another machine."""
    use()
    device.run_until(at(1))
    device.stop()
    with patch.object(file_checks, "machine_digest", lambda _: "another"):
        device.start()
        device.client.consent(True)
        device.run_until(at(31))
        device.stop()


def back_after_the_end(device: Device, use: Callable[[], None]) -> None:
    """Withdrawn on the last day, and taken back after it."""
    device.run_until(at(29, 0.5))
    use()
    device.client.consent(False)
    device.run_until(at(30, 5))
    device.client.consent(True)
    device.run_until(at(32))


def consent_by_a_clock_ahead(device: Device, use: Callable[[], None]) -> None:
    """The clock is three days ahead when the person consents again, and then set right."""
    device.client.forget()
    set_clock(device.clock, at(3, 7))
    device.client.consent(True)
    device.work()
    set_clock(device.clock, at(0, 8))
    for day in range(3):
        device.run_until(at(day, 9))
        use()
    device.run_until(at(6))


SCRIPTS: dict[Script, dict[str, object]] = {
    removed: MONTH,
    changed: MONTH,
    moved: MONTH,
    back_after_the_end: DAY,
    consent_by_a_clock_ahead: DAY,
}


Plant = Callable[[], AbstractContextManager[object]]


def sent(script: Script, *, active: bool, plant: Plant = nullcontext) -> list[Counter[str]]:
    """Return how many reports of each series leave of each person."""
    counts = []
    for person in range(PERSONS):
        with device_in_memory(
            person,
            one_collection("mood", **SCRIPTS[script]),
            at(0, 7),
            minute=12 * HOUR,
            plant=plant,
            randomness=SeededRandomSource(person),
            ceiling=1000,
            daily_ceiling=100,
        ) as device:

            def use(device: Device = device) -> None:
                if active:
                    device.client.record("mood", "a")
                device.work()

            script(device, use)
            if device.runs:
                device.stop()
        counts.append(Counter(each.fingerprint for each in device.wire.reports))
    return counts


@pytest.mark.one_in(2)
@pytest.mark.parametrize("script", SCRIPTS)
def test_idle_and_active_send_alike(script: Script) -> None:
    """As many reports of each series, person by person."""
    assert sent(script, active=True) == sent(script, active=False)


def leaves_what_waits() -> AbstractContextManager[object]:
    """Wrong, and once so: what waits of a definition that is gone leaves."""
    return patch.object(ConsentDecisions, "load", lambda _: None)


def asks_again() -> AbstractContextManager[object]:
    """Wrong, and once so: a new form asks those who have not answered the old one."""
    return patch.object(AnswerDrawer, "forgo", lambda *_: None)


def begins_as_another() -> AbstractContextManager[object]:
    """Wrong, and once so: a moved state does not know that somebody comes back."""

    def forget_all(database: object) -> None:
        for table in ("person", "used", "held", "report", "row_close"):
            database.execute(f"delete from {table}")  # type: ignore[attr-defined] # noqa: S608 - names from above

    return patch.object(sqlite_database, "_begin_as_another", forget_all)


@pytest.mark.parametrize(
    ("script", "plant"),
    [(removed, leaves_what_waits), (changed, asks_again), (moved, begins_as_another)],
)
def test_a_planted_difference_is_seen(script: Script, plant: Plant) -> None:
    """The same comparison, on the client as it was."""
    assert sent(script, active=True, plant=plant) != sent(script, active=False, plant=plant)
