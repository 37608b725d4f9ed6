"""What leaves a device in a scenario: every attempt to send, to the byte and the instant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import pytest

from veilcount_client.delivery.worker import GATHER
from veilcount_client.testing import SettableClock
from veilcount_shared import Collection
from veilcount_shared.wire import decode_binary

from ..device_fixtures import HOUR, Device, Wire, at, clock_at, device_in_memory
from .paired_runs import ConstantSource, constant_randomizers, coupled

JITTER_WORDS = (1 << 62, 3 << 61)  # two draws of all the uploader's jitter
FIRST, LAST = at(0, 7), at(4, 12)
Emission = tuple[float, bytes]
Stream = tuple[tuple[float, str, object, Mapping[str, object]], ...]  # what a person records
NEVER: Stream = ()


@dataclass(frozen=True)
class Life:
    """What happens to the device, whatever its person does."""

    name: str
    events: tuple[tuple[float, str | Callable[[Device], None]], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return its name, for pytest."""
        return self.name


def recording(name: str, *values: object, hours: float = 9) -> Stream:
    """Record a value every day, at the same hour."""
    return tuple((at(day, hours), name, value, {}) for day, value in enumerate(values))


def at_once(name: str, day: float, hours: Sequence[float], *values: object) -> Stream:
    """Record values in the course of one day."""
    return tuple((at(day, hour), name, each, {}) for hour, each in zip(hours, values, strict=True))


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


def in_lives(defaults: Sequence[Life], names: Iterable[str]) -> pytest.MarkDecorator:
    """Parametrize by a life and some names: another one in each life, with --full all in all."""
    listed = list(names)
    some = [
        pytest.param(life, [name], id=f"{life}, {name}")
        for life, name in zip(defaults, listed, strict=False)
    ]
    full = [pytest.param(each, listed, id=f"{each}, all", marks=pytest.mark.full) for each in LIVES]
    return pytest.mark.parametrize(("life", "names"), some + full)


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
    wire: Callable[[SettableClock], Wire] = Wire,
    series: Callable[[str], str] = str,
) -> list[Emission]:
    """Return all that leaves a device: the instant and the bytes of each attempt.

    Its thread looks for absences every half hour instead of every minute, which takes much less
    time; one test runs with the true minute. `series` names collections for the coupling.
    """
    events: list[tuple[float, int, Any, Sequence[Any]]] = [
        *((instant, 0, verb, ()) for instant, verb in life.events),
        *((instant, 1, "record", record) for instant, *record in stream),
    ]
    events.sort(key=lambda each: each[:2])
    following = [*(instant for instant, *_ in events[1:]), until]
    clock = clock_at(FIRST)
    options = {
        "randomness": ConstantSource(word),
        "lazy": lazy,
        "wire": wire(clock),
        **life.options,
    }
    with (
        constant_randomizers(),
        coupled(1, series),
        device_in_memory(
            "a person", collections, clock, minute=minute, plant=plant, **options
        ) as device,
    ):
        for (instant, _, verb, arguments), then in zip(events, following, strict=False):
            device.run_until(instant)
            happen(device, verb, *arguments)
            if then > instant + GATHER:
                device.work()
        device.run_until(until)
        if device.runs:
            device.stop()
    return [(each.instant, each.body) for each in device.wire.attempts]


def happen(device: Device, verb: str | Callable[[Device], None], *arguments: Any) -> None:
    """Have something happen to a device, or be recorded on it if it runs."""
    if callable(verb):
        verb(device)
    elif verb == "record":
        if device.runs:
            name, value, segments = arguments
            device.client.record(name, value, **segments)
    elif verb in {"offline", "online", "shut"}:
        getattr(device.wire, verb)()
    elif verb in {"flush", "forget"}:
        getattr(device.client, verb)()
    elif verb in {"consent", "withdraw"}:
        device.client.consent(verb == "consent")
    elif not (verb == "start" and device.runs):
        getattr(device, verb)()


def reports_of(collection: Collection, emitted: Iterable[Emission]) -> list[Emission]:
    """Return those bodies that carry reports of one collection."""
    name = bytes.fromhex(collection.fingerprint)
    return [each for each in emitted if name in each[1]]


def assert_alike(
    collections: Mapping[str, Collection],
    usual: Sequence[Emission],
    other: Sequence[Emission],
    claim: object = "of both",
) -> None:
    """Fail on the first attempt that is not the same, and say when it was and what it carried."""
    names = {each.fingerprint: name for name, each in collections.items()}
    for place, (left, right) in enumerate(zip_longest(usual, other)):
        assert left == right, (
            f"attempt {place}, {claim}: {shown(left, names)} against {shown(right, names)}"
        )


def shown(emission: Emission | None, names: Mapping[str, str]) -> str:
    """Return an attempt in words: "day 2, 9.5 h: mood of period 1, slot 0"."""
    if emission is None:
        return "nothing"
    instant, body = emission
    batch = decode_binary(body)
    carried = [
        f"{names.get(each.fingerprint, 'another')} of period {each.period}, slot {each.slot}"
        for each in batch.reports
    ]
    lost = ["losses"] * (batch.losses is not None)
    day, hours = divmod((instant - at(0)) / HOUR, 24)
    return f"day {day:.0f}, {hours:.4f} h, {len(body)} bytes: {'; '.join(carried + lost)}"
