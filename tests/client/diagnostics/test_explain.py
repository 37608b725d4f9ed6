"""explain: what waits, when a person answers, one reason a cause; and never a value."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client import Client
from veilcount_client.recording import kept_values
from veilcount_client.recording.kept_values import KeptValue
from veilcount_client.recording.known_definitions import period_label
from veilcount_client.state import HeldValue, StateError
from veilcount_shared import Collection, periods, schedule
from veilcount_shared.periods import Unit

from ..delivery.app_client import NOBODY
from ..device_fixtures import DAY, Device, at, clock_at, file, one_collection, set_clock

CENTRAL: dict[str, Any] = {"model": "central", "budget": 1}
DEVICE: dict[str, Any] = {"takes": "last", "held": "device"}
MEMORY: dict[str, Any] = {"takes": "last", "held": "process"}
FIRST_MINUTE = at(0, 0, 60)


def device(place: Path, start: float = FIRST_MINUTE, **keys: Any) -> Device:
    """Return a device whose person was asked in the first minute, before any drawn instant."""
    is_central = keys.get("model") == "central"
    return Device(place, one_collection("it", **keys), start, person=1, trust_curator=is_central)


def reasons(some_device: Device, name: str = "it") -> tuple[str, ...]:
    return some_device.client.explain(name).reasons


# -- what waits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [{}, CENTRAL])
@pytest.mark.parametrize("held", [DEVICE, MEMORY])
@pytest.mark.parametrize("unit", ["day", "week", "month", "user"])
def test_a_value_that_waits_is_named_until_its_instant(
    unit: str, held: dict[str, Any], model: dict[str, Any], tmp_path: Path
) -> None:
    waiting = device(tmp_path, unit=unit, **held, **model)
    before = reasons(waiting)
    waiting.record()
    during = reasons(waiting)
    waiting.run_until(waiting.instant() + 1)
    after = reasons(waiting)
    period = "campaign" if unit == "user" else unit
    sentence = f"1 value is waiting; it is reported at an instant drawn for this {period}"

    assert before == ()
    assert during == (sentence + (", or when this process ends" if held is MEMORY else ""),)
    assert after[0].startswith("frozen until ")
    assert not any(each.startswith(sentence) for each in after)


def test_a_value_of_an_earlier_period_is_named_with_that_period(tmp_path: Path) -> None:
    """Its instant passed while no process ran, and the next round has not come yet."""
    waiting = device(tmp_path, **DEVICE)
    waiting.record()
    waiting.stop()
    waiting.lazy = True
    waiting.start_at(at(2))

    assert "1 value is waiting; it is reported at an instant drawn for 2026-12-01" in reasons(
        waiting
    )


def test_a_true_value_in_memory_is_on_the_way(tmp_path: Path) -> None:
    """Its slot is charged: it leaves within minutes, and no disk has it."""
    waiting = device(tmp_path, **CENTRAL)
    waiting.wire.offline()
    waiting.record()
    on_the_way = reasons(waiting)
    waiting.wire.online()
    waiting.client.flush()

    assert on_the_way[-1] == "on the way: 1 reports wait for their time, 1 of them in memory"
    assert not any("on the way" in each for each in reasons(waiting))


def test_only_ones_own_values_are_named(tmp_path: Path) -> None:
    client = Client(
        NOBODY,
        collections=one_collection("it", **CENTRAL),
        state_dir=tmp_path,
        persons=True,
        trust_curator=True,
        clock=clock_at(at(0, 9)),
        threaded=False,
    )
    with closing(client):
        for number in (1, 2):
            client.person(number).consent(True)
        client.person(1).record("it", True)
        client.flush(until="stored")
        mine, others = (client.person(number).explain("it").reasons for number in (1, 2))

    assert "1 of them in memory" in mine[-1]
    assert others == ()


def test_the_state_of_a_trend_is_kept_for_its_next_report(tmp_path: Path) -> None:
    trend = device(tmp_path, measure="trend", changes=1, unit="week")
    trend.record()
    value = trend.state.held(trend.key, trend.collections["it"].fingerprint)
    assert value is not None
    label = period_label(trend.collections["it"], value.period)
    week = label if value.period else "this week"

    (reason,) = reasons(trend)
    place, _, report = reason.partition("; ")

    assert place == "the state is kept on this device"
    assert report == f"the next report is randomized at an instant drawn for {week}"


def test_a_visit_is_kept_for_the_next_one(tmp_path: Path) -> None:
    visits = device(tmp_path, takes="returning")
    visits.record()

    assert reasons(visits)[-1] == (
        "the last visit is kept on this device; the next period with a visit asks for it"
    )


# -- never a value ---------------------------------------------------------------------------------


def everything_shown(place: Path, value: object, **keys: Any) -> list[str]:
    """Return all that a person and a developer see of a value that waits."""
    waiting = device(place, **keys)
    waiting.record(value=value)
    receipt = waiting.client.receipt()
    shown = [str(waiting.client.explain("it")), receipt.text(), receipt.html()]
    waiting.stop()
    return [*shown, json.dumps(receipt.json())]


def shows_the_value(place: Path, **keys: Any) -> bool:
    on, off = (everything_shown(place / str(value), value, **keys) for value in (True, False))
    return on != off


KINDS = [
    {"unit": "month", **DEVICE},
    {"unit": "month", **MEMORY},
    {"unit": "month", **DEVICE, **CENTRAL},
    CENTRAL,
    {"measure": "trend", "changes": 1},
]


@pytest.mark.parametrize("keys", KINDS)
def test_what_is_shown_does_not_depend_on_the_value(keys: dict[str, Any], tmp_path: Path) -> None:
    assert not shows_the_value(tmp_path, **keys)


@pytest.mark.parametrize("keys", [KINDS[0], KINDS[2], KINDS[4]])
def test_a_planted_line_that_shows_a_value_is_seen(keys: dict[str, Any], tmp_path: Path) -> None:
    on_device = kept_values._on_device

    def planted(collection: Collection, value: HeldValue) -> KeptValue:
        kept = on_device(collection, value)
        return KeptValue(kept.kind, kept.place, value.value, kept.until)

    with patch.object(kept_values, "_on_device", planted):
        assert shows_the_value(tmp_path, **keys)


def shown_of_a_visit(place: Path, day: int) -> list[object]:
    """Return what is shown two days later of a person who answers in another period."""
    visits = device(place, takes="returning", answers=1)
    assert day not in answering(visits)
    visits.record_at(at(day, 9))
    visits.run_until(at(6))
    receipt = visits.client.receipt()
    return [receipt.text(), receipt.html(), receipt.json(), reasons(visits)]


def test_nothing_shows_when_the_last_visit_was(tmp_path: Path) -> None:
    """Only that it is kept, and until when."""
    shown, other = (shown_of_a_visit(tmp_path / str(day), day) for day in (3, 5))

    assert "When you were last here is kept on this device, until 2027-01-30" in str(shown[0])
    assert shown == other


def test_a_planted_period_of_a_visit_is_detected(tmp_path: Path) -> None:
    def planted(collection: Collection, value: HeldValue) -> KeptValue:
        kept = kept_values.KeptKind.VISIT, kept_values.Place.DEVICE
        return KeptValue(*kept, period_label(collection, value.period), "2027-01-30")

    with patch.object(kept_values, "_on_device", planted):
        shown, other = (shown_of_a_visit(tmp_path / str(day), day) for day in (3, 5))

    assert shown != other


# -- dates -----------------------------------------------------------------------------------------

YEAR: dict[str, Any] = {"from": "2026-07-01", "until": "2027-07-01"}
JULY = datetime(2026, 7, 1, 0, 1, tzinfo=UTC).timestamp()


def answering(some_device: Device) -> list[int]:
    """Return the periods that were drawn for the person, ascending."""
    root, collection = some_device.person.root, some_device.collections["it"]
    return sorted(schedule.draw_answering_periods(root, collection))


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ("month", "not this month: drawn by chance, 3 of 12; next in "),
        ("week", "not this week: drawn by chance, 3 of 53; next in the week of 202"),
        ("day", "not this day: drawn by chance, 3 of 365; next on 202"),
    ],
)
def test_a_period_not_drawn_names_the_next_drawn_one(unit: str, words: str, tmp_path: Path) -> None:
    """And on that date the person answers."""
    drawn = device(tmp_path, unit=unit, answers=3, start=JULY, **YEAR)
    following, *_ = answering(drawn)
    first_day = periods.first_day(Unit(unit), date(2026, 7, 1), following)
    (reason,) = reasons(drawn)
    set_clock(drawn.clock, JULY + (first_day - date(2026, 7, 1)).days * DAY)

    assert reason.startswith(words)
    assert reason.endswith(f"{first_day:%B %Y}" if unit == "month" else f"{first_day}")
    assert reasons(drawn) == ()


def test_after_the_last_drawn_period_none_is_left(tmp_path: Path) -> None:
    drawn = device(tmp_path, answers=1)
    (period,) = answering(drawn)
    set_clock(drawn.clock, at(period + 1))

    assert reasons(drawn) == ("not this day: drawn by chance, 1 of 30; none is left",)


@pytest.mark.parametrize(
    ("unit", "until", "period"),
    [
        ("day", "2026-12-02", "day"),
        ("week", "2026-12-07", "week"),
        ("month", "2026-12-31", "month"),
        ("user", "2026-12-31", "campaign"),
    ],
)
def test_a_frozen_period_ends_on_a_date(unit: str, until: str, period: str, tmp_path: Path) -> None:
    answered = device(tmp_path, unit=unit)
    answered.send()

    assert reasons(answered) == (f"frozen until {until}: this {period} is answered",)


def test_a_clock_that_was_set_back_is_named_by_dates(tmp_path: Path) -> None:
    answered = device(tmp_path, start=at(8, 9))
    answered.send()
    answered.stop()
    answered.start_at(at(3, 9))

    assert reasons(answered) == (
        "clock: 2026-12-09 was answered already, and it is 2026-12-04: was it set back?",
    )


# -- one reason a cause ----------------------------------------------------------------------------


def test_what_keeps_a_client_or_a_collection_from_working_is_one_reason(tmp_path: Path) -> None:
    """Its consent cannot be asked before the definitions, the ceiling or the trust are mended."""
    closed = Client(NOBODY, state_dir=tmp_path / "closed")
    refusing = Device(tmp_path, file(first={}, second={}, true=CENTRAL), ceiling=30)
    refusing.record()
    for client in (closed, refusing.client):
        client.record("third", True)

    assert closed.explain("third").reasons == (
        "open: no definitions: pass collections= or set VEILCOUNT_COLLECTIONS",
    )
    assert reasons(refusing, "second") == (
        "load second: needs ceiling = 60, it is 30: raise it to allow this",
    )
    assert len(reasons(refusing, "true")) == 1
    assert reasons(refusing, "third") == ("definitions: no [third] in first, second, true",)


def test_a_state_that_fails_is_one_reason(tmp_path: Path) -> None:
    """With the latest of its messages, whether or not it was logged before."""
    failing = device(tmp_path)
    with patch.object(type(failing.state), "person", side_effect=StateError("disk full")):
        failing.record()
    with patch.object(type(failing.state), "person", side_effect=StateError("no right")):
        during = reasons(failing)

    assert during == ("state: no right",)


@pytest.mark.parametrize("keys", [{"answers": 1}, {"cohort": {"draw": "d", "number": 0, "of": 50}}])
def test_development_names_nothing_that_it_ignores(keys: dict[str, Any], tmp_path: Path) -> None:
    """What production names, development records and sends."""
    ended = device(tmp_path, start=at(5, 9), **keys)
    developing = Device(
        tmp_path / "unused", one_collection("it", **keys), at(5, 9), person=1, development=True
    )
    developing.client.record("it", True)
    developing.client.flush()

    assert len(reasons(ended)) == 1
    assert reasons(developing) == ()
    assert len(developing.wire.reports) == 1
