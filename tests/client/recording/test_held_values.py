"""`held = "device"`: a period reports its running value, however many processes recorded it.

True values are made visible by a collection for a trusted curator, whose message is the value.
Before a value was kept on the device, of 20 daily sessions in a month the first one's was reported.
"""

from __future__ import annotations

import math
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from tests.redis_server import RedisServer
from veilcount_client.recording.held_values import canonical, decode, encode, merge
from veilcount_client.recording.recorder import Recorder
from veilcount_client.state import HeldValue, StateError
from veilcount_client.state.losses import Loss
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection, schedule
from veilcount_shared.collection import Takes

from ..device_fixtures import (
    DAY,
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

RANGE: dict[str, object] = {"range": [0, 1000]}
SESSIONS = 20
PERSONS = 3
MARKED = "marked-for-the-search"

VALUES: dict[str, tuple[object, ...]] = {
    "last": tuple(day % 3 == 0 for day in range(SESSIONS)),
    "any": tuple(day == 2 for day in range(SESSIONS)),
    "max": tuple((37 * day) % 101 for day in range(SESSIONS)),
    "sum": tuple(day + 1 for day in range(SESSIONS)),
}
FOLDS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "last": lambda values: values[-1],
    "any": any,
    "max": max,
    "sum": sum,
}


def monthly(takes: str, held: str = "device", **keys: object) -> dict[str, Collection]:
    """Return a question of the month whose report is the very value."""
    domain = RANGE if takes in {"max", "sum"} and "values" not in keys else {}
    return one_collection(
        "it", model="central", budget=1, unit="month", takes=takes, held=held, **domain, **keys
    )


class Home:
    """A device, its clock and its wire, from the first morning of December on."""

    def __init__(
        self, place: Path, collections: dict[str, Collection], person: int = 0, **options: Any
    ) -> None:
        self.clock = clock_at(at(0, 9))
        self.wire = Wire(self.clock)
        with secrets(person):
            self.device = Device(
                place, collections, self.clock, self.wire, trust_curator=True, **options
            )

    def instant(self) -> float:
        """Return when the person's value of the month is frozen."""
        state, collection = self.device.worker.state, self.device.collections["it"]
        secret = state.person(self.device.client._session.key("")).secret
        return math.ceil(schedule.draw_instant(secret, collection, 0).timestamp() / 60) * 60.0

    def session(self, value: object, *, crashes: bool = False) -> None:
        """Start a process, record, and end it a minute later."""
        self.device.start()
        self.device.client.record("it", value)
        pass_time(self.clock, self.clock.now() + 60, self.device)
        self.device.crash() if crashes else self.device.stop()

    def month(self, values: Sequence[object], *, crashes: bool = False) -> None:
        """Live through a month of one session a day, and be on until all is sent."""
        self.device.stop()
        for day, value in enumerate(values):
            set_clock(self.clock, at(day, 9))
            self.session(value, crashes=crashes)
        self.device.start()
        pass_time(self.clock, at(32), self.device)

    def expected(self, takes: str, values: Sequence[object]) -> int:
        """Return the running value of daily sessions up to the instant."""
        before = [each for day, each in enumerate(values) if at(day, 9) < self.instant()]
        result: int = FOLDS[takes](before or values[:1])
        return int(result)

    @property
    def sent(self) -> list[int]:
        """Return the values that arrived."""
        return [int.from_bytes(report.message, "big") for report in self.wire.reports]

    @property
    def held(self) -> HeldValue | None:
        """Return what the device holds."""
        series = self.device.collections["it"].fingerprint
        return self.device.worker.state.held(self.device.client._session.key(""), series)


# -- many processes --------------------------------------------------------------------------------


def lives(
    folder: Path, takes: str, held: str = "device", *, crashes: bool = False
) -> tuple[list[list[int]], list[list[int]]]:
    """Return what some persons reported of a month of daily sessions, and what they should have."""
    homes = [
        Home(folder / f"{held} {person}", monthly(takes, held), person) for person in range(PERSONS)
    ]
    expected = [[home.expected(takes, VALUES[takes])] for home in homes]
    for home in homes:
        home.month(VALUES[takes], crashes=crashes)
    return [home.sent for home in homes], expected


@pytest.mark.parametrize("takes", VALUES)
def test_a_month_of_daily_sessions_reports_its_running_value(memory: Path, takes: str) -> None:
    """Not the first session's, which is what `held = "process"` reports: the planted variant."""
    folder = memory / f"months of {takes}"
    sent, expected = lives(folder, takes)
    planted, _ = lives(folder, takes, "process")

    assert sent == expected
    assert planted == [[int(VALUES[takes][0])]] * PERSONS  # type: ignore[call-overload] # as above
    assert sent != planted


def test_sessions_that_are_killed_lose_nothing_that_was_stored(memory: Path) -> None:
    """Each recorded, stored and was killed; held in memory, all of it would be gone."""
    sent, expected = lives(memory / "killed", "sum", crashes=True)
    with patch.object(Recorder, "_put_on_device", lambda _: None):
        planted, _ = lives(memory / "killed in memory", "sum", crashes=True)

    assert sent == expected
    assert planted != expected


def test_a_kill_loses_only_what_was_not_stored(tmp_path: Path) -> None:
    """What is still in the queue goes with its process, and nothing before it."""
    home = Home(tmp_path, monthly("sum"))
    home.session(3)
    home.device.start()
    home.device.client.record("it", 40)
    home.device.crash()
    home.session(500)
    home.device.start()
    pass_time(home.clock, at(32), home.device)

    assert home.sent == [503]


def test_a_process_still_freezes_what_it_holds_at_its_end(tmp_path: Path) -> None:
    """`held = "process"`: the answer is about the first process that recorded."""
    home = Home(tmp_path, monthly("sum", "process"))
    home.session(3)
    home.session(40)
    home.device.start()
    pass_time(home.clock, at(32), home.device)

    assert home.sent == [3]


@pytest.fixture(params=["sqlite", "redis"])
def options(request: pytest.FixtureRequest, memory: Path, tmp_path: Path) -> Iterator[Any]:
    """Where the state is, in each engine."""
    if request.param == "sqlite":
        yield {}
        return
    server = RedisServer(tmp_path)
    yield {"state": f"{server.url}#held"}
    server.kill()


def two_devices(place: Path, **options: Any) -> tuple[Home, Device]:
    """Return a home, and a second process on its state."""
    home = Home(place, monthly("sum"), **options)
    second = Device(
        place, home.device.collections, home.clock, home.wire, trust_curator=True, **options
    )
    return home, second


def test_two_processes_add_to_one_value(tmp_path: Path, options: dict[str, Any]) -> None:
    """Each record counts once, whichever process wrote last."""
    home, second = two_devices(tmp_path / "state", **options)
    for turn in range(10):
        device = (home.device, second)[turn % 2]
        device.client.record("it", 1 << turn % 9)
        device.work()
    home.device.stop()
    pass_time(home.clock, at(32), second)
    second.stop()

    assert home.sent == [511 + 1]
    assert len(home.wire.counted) == 1


def test_a_process_that_was_overtaken_merges_again(tmp_path: Path) -> None:
    """Between its look and its write the other one writes; replacing that would lose a record."""

    def overtaken(place: Path) -> object:
        home, second = two_devices(place)
        read, raced = SqliteState.held, threading.Event()

        def race(state: SqliteState, key: bytes, series: str) -> HeldValue | None:
            found = read(state, key, series)
            if not raced.is_set():
                raced.set()
                second.client.record("it", 100)
                second.work()
            return found

        home.device.client.record("it", 7)
        with patch.object(SqliteState, "held", race):
            home.device.work()
        assert home.held
        return decode(home.held.value)

    def replaced(state: SqliteState, _: HeldValue | None, new: HeldValue) -> bool:
        current = state.held(new.person, new.series)
        return hold(state, current, new)

    hold = SqliteState.hold
    mended = overtaken(tmp_path / "merge")
    with patch.object(SqliteState, "hold", replaced):
        planted = overtaken(tmp_path / "replaced")

    assert mended == 107
    assert planted == 7


def test_a_state_that_fails_while_holding_counts_nothing_twice(tmp_path: Path) -> None:
    """What could not be put on the device waits in memory, with what comes after it."""
    home = Home(tmp_path, monthly("sum"))
    for value in (1, 20):
        home.device.client.record("it", value)
        with patch.object(SqliteState, "hold", side_effect=StateError("no space")):
            home.device.work()
    home.device.client.record("it", 300)
    home.device.work()
    home.device.restart()
    pass_time(home.clock, at(32), home.device)

    assert home.sent == [321]


def test_a_value_never_moves_to_another_period(tmp_path: Path) -> None:
    """A record whose clock was set back leaves the later period's value as it is.

    Before, the later value was merged into the earlier period, and its own period stayed empty.
    """
    keys: dict[str, object] = {"model": "central", "budget": 1, "takes": "sum", "held": "device"}
    home = Home(tmp_path, one_collection("it", **keys, **RANGE))
    home.device.client.record("it", 5)
    home.device.work()
    set_clock(home.clock, at(3, 0.01))
    home.device.work()
    home.device.client.record("it", 70)
    home.device.work()
    set_clock(home.clock, at(2, 0.01))
    home.device.client.record("it", 100)
    home.device.work()
    pass_time(home.clock, at(6), home.device)

    assert {each.period: int.from_bytes(each.message, "big") for each in home.wire.reports} == {
        0: 5,
        2: 100,
        3: 70,
    }


# -- values of odd kinds ---------------------------------------------------------------------------


class Word(StrEnum):
    """A label."""

    PLAIN = "a"


class Count(IntEnum):
    """A number."""

    THREE = 3


class Broken:
    """Raises whatever is asked of it."""

    def __bool__(self) -> bool:
        raise RuntimeError("bang")

    __float__ = __add__ = __radd__ = __gt__ = __lt__ = __eq__ = __hash__ = __bool__  # type: ignore[assignment] # bang


class Number:
    """Is a number only when it is asked to be one."""

    def __float__(self) -> float:
        return 7.5


NUMBERS: tuple[object, ...] = (
    *(True, 0, 3, -5, 10**5000, -(10**5000), 7.5, -0.0, 1e308, 5e-324, math.inf, -math.inf),
    *(math.nan, Fraction(7, 3), Fraction(1, 10**400), Decimal("7.3"), Decimal("NaN")),
    *(Decimal("Infinity"), np.float64(7.5), np.float32(7.1), np.int64(5), np.bool_(True)),
    *(np.float64("nan"), Count.THREE, Number()),
)
OTHERS: tuple[object, ...] = (
    *(None, "a", "b", "é", "\ud800", "x" * 200, "x" * 100_000, b"a", Word.PLAIN, ("a", "p")),
    *(["a", "p"], ("a", Word.PLAIN), (1,), {}, object(), Broken(), "7", "nan"),
)
DOMAINS = {
    "boolean": one_collection("it")["it"],
    "strings": one_collection("it", values=["a", "b", "é"], other="another")["it"],
    "integers": one_collection("it", values=[1, 2, 3])["it"],
    "range": one_collection("it", model="central", budget=1, range=[0, 100])["it"],
    "crossed": one_collection("it", values=["a", "b"], cross={"plan": ["p", "q"]})["it"],
}


def effect(domain: str, value: object) -> int:
    """Return the input that a value is to a randomizer; what is drawn is drawn alike."""
    return DOMAINS[domain].domain.input(value, SeededRandomSource(3))


def stored(value: object) -> object:
    """Return a value that was kept on the device."""
    return decode(encode(value))


@pytest.mark.parametrize("domain", DOMAINS)
def test_any_value_has_on_the_device_the_effect_that_it_has_in_memory(domain: str) -> None:
    """Before, a number closer to 0 than 2^-1000 came back as infinite."""
    for value in NUMBERS + OTHERS:
        assert effect(domain, stored(value)) == effect(domain, value)


@pytest.mark.parametrize(
    ("takes", "domain"), [("any", "boolean"), ("max", "range"), ("sum", "range")]
)
def test_values_of_different_kinds_merge_alike_in_memory_and_on_the_device(
    takes: str, domain: str
) -> None:
    """Before, of Decimals the device reported the first alone: they do not add to what is kept."""
    rule = Takes(takes)
    for first, second, third in product(NUMBERS[::2] + OTHERS[::6], NUMBERS, NUMBERS[1::3]):
        in_memory = merge(rule, merge(rule, first, second), third)
        on_device = merge(rule, stored(merge(rule, stored(first), second)), third)

        assert effect(domain, stored(on_device)) == effect(domain, in_memory)


@pytest.mark.parametrize(
    ("takes", "values", "result"),
    [
        ("sum", (Decimal("1.5"), 2.25, Fraction(1, 4), np.float32(2)), 6),
        ("sum", (np.int64(2**62), np.int64(2**62), -(2**63)), 0),
        ("max", (Decimal(3), np.float64(7), 5), 7),
        ("any", (1, 0), True),
        ("any", (np.bool_(True), False), True),
    ],
)
def test_numbers_of_any_kind_merge(takes: str, values: Sequence[object], result: object) -> None:
    """A Decimal and a float, or two numbers of numpy that overflow, are numbers all the same."""
    total = values[0]
    for value in values[1:]:
        total = merge(Takes(takes), total, value)

    assert total == result


def test_a_running_value_stays_small() -> None:
    """However many records there are, and of whatever fractions."""
    total: object = Fraction(1, 3)
    for denominator in range(3, 2000):
        total = merge(Takes.SUM, total, Fraction(1, denominator))

    assert len(encode(total)) < 1500
    assert canonical(stored(total)) == total


# -- what stays on the disk ------------------------------------------------------------------------


def labelled() -> dict[str, Collection]:
    """Return a question with a label that is found in a file's bytes."""
    return one_collection("it", unit="month", takes="last", held="device", values=["plain", MARKED])


def is_on_disk(place: Path) -> bool:
    """Whether any file of a state holds the label, or the true value's own bytes."""
    return any(MARKED.encode() in each.read_bytes() for each in place.rglob("*") if each.is_file())


def freeze(home: Home) -> None:
    """Let the instant pass."""
    pass_time(home.clock, at(32), home.device)


def withdraw(home: Home) -> None:
    """Take the consent back."""
    home.device.client.consent(False)


def forget(home: Home) -> None:
    """Be forgotten."""
    home.device.client.forget()


def remove_the_definition(home: Home) -> None:
    """Ship a file without the question, nor any other that is held on the device."""
    home.device.stop()
    home.device.start(one_collection("other"))
    home.device.client.record("other", True)
    home.device.work()


@pytest.mark.parametrize("act", [freeze, withdraw, forget, remove_the_definition])
def test_a_value_is_wiped_from_the_files(tmp_path: Path, act: Callable[[Home], None]) -> None:
    """From every byte of them, once the process that did it has closed the state.

    Before, what a definition held that is gone stayed for good if no other is held on the device.
    """
    home = Home(tmp_path, labelled())
    home.device.client.record("it", MARKED)
    home.device.restart()
    before = is_on_disk(tmp_path)
    act(home)
    home.device.stop()

    assert before
    assert not is_on_disk(tmp_path)


def test_a_state_that_is_not_wiped_is_found(tmp_path: Path) -> None:
    """The planted variant of the search: a deletion that leaves the bytes in the file."""

    def careless(state: SqliteState, key: bytes) -> None:
        with state._writing() as database:
            database.execute("pragma secure_delete = off")
            database.execute("delete from held where person = ?", (key,))

    home = Home(tmp_path, labelled())
    home.device.client.record("it", MARKED)
    home.device.restart()
    with patch.object(SqliteState, "forget", careless):
        home.device.client.forget()
    home.device.stop()

    assert is_on_disk(tmp_path)


def test_a_value_that_was_replaced_is_wiped(tmp_path: Path) -> None:
    """The last value takes the place of the one before."""
    home = Home(tmp_path, labelled())
    for value in (MARKED, "plain"):
        home.device.client.record("it", value)
        home.device.work()
    home.device.stop()

    assert not is_on_disk(tmp_path)


def test_a_definition_that_is_gone_takes_its_value_along(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """In both engines, at the next start; what other definitions hold stays."""
    keys = {"takes": "last", "held": "device", "unit": "month"}
    both = file(it=keys, other=keys)
    home = Home(tmp_path / "state", both, **options)
    for name in both:
        home.device.client.record(name, True)
    home.device.work()
    key = home.device.client._session.key("")
    home.device.stop()
    home.device.start({"other": both["other"]})
    home.device.work()
    state = home.device.worker.state
    left = [state.held(key, both[name].fingerprint) is None for name in ("it", "other")]
    home.device.stop()

    assert left == [True, False]


def test_a_value_that_another_process_had_in_memory_does_not_come_back(tmp_path: Path) -> None:
    """A person is forgotten here while the state fails there: the value is dropped, and counted."""
    home, second = two_devices(tmp_path)
    home.device.client.record("it", 7)
    with patch.object(SqliteState, "hold", side_effect=StateError("no space")):
        home.device.work()
    second.client.forget()
    home.device.work()
    state = home.device.worker.state

    assert state.held_due(math.inf, 10) == []
    assert state.losses()[Loss.NO_CONSENT, "it"] == 1


def test_only_the_owner_reads_the_files(tmp_path: Path) -> None:
    """The directory, the file, its log and its mark."""
    home = Home(tmp_path / "state", labelled())
    home.device.client.record("it", MARKED)
    home.device.work()
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in home.device.place.iterdir()}

    assert stat.S_IMODE(home.device.place.stat().st_mode) == 0o700
    assert "veilcount.db-wal" in modes
    assert set(modes.values()) == {0o600}


def test_a_day_off_changes_nothing_of_what_is_held(tmp_path: Path) -> None:
    """A process that starts after the instant freezes the value before it takes a new one."""
    home = Home(tmp_path, monthly("last"))
    home.session(True)
    set_clock(home.clock, max(home.instant(), home.clock.now()) + DAY)
    home.session(False)
    home.device.start()
    pass_time(home.clock, at(32), home.device)

    assert home.sent == [1]
