"""What leaves a device in a scenario: every attempt to send, to the byte and the instant."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilcount_client.delivery.worker import GATHER
from veilcount_shared import Collection

from ..device_fixtures import (
    HOUR,
    Device,
    Wire,
    at,
    clock_at,
    minutes_of,
    pass_time,
    quick,
    secrets,
)
from .paired_runs import ConstantSource, constant_randomizers, coupled

JITTER_WORDS = (1 << 62, 3 << 61)  # two draws of all the uploader's jitter
FIRST, LAST = at(0, 7), at(4, 12)
Emission = tuple[float, bytes]


@dataclass(frozen=True)
class Stream:
    """What a person does, as the client hears of it."""

    records: tuple[tuple[float, str, object, Mapping[str, object]], ...] = ()

    def __add__(self, other: Stream) -> Stream:
        return Stream(self.records + other.records)


@dataclass(frozen=True)
class Life:
    """What happens to the device, whatever its person does."""

    name: str
    events: tuple[tuple[float, str], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return its name, for pytest."""
        return self.name


NEVER = Stream()


def recording(name: str, *values: object, hours: float = 9, **segments: object) -> Stream:
    """Record a value every day, at the same hour."""
    return Stream(
        tuple((at(day, hours), name, value, segments) for day, value in enumerate(values))
    )


def at_once(name: str, day: float, hours: Sequence[float], *values: object) -> Stream:
    """Record values in the course of one day."""
    return Stream(
        tuple((at(day, hour), name, each, {}) for hour, each in zip(hours, values, strict=True))
    )


LIVES = (
    Life("nothing happens"),
    Life("flushed often", tuple((at(day, hour), "flush") for day in range(4) for hour in (9, 15))),
    Life("restarted", tuple((at(day, 12.3), "restart") for day in range(4))),
    Life("closed for two days", ((at(1, 10), "stop"), (at(3, 10.27), "start"))),
    Life("closed every night", tuple(
        (at(day, hour), verb) for day in range(4) for hour, verb in ((8.5, "start"), (10, "stop"))
    )),
    Life("crashed", (
        (at(1, 9.2), "crash"), (at(1, 9.4), "start"), (at(2, 20), "crash"), (at(3, 1), "start"),
    )),
    Life("forked", ((at(0, 9.1), "fork"), (at(2, 9.3), "fork"))),
    Life("offline for a day", ((at(0, 22), "offline"), (at(2, 1), "online"))),
    Life("offline and restarted", (
        (at(0, 22), "offline"), (at(1, 5), "stop"), (at(2, 1), "online"), (at(2, 2), "start"),
    )),
    Life("shut by the server", ((at(1, 12), "shut"), (at(2, 20), "restart"))),
)  # fmt: skip


def emissions(
    collections: Mapping[str, Collection],
    stream: Stream,
    life: Life = LIVES[0],
    *,
    word: int = JITTER_WORDS[0],
    until: float = LAST,
    lazy: bool = False,
    minute: float = HOUR / 2,
    plant: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> list[Emission]:
    """Return all that leaves a device: the instant and the bytes of each attempt.

    Its thread looks for absences every half hour instead of every minute, which takes much less
    time; one test runs with the true minute.
    """
    events = [(instant, 0, verb, ()) for instant, verb in life.events]
    events += [(each[0], 1, "record", each[1:]) for each in stream.records]  # type: ignore[misc] # a record comes with its arguments
    clock = clock_at(FIRST)
    wire = Wire(clock)
    with (
        tempfile.TemporaryDirectory(dir=quick()) as place,
        secrets("a person"),
        constant_randomizers(),
        coupled(1),
        minutes_of(minute),
        plant(),
    ):
        device = Device(
            Path(place),
            collections,
            clock,
            wire,
            randomness=ConstantSource(word),
            lazy=lazy,
            **life.options,
        )
        ordered = sorted(events, key=lambda each: each[:2])
        following = [*(instant for instant, *_ in ordered[1:]), until]
        for (instant, _, verb, arguments), then in zip(ordered, following, strict=False):
            pass_time(clock, instant, device)
            _happen(device, wire, verb, arguments)
            if then > instant + GATHER:
                device.work()
        pass_time(clock, until, device)
        if device.runs:
            device.stop()
    closed = [(instant, f"{series} {row}".encode()) for instant, series, row in wire.closed]
    return [(each.instant, each.body) for each in wire.attempts] + closed


def _happen(device: Device, wire: Wire, verb: str, arguments: Sequence[Any]) -> None:
    if verb == "record":
        if device.runs:
            name, value, segments = arguments
            device.client.record(name, value, **segments)
    elif verb in {"offline", "online", "shut"}:
        getattr(wire, verb)()
    elif verb == "flush":
        device.client.flush()
    elif verb in {"consent", "withdraw"}:
        device.client.consent(verb == "consent")
    elif verb == "forget":
        device.client.forget()
    elif not (verb == "start" and device.runs):
        getattr(device, verb)()


def some(names: Iterable[str], life: Life, number: int) -> list[str]:
    """Return so many of these, others for each life: over all lives each comes up as often."""
    listed, first = list(names), LIVES.index(life) * number
    return [listed[(first + place) % len(listed)] for place in range(number)]


def reports_of(collection: Collection, emitted: Iterable[Emission]) -> list[Emission]:
    """Return those bodies that carry reports of one collection."""
    name = bytes.fromhex(collection.fingerprint)
    return [each for each in emitted if name in each[1]]
