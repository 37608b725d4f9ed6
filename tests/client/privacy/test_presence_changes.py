"""Hidden presence when more than time changes: the definition, the machine, the clock, a consent.

With the same randomness, an idle and an active person send the same. Before, a definition that was
removed let the active person's stored report leave (1.0 reports against 0.1), one that changed had
the old form answered by the active and the new one by the idle, and a state that was moved to
another machine silenced the active (0 against 0.95).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from unittest.mock import patch

import pytest

from veilcount_client.consent import ConsentDecisions
from veilcount_client.state import file_checks, sqlite_database
from veilcount_shared import Collection

from ..device_fixtures import HOUR, Device, at, file, one_collection, set_clock
from .emissions import NEVER, Life, Stream, emissions, recording

MONTH: dict[str, object] = {"unit": "month", "presence": "hidden"}
LIMITS = {"ceiling": 1000, "daily_ceiling": 100}
Plant = Callable[[], AbstractContextManager[object]]


def remove(device: Device) -> None:
    """An update of the app leaves the question out."""
    device.stop()
    device.start(file(other={}))


def change(device: Device) -> None:
    """An update of the app asks it in another form, within the month."""
    device.stop()
    device.start(one_collection("mood", values=["a", "b", "c"], **MONTH))
    device.client.consent(True)


def move(device: Device) -> None:
    """The state is copied to another machine."""
    device.stop()
    with patch.object(file_checks, "machine_digest", lambda _: "another"):
        device.start()
        device.client.consent(True)


def consent_by_a_clock_ahead(device: Device) -> None:
    """The clock is three days ahead when the person consents again, and then set right."""
    device.client.forget()
    set_clock(device.clock, at(3, 7))
    device.client.consent(True)
    device.work()
    set_clock(device.clock, at(0, 8))


MONTHLY = one_collection("mood", values=["a", "b"], **MONTH)
DAILY = one_collection("mood", values=["a", "b"], presence="hidden")
REMOVED = Life("removed", ((at(3), remove),), LIMITS)
CHANGED = Life("changed", ((at(3), change),), LIMITS)
MOVED = Life("moved", ((at(1), move),), LIMITS)
BACK = Life("back after the end", ((at(29, 0.6), "withdraw"), (at(30, 5), "consent")))
AHEAD = Life("a clock ahead", ((at(0, 7.05), consent_by_a_clock_ahead),))
AT_ONCE = recording("mood", "a", hours=7.1)
AT_THE_END: Stream = ((at(29, 0.5), "mood", "a", {}),)


def is_alike(
    collections: dict[str, Collection], stream: Stream, life: Life, plant: Plant = nullcontext
) -> bool:
    """Whether in more than a month the same leaves of someone active as of someone idle."""
    active, idle = (
        emissions(collections, each, life, until=at(33), minute=12 * HOUR, plant=plant)
        for each in (stream, NEVER)
    )
    return active == idle


@pytest.mark.parametrize(
    ("collections", "stream", "life"),
    [
        (MONTHLY, AT_ONCE, REMOVED),
        (MONTHLY, AT_ONCE, CHANGED),
        (MONTHLY, AT_ONCE, MOVED),
        (DAILY, AT_THE_END, BACK),
        (DAILY, recording("mood", *"aaa"), AHEAD),
    ],
    ids=["removed", "changed", "moved", "back after the end", "a clock ahead"],
)
def test_idle_and_active_send_alike(
    collections: dict[str, Collection], stream: Stream, life: Life
) -> None:
    assert is_alike(collections, stream, life)


# -- planted bugs ----------------------------------------------------------------------------------


def leaves_what_waits() -> AbstractContextManager[object]:
    """Wrong, and once so: what waits of a definition that is gone leaves."""
    return patch.object(ConsentDecisions, "load", lambda _: None)


def asks_again() -> AbstractContextManager[object]:
    """Wrong, and once so: a new form asks those who have not answered the old one."""
    return patch.object(ConsentDecisions, "_answered_lineages", lambda *_: set())


@contextmanager
def begins_as_another() -> Iterator[None]:
    """Wrong, and once so: a moved state does not know that somebody comes back."""

    def forget_all(database: sqlite3.Connection) -> None:
        for table in ("person", "coverage", "used", "held", "report"):
            database.execute(f"delete from {table}")  # noqa: S608 - names from above

    with (
        patch.object(sqlite_database, "_begin_as_another", forget_all),
        patch.object(sqlite_database, "_bar", lambda *_: None),
    ):
        yield


@pytest.mark.parametrize(
    ("life", "plant"),
    [(REMOVED, leaves_what_waits), (CHANGED, asks_again), (MOVED, begins_as_another)],
)
def test_a_planted_difference_is_seen(life: Life, plant: Plant) -> None:
    """The same comparison, on the client as it was."""
    assert not is_alike(MONTHLY, AT_ONCE, life, plant)
