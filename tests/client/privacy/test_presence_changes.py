"""Hidden presence when more than time changes: the definition, the machine, the clock, a consent.

With the same randomness, an idle and an active person send the same. Before, a definition that was
removed let the active person's stored report leave (1.0 reports against 0.1), one that changed had
the old form answered by the active and the new one by the idle, and a state that was moved to
another machine silenced the active (0 against 0.95).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest

from veilcount_client.consent import ConsentDecisions
from veilcount_client.state import file_checks, sqlite_database
from veilcount_shared import Collection

from ...matrix import planted
from ..device_fixtures import HOUR, Device, at, file, one_collection, set_clock
from ..planting import Plant
from .emissions import NEVER, Life, Stream, emissions, recording

MONTH: dict[str, object] = {"unit": "month", "presence": "hidden"}
LIMITS = {"ceiling": 1000, "daily_ceiling": 100}


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


# -- a question that a later release adds ---------------------------------------------------------


def added_later(place: Path) -> tuple[list[int], int]:
    """Return the periods that are answered of a hidden question which day 20 adds; and its cost."""
    device = Device(place, file(first={}), at(0, 7), person="p", ceiling=999, daily_ceiling=99)
    device.run_until(at(20, 9))
    device.stop()
    device.start(file(first={}, mood={"presence": "hidden"}))
    if device.client.must_ask:
        device.client.consent(True, only="new")
    device.run_until(at(22))
    series = device.collections["mood"].fingerprint
    reports = [each for each in device.wire.counted.values() if each.fingerprint == series]
    return sorted(each.period for each in reports), device.spent("mood")


def test_a_hidden_question_that_is_added_is_not_answered_for_days_before(memory: Path) -> None:
    """It was answered "absent" for all of them: 21 epsilon by day 20, and a burst of 21 reports."""
    assert added_later(memory / "added") == ([20, 21], 2 * 10**6)


def test_what_counts_from_the_first_consent_is_seen(memory: Path) -> None:
    with planted.first_consent():
        periods, cost = added_later(memory / "planted")

    assert (len(periods), cost) == (22, 22 * 10**6)


def test_instants_of_the_day_of_consent_are_spread(memory: Path) -> None:
    """At the consent itself all questions would report together, and so show their person."""
    names = [f"c{number}" for number in range(20)]
    hidden = file(**{name: {"presence": "hidden"} for name in names})
    device = Device(memory / "spread", hidden, at(0, 20), person="p")
    instants = sorted(device.instant(name) for name in names)

    assert at(0, 20) < instants[0] < instants[-1] <= at(1)
    assert len(set(instants)) > 15
    assert instants[-1] - instants[0] > 2 * HOUR


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
