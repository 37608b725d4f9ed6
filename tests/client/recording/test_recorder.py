"""From what was recorded to what a period reports: units, takes, dates, absences, withdrawals."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilcount_client.state import StateError
from veilcount_client.state.losses import Loss
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.testing import SettableClock
from veilcount_shared import Collection, schedule
from veilcount_shared.report import Report

from ..device_fixtures import (
    DAY,
    HOUR,
    MINUTE,
    START,
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


class Home:
    """A device, its clock and its wire."""

    def __init__(
        self, place: Path, collections: Mapping[str, Collection], start: float = 0, **options: Any
    ) -> None:
        """Be in use from this instant on."""
        self.clock = clock_at(start or at(0, 9))
        self.wire = Wire(self.clock)
        self.device = Device(place, collections, self.clock, self.wire, **options)

    def record(
        self, name: str, value: object, day: float = 0, hours: float = 9, **more: str
    ) -> None:
        """Record a value at a time."""
        pass_time(self.clock, at(day, hours), self.device)
        self.device.client.record(name, value, **more)
        self.device.work()

    def until(self, day: float, hours: float = 0) -> None:
        """Let time pass."""
        pass_time(self.clock, at(day, hours), self.device)

    def losses(self, name: str) -> dict[Loss, int]:
        """Return what was lost of a collection."""
        self.device.worker.store()
        lost = self.device.worker.state.losses()
        return {loss: count for (loss, each), count in lost.items() if each == name and count}

    @property
    def reports(self) -> list[Report]:
        """Return what arrived."""
        return self.wire.reports

    @property
    def secret(self) -> bytes:
        """Return the person's secret."""
        return self.device.worker.state.person(self.device.client._session.key("")).secret

    @property
    def root(self) -> bytes:
        """Return what the person's cohorts and answering periods hang on."""
        return self.device.worker.state.person(self.device.client._session.key("")).root


def true_value(**keys: object) -> dict[str, Collection]:
    """Return a collection whose reports hold the very value that was to be reported."""
    return one_collection("it", model="central", budget=1, **keys)


@pytest.fixture(autouse=True)
def _the_same_persons() -> Iterator[None]:
    """Have the same persons answer in every run."""
    with secrets("answers"):
        yield


# -- units and dates -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "days", "periods"),
    [
        ("day", (0, 0.2, 1, 2, 2.1), [0, 1, 2]),
        ("week", (0, 3, 5, 6, 13), [0, 1, 2]),  # the first is cut: December begins on a Tuesday
        ("month", (0, 15, 30, 31, 60), [0, 1]),
        ("user", (0, 1, 40), [0]),
    ],
)
def test_a_period_has_one_answer(
    tmp_path: Path, unit: str, days: Sequence[float], periods: list[int]
) -> None:
    """However often something is recorded in a period, one report leaves."""
    home = Home(tmp_path, one_collection("it", unit=unit, until="2027-01-31"))
    for day in days:
        home.record("it", True, day)
    home.until(65)

    assert sorted(report.period for report in home.reports) == periods


def test_a_days_events_are_answers_up_to_the_cap(tmp_path: Path) -> None:
    """Each event is a report in a slot of its own; what comes after the last is counted."""
    home = Home(tmp_path, one_collection("it", unit="event", per_day=3))
    for hour in range(5):
        home.record("it", True, 0, 9 + hour)
    home.until(1)

    assert sorted(report.slot for report in home.reports) == [0, 1, 2]
    assert home.losses("it") == {Loss.FROZEN: 2}


def test_nothing_is_collected_outside_the_dates(tmp_path: Path) -> None:
    """Before the first day and after the last, a record goes nowhere and is counted."""
    collections = one_collection("it", **{"from": "2026-12-03", "until": "2026-12-05"})
    home = Home(tmp_path, collections, at(0, 1))
    for day in range(6):
        home.record("it", True, day)
    home.until(7)

    assert [report.period for report in home.reports] == [0, 1]
    assert home.losses("it") == {Loss.NOT_ASKED: 4}


def test_a_person_answers_in_the_periods_drawn_and_in_no_others(tmp_path: Path) -> None:
    """Of thirty days, the seven that were drawn before anything was recorded."""
    home = Home(tmp_path, one_collection("it", answers=7))
    drawn = schedule.draw_answering_periods(home.root, home.device.collections["it"])
    for day in range(30):
        home.record("it", True, day)
    home.until(31)

    assert len(drawn) == 7
    assert {report.period for report in home.reports} == drawn
    assert home.losses("it") == {Loss.NOT_ASKED: 23}


def test_a_person_in_another_cohort_does_not_answer(tmp_path: Path) -> None:
    """Of two cohorts a person answers one."""
    halves = {
        name: {"cohort": {"draw": "d", "of": 2, "number": number}}
        for number, name in enumerate(("left", "right"))
    }
    home = Home(tmp_path, file(**halves))
    for name in halves:
        home.record(name, True)
    home.until(1)

    assert len(home.reports) == 1


def test_a_segment_travels_in_clear_and_an_unknown_one_not_at_all(tmp_path: Path) -> None:
    """A record names its arm; one that names none of the declared is counted."""
    home = Home(
        tmp_path, one_collection("it", unit="event", per_day=9, segments={"arm": ["A", "B"]})
    )
    for arm in ("B", "A", "C"):
        home.record("it", True, arm=arm)
    home.until(1)

    assert sorted(report.segment for report in home.reports) == [0, 1]
    assert home.losses("it") == {Loss.SEGMENT: 1}


# -- takes -----------------------------------------------------------------------------------------

RANGE = {"range": [0, 100]}
TAKES = [
    ("first", {}, (True, False, False), True),
    ("last", {}, (True, True, False), False),
    ("any", {}, (False, True, False), True),
    ("any", {}, (False, False), False),
    ("max", RANGE, (3, 99, 12), 99),
    ("max", RANGE, (3, "much", 12), 12),
    ("max", RANGE, (3, 400), 100),
    ("sum", RANGE, (3, 20, 12), 35),
    ("sum", RANGE, (60, 60), 100),
    ("sum", RANGE, (60, None), 60),
]


@pytest.mark.parametrize(("takes", "keys", "values", "told"), TAKES)
def test_a_period_reports_what_it_takes(
    tmp_path: Path, takes: str, keys: dict[str, object], values: Sequence[object], told: int
) -> None:
    """The first, the last, any, the largest or the sum of what was recorded until the instant."""
    with secrets(3):  # an instant late in the day
        home = Home(tmp_path, true_value(takes=takes, **keys), at(0, 0.1), trust_curator=True)
    for place, value in enumerate(values):
        home.record("it", value, 0, 0.2 + place / 100)
    home.until(2)

    assert [int.from_bytes(report.message, "big") for report in home.reports] == [told]


def test_what_is_held_is_drawn_at_its_instant_and_then_frozen(tmp_path: Path) -> None:
    """Before the person's instant of the period nothing is stored; after it nothing changes."""
    home = Home(tmp_path, one_collection("it", takes="last"), at(0, 0.1))
    drawn = schedule.draw_instant(home.secret, home.device.collections["it"], 0)
    instant = math.ceil(drawn.timestamp() / 60) * 60.0
    home.device.client.record("it", True)
    pass_time(home.clock, instant - 1, home.device)
    held = home.device.worker.state.sent(home.device.client._session.key(""))
    pass_time(home.clock, instant, home.device)
    stored = home.device.worker.state.sent(home.device.client._session.key(""))
    home.device.client.record("it", False)
    home.until(2)

    assert not held
    assert [each.report for each in stored] == home.reports
    assert home.losses("it") == {Loss.FROZEN: 1}


def test_what_is_held_is_drawn_when_the_process_ends(tmp_path: Path) -> None:
    """A period's value does not wait for an instant that the process does not see."""
    home = Home(tmp_path, one_collection("it", takes="last"), at(0, 0.1))
    home.device.client.record("it", True)
    home.device.stop()
    home.device.start()
    home.record("it", False, 0, 0.2)
    home.until(2)

    assert len(home.reports) == 1
    assert home.losses("it") == {Loss.FROZEN: 1}


def test_a_disk_that_fails_costs_nothing_of_what_is_held(tmp_path: Path) -> None:
    """Held answers stay held until they are stored."""
    home = Home(tmp_path, one_collection("it", takes="last"), at(0, 0.1))
    home.device.client.record("it", True)
    home.device.work()
    set_clock(home.clock, at(1, 1))
    with patch.object(SqliteState, "commit", side_effect=StateError("no space")):
        assert not home.device.worker.store()
    home.until(2)

    assert len(home.reports) == 1


def test_a_value_that_raises_is_a_value_like_any_other(tmp_path: Path) -> None:
    """Whatever a value's own code does, its period is answered."""

    class Bomb:
        def __bool__(self) -> bool:
            raise RuntimeError("bang")

        __add__ = __radd__ = __gt__ = __lt__ = __eq__ = __hash__ = __bool__  # type: ignore[assignment] # bang

    names: dict[str, dict[str, object]] = {
        "first": {},
        "last": {"takes": "last"},
        "any": {"takes": "any"},
        "most": {**RANGE, "measure": "mean", "takes": "max"},
        "sum": {**RANGE, "measure": "mean", "takes": "sum"},
    }
    home = Home(tmp_path, file(**names), at(0, 0.1))
    for name in names:
        for value in (Bomb(), 1, Bomb()):
            home.device.client.record(name, value)
    home.until(2)

    assert len(home.reports) == len(names)


# -- hidden presence -------------------------------------------------------------------------------


def test_hidden_answers_leave_in_the_minute_after_next_of_their_instants(tmp_path: Path) -> None:
    """Never before the drawn instant, whatever is recorded and however often it is flushed."""
    collection = one_collection("it", unit="event", per_day=3, presence="hidden")
    home = Home(tmp_path, collection, at(0, 0.01))
    for hour in (0.1, 0.2, 0.3, 0.4):
        home.record("it", True, 1, hour)
        home.device.client.flush()
    home.until(2)
    instants = sorted(
        schedule.draw_instant(home.secret, collection["it"], 1, answer).timestamp()
        for answer in range(3)
    )
    left = [each.instant for each in home.wire.arrivals if each.batch.reports[0].period == 1]

    assert len(left) == 3
    assert all(MINUTE <= b - a <= 3 * MINUTE for a, b in zip(instants, left, strict=True))


def test_periods_in_which_the_app_did_not_run_are_caught_up(tmp_path: Path) -> None:
    """After a week away, each day that the aggregator still takes is answered."""
    with minutes_of(HOUR):
        home = Home(tmp_path, one_collection("it", presence="hidden", late=3))
        home.until(1, 3)
        home.device.stop()
        set_clock(home.clock, at(8, 12))
        home.device.start()
        home.until(11, 3)

    assert sorted({each.period for each in home.reports} - {1, 11}) == [0, 5, 6, 7, 8, 9, 10]


def test_no_period_before_consent_is_caught_up(tmp_path: Path) -> None:
    """Hidden presence begins with the period of the consent, at its first instant after it."""
    with minutes_of(HOUR):
        home = Home(tmp_path, one_collection("it", presence="hidden"), consent=None)
        home.until(4, 12)
        home.device.client.consent(True)
        home.until(6, 3)

    assert sorted({each.period for each in home.reports} - {6}) == [4, 5]
    assert home.wire.arrivals[0].instant >= at(4, 12)


# -- clocks ----------------------------------------------------------------------------------------

JUMPS = st.lists(
    st.tuples(st.floats(-40 * DAY, 40 * DAY), st.sampled_from(["it", "event", "kept", "flush"])),
    max_size=12,
)


@settings(max_examples=40)
@given(JUMPS)
def test_no_jump_of_the_clock_gains_a_slot(jumps: list[tuple[float, str]]) -> None:
    """Set back and forward at will, a clock yields each slot once, and never more than the cap."""
    collections = file(it={}, event={"unit": "event", "per_day": 2}, kept={"presence": "hidden"})
    with tempfile.TemporaryDirectory(dir=quick()) as place, minutes_of(HOUR):
        home = Home(Path(place), collections)
        for jump, what in jumps:
            set_clock(home.clock, home.clock.now() + jump)
            if what == "flush":
                home.device.client.flush()
            else:
                home.device.client.record(what, True)
                home.device.work()
        home.device.client.flush()
        spent = home.device.worker.state.spent(home.device.client._session.key(""))
        stored = home.device.worker.state.sent(home.device.client._session.key(""))
        home.device.stop()
    reports = [each.report for each in stored]
    slots = Counter((each.fingerprint, each.period, each.slot) for each in reports)
    stored_of = Counter(each.fingerprint for each in reports)

    assert all(count == 1 for count in slots.values())
    for name, collection in collections.items():
        life = spent[name].life if name in spent else 0
        assert life <= collection.epsilon_user * 10**6
        assert stored_of[collection.fingerprint] * 10**6 <= life


@pytest.mark.parametrize("reading", [1e18, -1e18, math.nan, math.inf, -math.inf, -1.0, 0.0])
def test_a_broken_clock_breaks_nothing(tmp_path: Path, reading: float) -> None:
    """A clock that shows no time of this world: nothing is raised, nothing is drawn."""
    home = Home(tmp_path, file(it={}, last={"takes": "last"}, kept={"presence": "hidden"}))
    home.device.stop()
    set_clock(home.clock, reading)
    home.device.start()
    for name in ("it", "last", "kept"):
        home.device.client.record(name, True)
    home.device.work()
    home.device.client.flush()
    home.device.client.explain("it")
    home.device.stop()

    assert home.reports == []
    set_clock(home.clock, at(1, 9))
    home.device.start()
    home.record("it", True, 1, 10)
    home.device.client.flush()
    assert home.device.collections["it"].fingerprint in {each.fingerprint for each in home.reports}


def test_a_clock_that_was_ahead_does_not_hold_back_what_failed(tmp_path: Path) -> None:
    """A failure noted weeks ahead is no reason to wait for so long."""
    home = Home(tmp_path, one_collection("it", until="2028-12-01"))
    home.wire.offline()
    home.record("it", True, 0, 10)
    set_clock(home.clock, at(20))
    home.device.client.flush()
    home.wire.online()
    set_clock(home.clock, at(2))
    home.device.work()
    home.until(2, 2)

    assert len(home.reports) == 1


# -- true values -----------------------------------------------------------------------------------


def test_a_true_value_stays_in_memory_and_its_slot_is_charged(tmp_path: Path) -> None:
    """Nothing of it is on the disk; the ledger is."""
    collections = one_collection(
        "it", model="central", budget=1, values=["plain", "marked-for-the-search"]
    )
    home = Home(tmp_path, collections, trust_curator=True)
    home.device.client.record("it", "marked-for-the-search")
    home.device.work()
    state = home.device.worker.state

    assert state.sent(home.device.client._session.key("")) == []
    assert state.spent(home.device.client._session.key(""))["it"].life == 10**6
    assert state.losses()[Loss.CRASHED, "it"] == 1
    assert not any(b"marked" in each.read_bytes() for each in tmp_path.iterdir())
    home.until(1)
    assert len(home.reports) == 1
    assert home.losses("it") == {}


def test_a_crash_loses_a_true_value_and_says_so(tmp_path: Path) -> None:
    """It is counted, and not drawn anew: its slot is spent."""
    home = Home(tmp_path, one_collection("it", model="central", budget=1), trust_curator=True)
    home.device.client.record("it", True)
    home.device.work()
    home.device.crash()
    home.device.start()
    home.record("it", True, 0, 12)
    home.until(1)

    assert home.reports == []
    assert home.losses("it") == {Loss.CRASHED: 1, Loss.FROZEN: 1}


def test_a_true_value_needs_trust(tmp_path: Path) -> None:
    """Without `trust_curator`, a central collection records nothing."""
    home = Home(tmp_path, one_collection("it", model="central", budget=1))
    home.record("it", True)
    home.until(1)

    assert home.reports == []
    assert "trust_curator=True" in str(home.device.client.explain("it"))


# -- consent ---------------------------------------------------------------------------------------


def test_nothing_is_recorded_before_consent(tmp_path: Path) -> None:
    """What was recorded before leaves no trace but a count, even once consent is given."""
    home = Home(tmp_path, one_collection("it"), consent=None)
    home.record("it", True)
    home.device.client.flush()
    home.device.client.consent(True)
    home.until(1)

    assert home.wire.attempts == []
    assert home.losses("it") == {Loss.NO_CONSENT: 1}


def test_nothing_is_sent_without_consent_not_even_losses(tmp_path: Path) -> None:
    """What got lost on the way is reported by those who agreed."""
    home = Home(tmp_path, one_collection("it"), consent=None)
    home.device.worker.state.lose({(Loss.CORRUPT, ""): 3})
    home.until(3)
    silent = list(home.wire.attempts)
    home.device.client.consent(True)
    home.device.work()
    home.until(6)

    assert silent == []
    assert len(home.wire.attempts) == 1


def test_a_withdrawal_wipes_at_once_and_for_good(tmp_path: Path) -> None:
    """What was stored and held is gone; after a new consent nothing is drawn again."""
    collections = file(first={}, last={"takes": "last"}, true={"model": "central", "budget": 1})
    home = Home(tmp_path, collections, at(0, 0.1), trust_curator=True)
    for name in collections:
        home.device.client.record(name, True)
    home.device.work()
    home.device.client.consent(False)
    wiped = home.device.worker.state.sent(home.device.client._session.key(""))
    home.record("first", True, 0, 3)
    home.device.client.consent(True)
    for name in ("first", "true"):
        home.record(name, False, 0, 4)
    home.until(1)

    assert wiped == []
    assert home.wire.attempts == []
    assert (
        home.device.worker.state.spent(home.device.client._session.key(""))["first"].life == 10**6
    )


@pytest.mark.parametrize("trust_curator", [False, True], ids=["reports", "true values"])
def test_a_withdrawal_stops_what_is_about_to_leave(
    tmp_path: Path,
    trust_curator: bool,  # noqa: FBT001
) -> None:
    """Withdrawn while the first of several bodies is on its way, the others stay."""
    keys: dict[str, object] = {"model": "central", "budget": 1} if trust_curator else {}
    names = [f"c{number}" for number in range(5)]
    home = Home(tmp_path, file(**dict.fromkeys(names, keys)), trust_curator=trust_curator)
    for name in names:
        home.device.client.record(name, True)
    home.wire.during = lambda: home.device.client.consent(False)
    home.device.client.flush()

    assert len(home.wire.attempts) == 1


def test_a_new_collection_waits_for_consent(tmp_path: Path) -> None:
    """Consent covers what stood in the file when it was given."""
    home = Home(tmp_path, file(a={}))
    home.device.stop()
    home.device.options = {"ceiling": 60, "daily_ceiling": 2}
    home.device.start(file(a={}, b={}))
    unasked = home.device.client.unasked()
    home.record("b", True)
    home.device.client.flush()
    before = len(home.reports)
    home.device.client.consent(True)
    home.record("b", True)
    home.device.client.flush()

    assert unasked == ["b"]
    assert before == 0
    assert len(home.reports) == 1
    assert home.device.client.unasked() == []


def test_who_is_forgotten_begins_as_another_with_what_is_left(tmp_path: Path) -> None:
    """Secret, answers and outbox are gone, the spend stays: today's answer is not drawn again."""
    home = Home(tmp_path, one_collection("it", until="2026-12-03"), at(0, 9))
    home.record("it", True, 0, 10)
    home.device.client.flush()
    before = home.secret
    home.device.client.forget()
    assert home.device.client.consented is None
    home.device.client.consent(True)
    home.record("it", True, 0, 14)
    home.record("it", True, 1, 9)
    home.until(3)

    assert home.secret != before
    assert [report.period for report in home.reports] == [0, 1]
    assert home.losses("it") == {Loss.OVER_CAP: 1}


# -- long absences ---------------------------------------------------------------------------------


def test_a_backlog_longer_than_a_body_arrives(tmp_path: Path) -> None:
    """A row of 1,024 reports, more than a batch may hold, goes in several bodies."""
    collections = one_collection(
        "it", unit="event", per_day=512, linkage="collection", until="2026-12-03", **RANGE,
        measure="mean",
    )  # fmt: skip
    home = Home(tmp_path, collections)
    home.wire.offline()
    for day in range(2):
        for _ in range(512):
            home.device.client.record("it", 5)
        home.until(day + 1, 9)
    home.wire.online()
    home.device.client.flush()

    assert len({report.slot for report in home.reports}) == 1024
    assert len({len(each.body) for each in home.wire.arrivals}) <= 3


def test_the_instants_of_a_person_are_those_of_the_schedule() -> None:
    """What the client calls the campaign's first day is the schedule's."""
    collection = one_collection("it")["it"]

    assert schedule.period_start(collection, 0) == START
    assert schedule.period_end(collection, 0) - START == timedelta(seconds=DAY)
    assert SettableClock(START).now() == at()
