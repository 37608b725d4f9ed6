"""A population of real clients in simulated time, for one combination.

People consent at staggered times, some before the campaign. On the evening of the second day, week
or month they install a release that changes one question and adds two, and agree to what is new.
Two forget, one of whom consents again; one restores a backup, one device crashes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from veilcount_client.delivery.transport import Later, Outcome
from veilcount_client.testing import SeededRandomSource, SettableClock
from veilcount_shared import Collection
from veilcount_shared.errors import WireError

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
from ..shuffler.seeded import seeded_sealing
from .cells import OWN_HOURS, PERIODS, TWO_HOURS, VALUES, Combination, question_of
from .networks import NETWORKS, Endpoints, Network
from .parties import Issuer, Logs, Server
from .simulation import (
    SETTINGS,
    Calendar,
    Plant,
    back_up,
    by_fingerprint,
    calendar_of,
    install,
    releases,
    restore,
    simulated_time,
)

PERSONS = 24
SESSION = 2 * HOUR
#: of eight persons, those who record where presence is hidden: half of each time of consent
RECORDING = frozenset({0, 1, 6, 7})
EARLIEST = -0.3  # steps after the beginning: the first consents


# -- what happens to each person -------------------------------------------------------------------


class Event(NamedTuple):
    """Something that a person or a device does, as soon as the device runs."""

    instant: float
    verb: str


def events_of(person: int, calendar: Calendar, life: str) -> list[Event]:
    """Return what happens to a person; all record within one hour, or each at their own."""
    chance = Random(number("life", person))
    evening = person % 4 // 2 + chance.uniform(0.8, 0.9)  # of one of the first two days
    joined = chance.uniform(EARLIEST, -0.05) if person % 2 else evening
    events = [Event(calendar.at(joined - calendar.lead), "consent")]
    update = 1 + chance.uniform(0.9, 0.98) - calendar.shift
    events.append(Event(calendar.at(update), "release"))
    morning = chance.uniform(0.1, 0.7) if life == OWN_HOURS else 0.375
    events += [
        Event(calendar.at(step + morning) + chance.uniform(0, HOUR), "record")
        for step in range(PERIODS)
    ]
    restored = 3.1 if calendar.grace else 1.5  # what was sealed since has left
    special: dict[int, list[tuple[float, str]]] = {
        1: [(2.5, "forget")],
        2: [(2.55, "forget"), (2.7, "consent")],
        3: [(1.2, "back up"), (restored, "restore"), (restored + 0.1, "record")],
        5: [(1.5, "crash")],
    }
    events += [
        Event(calendar.at(step - calendar.shift), verb) for step, verb in special.get(person, [])
    ]
    return sorted(events)


def sessions_of(person: int, calendar: Calendar, life: str) -> list[tuple[float, float]]:
    """Return when a device runs: all the time, or two hours on four days of each step at most."""
    begin, end = calendar.at(EARLIEST - calendar.lead) - MINUTE, calendar.last_sent + 2 * DAY
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

    def happen(self, verb: str) -> None:
        if verb == "release":
            install(self.device, self.release)
        elif verb != "record":
            ACTS[verb](self.device)
        elif self.records:
            self._record()
        self.device.work()

    def _record(self) -> None:
        for name, collection in self.device.collections.items():
            value = VALUES[self.combination.measure][self.person % 2]
            self.device.client.record(name, value)
            _, question = question_of(collection)
            instants = self.logs.recorded.setdefault((self.person, question), [])
            instants.append(self.device.clock.now())


def crash(device: Device) -> None:
    device.crash()
    device.start()


ACTS: Mapping[str, Callable[[Device], object]] = {
    "consent": lambda device: device.client.consent(True),
    "forget": lambda device: device.client.forget(),
    "crash": crash,
    "back up": back_up,
    "restore": restore,
}


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
            life.happen(event.verb)
        device.run_until(max(end, device.clock.now()))
        device.stop()


# -- the population --------------------------------------------------------------------------------


def population(
    combination: Combination, persons: int = PERSONS, plant: Plant = nullcontext
) -> Logs:
    """Return what all parties log of a population; the plant is a bug in its clients.

    Or in its shuffler.
    """
    first, second = releases(combination)
    calendar = calendar_of(first)
    logs = Logs(combination, calendar, by_fingerprint(first, second))
    server = Server(logs)
    with simulated_time(calendar), plant():
        for person in range(persons):
            with (
                tempfile.TemporaryDirectory(dir=quick()) as place,
                secrets(("matrix", person)),
                seeded_sealing(person),
            ):
                _live_one(Path(place), server, person, first, second)
        if combination.is_by_shuffler:
            logs.leave_by_shuffler(first, second)
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
    clock = clock_at(logs.calendar.at(EARLIEST - logs.calendar.lead) - MINUTE)
    device = Device(
        place / "state",
        first,
        clock,
        randomness=SeededRandomSource(number("randomness", person)),
        consent=None,
        issuer=Issuer(logs, person, clock.now),
        **_network(server, person, clock, [*first.values(), *second.values()]).options,
        **SETTINGS,
    )
    is_active = logs.combination.presence == "public" or person % 8 in RECORDING
    if is_active:
        logs.active.add(person)
    life = Life(device, logs.combination, second, person, is_active, logs)
    live(life, logs.calendar)


def _network(
    server: Server, person: int, clock: SettableClock, collections: Sequence[Collection]
) -> Network:
    """Return a device's network by its route; what is no body is noted."""

    def answer(body: bytes, reports: int) -> Outcome:
        try:
            return server.reply(person, network.marks, clock.now, body, reports)
        except WireError:
            server.logs.strays.append(body)
            return Later("400")

    ends = Endpoints(clock, collections, answer, person)
    network = NETWORKS[server.logs.combination.route](ends)
    return network
