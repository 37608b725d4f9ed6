"""A population of real clients in simulated time, for one combination; and what each party logs.

People consent at staggered times, some before the campaign. On the evening of the second day, week
or month each installs a release that changes one question and adds another, and agrees to what is
new. Two forget, one of whom consents again; one restores a backup, one device crashes.
"""

from __future__ import annotations

import shutil
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

from veilcount_client.delivery import backoff, issuance, loss_reports
from veilcount_client.delivery.issuer import IssuerUnavailable, SlotsRefused, SlotToSign
from veilcount_client.delivery.transport import Delivered, Later, Outcome
from veilcount_client.recording import answer_times
from veilcount_client.recording.recorder import Recorder
from veilcount_client.state.sqlite_database import FILE
from veilcount_client.testing import SeededRandomSource, SettableClock
from veilcount_shared import Collection, schedule
from veilcount_shared.collection import Presence
from veilcount_shared.errors import WireError
from veilcount_shared.tokens import SlotSecret
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import decode_binary

from ..client.device_fixtures import (
    DAY,
    HOUR,
    MINUTE,
    Device,
    clock_at,
    number,
    quick,
    secrets,
    set_clock,
)
from ..client.privacy.relayed_wire import UNKNOWN_KEY, RelayedWire
from .cells import OWN_HOURS, PERIODS, TWO_HOURS, VALUES, Combination, definitions

PERSONS = 24
QUESTION, CHANGED, ADDED, ANOTHER = NAMES = "question", "changed", "added", "another"
SETTINGS = {"ceiling": 99, "daily_ceiling": 99, "account": "account"}
TURNED_AWAY, CLOSED, DENIED = 0.6, 0.2, 0.3  # shares of marked attempts, and of token requests
LOOKS_FOR_LOSSES = 12  # of a device, in each period: hourly looks would take most of the time
SESSION = 2 * HOUR
Plant = Callable[[], AbstractContextManager[object]]
Row = tuple[str, str, bytes]  # fingerprint, name, pseudonym: all that tells one row from another


# -- the calendar ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calendar:
    """Four steps: a period each or, where a user has one, a day each."""

    bounds: tuple[float, ...]

    def at(self, step: float) -> float:
        """Return the instant after so many steps, whole and in part.

        Before the first and after the last it is counted in steps of the same length.
        """
        whole = min(max(int(step // 1), 0), len(self.bounds) - 2)
        begin, end = self.bounds[whole], self.bounds[whole + 1]
        return begin + (step - whole) * (end - begin)

    @property
    def step(self) -> float:
        return self.bounds[1] - self.bounds[0]


def calendar_of(collection: Collection) -> Calendar:
    begin = schedule.period_start(collection, 0).timestamp()
    if collection.periods == 1:
        return Calendar(tuple(begin + DAY * day for day in range(PERIODS + 1)))
    periods = range(collection.periods)
    ends = (schedule.period_end(collection, period).timestamp() for period in periods)
    return Calendar((begin, *ends))


# -- what the parties log --------------------------------------------------------------------------


class Attempt(NamedTuple):
    """One body that reached the server: what it knows, and whose it is, which it does not know."""

    instant: float
    until: float  # when the row is free again that was asked to wait
    period: int
    length: int
    marks: bytes
    person: int


class TokenRequest(NamedTuple):
    """One request of an account to the issuer."""

    instant: float
    account: int
    fingerprint: str
    periods: tuple[int, ...]
    is_signed: bool


@dataclass
class Logs:
    """All that server, issuer and relay have of one population."""

    combination: Combination
    calendar: Calendar
    attempts: dict[Row, list[Attempt]] = field(default_factory=dict)
    strays: list[bytes] = field(default_factory=list)  # bodies that are no reports
    requests: list[TokenRequest] = field(default_factory=list)
    relay: list[tuple[float, int]] = field(default_factory=list)  # instant and address
    answers: dict[tuple[int, str, int], set[tuple[bytes, int]]] = field(default_factory=dict)
    recorded: dict[tuple[int, str], list[float]] = field(default_factory=dict)
    active: set[int] = field(default_factory=set)  # who records, where presence is hidden

    def rows(self, name: str, period: int | None = None) -> list[Row]:
        """Return the rows of a question, and perhaps of a period, in an order that says nothing."""
        rows = [row for row in self.attempts if row[1] == name]
        if period is not None:
            rows = [row for row in rows if self.attempts[row][0].period == period]
        return sorted(rows, key=lambda row: number("order", row))

    def person(self, row: Row) -> int:
        return self.attempts[row][0].person

    def hour(self, row: Row) -> int:
        """Return what public presence shows: of which hour's record a row's first report is.

        Hidden presence has no such hour.
        """
        if self.combination.presence == "hidden":
            return 0
        first = self.attempts[row][0]
        recorded = self.recorded.get((first.person, row[1]), [])
        return bisect_right(recorded, first.instant)


@dataclass
class Server:
    """Chooses its replies to one question's rows, and counts the reports of the others."""

    logs: Logs
    names: Mapping[str, str]  # of questions, by fingerprint

    def reply(self, person: int, wire: Any, now: Callable[[], float], body: bytes, _: int) -> Outcome:
        batch = decode_binary(body)
        if not batch.reports:
            return Delivered(())
        report = batch.reports[0]
        name = self.names[report.fingerprint]
        row = report.fingerprint, name, report.pseudonym
        attempts = self.logs.attempts.setdefault(row, [])
        wait, outcome = self._choose(row, len(attempts))
        marks = wire().marks if wire else b""
        attempts.append(Attempt(now(), now() + wait, report.period, len(body), marks, person))
        if wire:
            self.logs.relay.append((now() - number("delay", row, len(attempts)) % 1000 / 1000, person))
        for each in batch.reports:
            key = person, name, each.period
            self.logs.answers.setdefault(key, set()).add((each.pseudonym, each.slot))
        return outcome

    def _choose(self, row: Row, tries: int) -> tuple[float, Outcome]:
        """Mark the rows of one question by delays of all lengths; watch the others."""
        if row[1] != CHANGED:
            return 0.0, Delivered((Verdict.COUNTED,))
        randomness = Random(number("reply", row, tries))
        if randomness.random() < TURNED_AWAY:
            seconds = backoff.retry_after(str(randomness.choice([1, 301, 3000, 10**6])), 0)
            whys = ["503", "429", "302", "SSLError", "ReadTimeout"]
            if self.logs.combination.route == "relay":
                whys.append("unknown key")
            why = randomness.choice(whys)
            if why == "unknown key":
                return 0.0, UNKNOWN_KEY
            return seconds, Later(why, seconds if why in {"503", "429"} else 0.0)
        if randomness.random() < CLOSED:
            return 0.0, Delivered((Verdict.CLOSED,))
        return 0.0, Delivered((randomness.choice([Verdict.COUNTED, Verdict.FULL]),))


@dataclass
class Issuer:
    """Logs who requests tokens of which periods, and turns some requests away.

    It signs nothing: `simulated_tokens` replaces the algebra, which `test_both_logs` attacks.
    """

    logs: Logs
    account: int
    now: Callable[[], float]
    blinded: dict[tuple[str, int], bytes] = field(default_factory=dict)
    denies: bool = True

    def keys(self, _fingerprint: str) -> list[bytes]:
        return [b""] * PERIODS

    def sign(self, fingerprint: str, slots: Sequence[SlotToSign]) -> list[bytes]:
        place = len(self.logs.requests)
        is_denied = self.denies and Random(number("denied", self.account, place)).random() < DENIED
        periods = tuple(slot.period for slot in slots)
        self.logs.requests.append(
            TokenRequest(self.now(), self.account, fingerprint, periods, not is_denied)
        )
        if is_denied:
            raise IssuerUnavailable("503")
        left = [
            slot.period
            for slot in slots
            if self.blinded.get((fingerprint, slot.period), slot.blinded) == slot.blinded
        ]
        if len(left) < len(slots):
            raise SlotsRefused(frozenset(left))
        self.blinded |= {(fingerprint, slot.period): slot.blinded for slot in slots}
        return [b""] * len(slots)


@contextmanager
def simulated_tokens() -> Iterator[None]:
    """Replace blind signatures by names of their slots: who asks when stays as it is."""

    def blind(slot: SlotSecret, _key: object) -> Any:
        return SimpleNamespace(blinded=slot.pseudonym)

    with (
        patch.object(SlotSecret, "blind", blind),
        patch.object(SlotSecret, "finalize", lambda *_: bytes(256)),
        patch.object(issuance, "check_key_list", lambda keys, *_: keys),
    ):
        yield


# -- what happens to each person -------------------------------------------------------------------


class Event(NamedTuple):
    """Something that a person or a device does, as soon as the device runs."""

    instant: float
    verb: str


def events_of(person: int, calendar: Calendar, life: str) -> list[Event]:
    """Return what happens to a person, in time; all record within one hour, or each at their own."""
    chance = Random(number("life", person))
    evening = person % 4 // 2 + chance.uniform(0.8, 0.9)  # of one of the first two days
    joined = chance.uniform(-0.3, -0.05) if person % 2 else evening
    events = [Event(calendar.at(joined), "consent")]
    events.append(Event(calendar.at(1 + chance.uniform(0.9, 0.98)), "release"))
    morning = chance.uniform(0.1, 0.7) if life == OWN_HOURS else 0.375
    events += [
        Event(calendar.at(step + morning) + chance.uniform(0, HOUR), "record")
        for step in range(PERIODS)
    ]
    special: dict[int, list[tuple[float, str]]] = {
        1: [(2.5, "forget")],
        2: [(2.55, "forget"), (2.7, "consent")],
        3: [(1.2, "back up"), (1.5, "restore"), (1.6, "record")],
        5: [(1.5, "crash")],
    }
    events += [Event(calendar.at(step), verb) for step, verb in special.get(person, [])]
    return sorted(events)


def sessions_of(person: int, calendar: Calendar, life: str) -> list[tuple[float, float]]:
    """Return when a device runs: all the time, or two hours on four days of each step at most."""
    begin, end = calendar.at(-0.3) - MINUTE, calendar.at(PERIODS) + 2 * DAY
    if life != TWO_HOURS:
        return [(begin, end)]
    hour = Random(number("hours", person)).uniform(0, 22)
    days = max(1, round(calendar.step / DAY / 4))
    first = begin // DAY * DAY + hour * HOUR
    starts = (first + DAY * day for day in range(0, int((end - begin) / DAY) + 1, days))
    return [(start, start + SESSION) for start in starts]


@dataclass
class Life:
    """One person's device, while things happen to it."""

    device: Device
    combination: Combination
    release: Mapping[str, Collection]
    person: int
    records: bool
    logs: Logs
    backup: Path

    def happen(self, verb: str) -> None:
        if verb == "record":
            if self.records:
                self._record()
        else:
            getattr(self, verb.replace(" ", "_"))()
        self.device.work()

    def _record(self) -> None:
        for name in self.device.collections:
            value = VALUES[self.combination.measure][self.person % 2]
            self.device.client.record(name, value)
            instants = self.logs.recorded.setdefault((self.person, name), [])
            instants.append(self.device.clock.now())

    def consent(self) -> None:
        self.device.client.consent(True)

    def install(self) -> None:
        """Start the release; agree to what it adds."""
        self.device.stop()
        self.device.start(self.release)
        if self.device.client.must_ask:
            self.device.client.consent(True, only="new")

    def forget(self) -> None:
        self.device.client.forget()

    def crash(self) -> None:
        self.device.crash()
        self.device.start()

    def back_up(self) -> None:
        self.device.stop()
        shutil.copytree(self.device.place, self.backup)
        self.device.start()

    def restore(self) -> None:
        """Put the state's file back, as a backup does, and ask again."""
        self.device.stop()
        for path in self.device.place.glob(f"{FILE}*"):
            path.unlink()
        shutil.copy(self.backup / FILE, self.device.place / FILE)
        self.device.start()
        if self.device.client.must_ask:
            self.device.client.consent(True)


def live(life: Life, calendar: Calendar) -> None:
    """Let all happen: what falls between two sessions happens in the next one."""
    device, events = life.device, events_of(life.person, calendar, life.combination.life)
    if device.runs and life.combination.life == TWO_HOURS:
        device.stop()
    for begin, end in sessions_of(life.person, calendar, life.combination.life):
        set_clock(device.clock, max(begin, device.clock.now()))
        if not device.runs:
            device.start()
            device.work()
        while events and events[0].instant <= end:
            event = events.pop(0)
            device.run_until(max(event.instant, device.clock.now() + 2 * MINUTE))
            life.happen({"release": "install"}.get(event.verb, event.verb))
        device.run_until(max(end, device.clock.now()))
        device.stop()


# -- the population --------------------------------------------------------------------------------


def releases(combination: Combination) -> tuple[dict[str, Collection], dict[str, Collection]]:
    """Return the questions of the app, and those of its next release."""
    first = definitions(combination, QUESTION, CHANGED)
    second = definitions(combination, *NAMES)
    changed = definitions(combination, CHANGED, epsilon=0.9)
    return first, second | changed


@contextmanager
def simulated_time(calendar: Calendar) -> Iterator[None]:
    """Have devices look for absences when one falls due, and seldom for losses: it is quicker."""
    answer_times.drawn_instants.cache_clear()
    with (
        patch.object(Recorder, "next_instant", _next_instant),
        patch.object(loss_reports, "HOUR", max(HOUR, calendar.step / LOOKS_FOR_LOSSES)),
        simulated_tokens(),
    ):
        yield
    answer_times.drawn_instants.cache_clear()


_every_minute = Recorder.next_instant


def _next_instant(recorder: Recorder, now: float, collections: Any) -> float | None:
    """Return when something is next due: of absences the next instant instead of each minute."""
    shown = [
        SimpleNamespace(held_on_device=each.held_on_device, presence=None) for each in collections
    ]
    dues = [_every_minute(recorder, now, shown), *_absences_due(recorder, now, collections)]  # type: ignore[arg-type] # what it reads of a collection
    return min((due for due in dues if due is not None), default=None)


def _absences_due(
    recorder: Recorder, now: float, collections: Iterable[Collection]
) -> Iterator[float]:
    hidden = [each for each in collections if each.presence is Presence.HIDDEN]
    for key in recorder.state.consenting() if hidden else ():
        person = recorder.state.person(key)
        for collection in hidden:
            current = answer_times.period_number(collection, now)
            if current + 1 < collection.periods:  # a trend begins with its period
                yield schedule.period_start(collection, current + 1).timestamp()
            for period in range(max(current, 0), min(current + 2, collection.periods)):
                instants = answer_times.instants(person, collection, period)
                yield from (instant for instant in instants if instant > now)


def population(
    combination: Combination, persons: int = PERSONS, plant: Plant = nullcontext
) -> Logs:
    """Return what all parties log of a population; the plant is a bug in its clients."""
    first, second = releases(combination)
    calendar = calendar_of(first[QUESTION])
    logs = Logs(combination, calendar)
    names = {each.fingerprint: name for file in (first, second) for name, each in file.items()}
    server = Server(logs, names)
    with simulated_time(calendar), plant():
        for person in range(persons):
            with tempfile.TemporaryDirectory(dir=quick()) as place, secrets(("matrix", person)):
                _live_one(Path(place), server, person, first, second)
    for attempts in logs.attempts.values():
        attempts.sort()
    return logs


def _live_one(
    place: Path,
    server: Server,
    person: int,
    first: Mapping[str, Collection],
    second: Mapping[str, Collection],
) -> None:
    logs = server.logs
    clock = clock_at(logs.calendar.at(-0.3) - MINUTE)
    device = Device(
        place / "state",
        first,
        clock,
        _wire(server, person, clock),
        randomness=SeededRandomSource(number("randomness", person)),
        consent=None,
        issuer=Issuer(logs, person, clock.now),
        **SETTINGS,
    )
    is_active = logs.combination.presence == "public" or person % 4 in {0, 1}
    if is_active:
        logs.active.add(person)
    life = Life(device, logs.combination, second, person, is_active, logs, place / "backup")
    live(life, logs.calendar)


def _wire(server: Server, person: int, clock: SettableClock) -> Any:
    """Return a device's network: direct, or through the relay; what is no body is noted."""
    wires: list[RelayedWire] = []
    is_relayed = server.logs.combination.route == "relay"
    reply = partial(server.reply, person, (lambda: wires[0]) if is_relayed else None, clock.now)

    def answer(body: bytes, reports: int) -> Outcome:
        try:
            return reply(body, reports)
        except WireError:
            server.logs.strays.append(body)
            return Later("400")

    if not is_relayed:
        return SimpleNamespace(send=answer)
    wires.append(RelayedWire(clock, address=person, answer=answer))
    return wires[0]
