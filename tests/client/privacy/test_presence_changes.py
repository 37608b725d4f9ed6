"""Hidden presence when more than time changes: the definition, the machine, the clock, a consent.

With the same secrets, an idle and an active person send as many reports of each series. Before, a
definition that was removed let the active person's stored report leave (1.0 reports against 0.1),
one that changed had the old form answered by the active and the new one by the idle, and a state
that was moved to another machine silenced the active (0 against 0.95).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest

from veilcount_client.consent import ConsentDecisions
from veilcount_client.recording.answer_drawing import AnswerDrawer
from veilcount_client.state import file_checks, sqlite_database
from veilcount_client.testing import SeededRandomSource

from ..device_fixtures import (
    HOUR,
    Device,
    Wire,
    at,
    clock_at,
    file,
    minutes_of,
    one_collection,
    pass_time,
    quick,
    secrets,
    set_clock,
)

PERSONS = 3
MONTH: dict[str, object] = {"values": ["a", "b"], "unit": "month", "presence": "hidden"}
DAY: dict[str, object] = {"values": ["a", "b"], "presence": "hidden"}
LIMITS = {"ceiling": 1000, "daily_ceiling": 100}
Script = Callable[[Device, Callable[[], None]], None]


def removed(device: Device, use: Callable[[], None]) -> None:
    """An update of the app leaves the question out."""
    use()
    pass_time(device.clock, at(3), device)
    device.stop()
    device.start(file(other={}))
    pass_time(device.clock, at(31), device)


def changed(device: Device, use: Callable[[], None]) -> None:
    """An update of the app asks it in another form, within the month."""
    use()
    pass_time(device.clock, at(3), device)
    device.stop()
    device.start(one_collection("mood", **MONTH | {"values": ["a", "b", "c"]}))
    device.client.consent(True)
    pass_time(device.clock, at(31), device)


def moved(device: Device, use: Callable[[], None]) -> None:
    """The state is copied to another machine."""
    use()
    pass_time(device.clock, at(1), device)
    device.stop()
    with patch.object(file_checks, "machine_digest", lambda _: "another"):
        device.start()
        device.client.consent(True)
        pass_time(device.clock, at(31), device)
        device.stop()


def back_after_the_end(device: Device, use: Callable[[], None]) -> None:
    """Withdrawn on the last day, and taken back after it."""
    pass_time(device.clock, at(29, 0.5), device)
    use()
    device.client.consent(False)
    pass_time(device.clock, at(30, 5), device)
    device.client.consent(True)
    pass_time(device.clock, at(32), device)


def consent_by_a_clock_ahead(device: Device, use: Callable[[], None]) -> None:
    """The clock is three days ahead when the person consents again, and then set right."""
    device.client.forget()
    set_clock(device.clock, at(3, 7))
    device.client.consent(True)
    device.work()
    set_clock(device.clock, at(0, 8))
    for day in range(3):
        pass_time(device.clock, at(day, 9), device)
        use()
    pass_time(device.clock, at(6), device)


SCRIPTS: dict[Script, dict[str, object]] = {
    removed: MONTH,
    changed: MONTH,
    moved: MONTH,
    back_after_the_end: DAY,
    consent_by_a_clock_ahead: DAY,
}


def sent(
    script: Script, *, active: bool, plant: AbstractContextManager[object] | None = None
) -> list[Counter[str]]:
    """Return how many reports of each series leave of each person."""
    counts = []
    for person in range(PERSONS):
        clock = clock_at(at(0, 7))
        wire = Wire(clock)
        with (
            tempfile.TemporaryDirectory(dir=quick()) as place,
            secrets(person),
            minutes_of(6 * HOUR),
            plant or nullcontext(),
        ):
            device = Device(
                Path(place),
                one_collection("mood", **SCRIPTS[script]),
                clock,
                wire,
                randomness=SeededRandomSource(person),
                **LIMITS,  # type: ignore[arg-type] # what the app allows
            )

            def use(device: Device = device) -> None:
                if active:
                    device.client.record("mood", "a")
                device.work()

            script(device, use)
            if device.runs:
                device.stop()
        counts.append(Counter(each.fingerprint for each in wire.reports))
    return counts


@pytest.mark.one_in(2)
@pytest.mark.parametrize("script", SCRIPTS)
def test_idle_and_active_send_alike(script: Script) -> None:
    """As many reports of each series, person by person."""
    assert sent(script, active=True) == sent(script, active=False)


PLANTED: dict[str, tuple[Script, Callable[[], AbstractContextManager[object]]]] = {
    "what waits of a definition that is gone leaves": (
        removed,
        lambda: patch.object(ConsentDecisions, "load", lambda _: None),
    ),
    "a new form asks those who have not answered the old one": (
        changed,
        lambda: patch.object(AnswerDrawer, "forgo", lambda *_: None),
    ),
    "a moved state does not know that somebody comes back": (
        moved,
        lambda: patch.object(sqlite_database, "_begin_as_another", forget_all),
    ),
}


def forget_all(database: object) -> None:
    """Begin as another person, as once: without a note of who was there."""
    for table in ("person", "used", "held", "report", "row_close"):
        database.execute(f"delete from {table}")  # type: ignore[attr-defined] # noqa: S608 - names from above


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_difference_is_seen(bug: str) -> None:
    """The same comparison, on the client as it was."""
    script, plant = PLANTED[bug]
    active = sent(script, active=True, plant=plant())
    idle = sent(script, active=False, plant=plant())

    assert active != idle
