"""One device's life in a combination, under constant randomizers: all that leaves it, to the byte.

Two streams that a promise makes equal are run through the same life: a restart, a backup that is
put back, a release that adds and changes questions, a forget and a new consent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from veilcount_client.delivery.transport import Delivered, Later, Outcome
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import decode_binary

from ..client.device_fixtures import HOUR, MINUTE, Device, clock_at, device_in_memory
from ..client.privacy.paired_runs import ConstantSource, constant_randomizers, coupled
from ..client.privacy.relayed_wire import UNKNOWN_KEY
from ..shuffler.seeded import seeded_sealing
from .cells import PERIODS, VALUES, Combination, question_of
from .networks import NETWORKS, Endpoints
from .parties import Issuer, Logs
from .simulation import (
    CHANGED,
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

JITTER_WORD = 1 << 62  # of all the uploader's jitter
RECORDED = 0.4  # of a step
Stream = Callable[[int], Sequence[object]]  # what is recorded in a step, in this order
Reply = Callable[[str, int], Outcome | None]  # to a question's n-th body; None: count it


class Emission(NamedTuple):
    """One attempt to send: when, what, and what is seen of it on the way.

    Of a request through a relay, what its gateway sees beside the body; of a sealed report, all.
    """

    instant: float
    body: bytes
    marks: bytes


def idle(_step: int) -> Sequence[object]:
    return ()


def recording(combination: Combination, *places: int) -> Stream:
    """Record one of the measure's values in each step, in turn."""
    values = VALUES[combination.measure]
    return lambda step: (values[places[step % len(places)]],)


def count_all(_name: str, _tries: int) -> Outcome | None:
    return None


def turn_away(name: str, tries: int) -> Outcome | None:
    """Answer one question's bodies in every way; count those of the others."""
    if name != CHANGED:
        return None
    replies = (
        Later("503", 900.0),
        UNKNOWN_KEY,
        Later("SSLError"),
        Delivered((Verdict.FULL,)),
        Delivered((Verdict.CLOSED,)),
    )
    return replies[tries % len(replies)]


def emissions(
    combination: Combination,
    stream: Stream,
    *,
    reply: Reply = count_all,
    plant: Plant = nullcontext,
    series: Callable[[str], str] = str,
    person: int = 1,
) -> tuple[list[Emission], Logs]:
    """Return all that leaves a device in its life, and what the issuer logs of it."""
    first, second = releases(combination)
    calendar = calendar_of(first)
    clock = clock_at(calendar.at(-calendar.lead) - HOUR)
    logs = Logs(combination, calendar)
    emitted: list[Emission] = []
    tries: dict[str, int] = {}
    collections = by_fingerprint(first, second)

    def answer(body: bytes, _reports: int) -> Outcome:
        reports = decode_binary(body).reports
        emitted.append(Emission(clock.now(), body, network.marks()))
        name = question_of(collections[reports[0].fingerprint])[1] if reports else ""
        tries[name] = tries.get(name, -1) + 1
        outcome = reply(name, tries[name])
        if outcome is UNKNOWN_KEY and combination.route != "relay":
            outcome = Later("429", 60.0)
        return outcome or Delivered((Verdict.COUNTED,) * len(reports))

    ends = Endpoints(clock, collections.values(), answer)
    network = NETWORKS[combination.route](ends)
    options: dict[str, Any] = {
        **network.options,
        "issuer": Issuer(logs, 0, clock.now),
        "randomness": ConstantSource(JITTER_WORD),
    }
    with (
        simulated_time(calendar),
        constant_randomizers(),
        coupled(person, series),
        seeded_sealing(person),
        device_in_memory(
            person, first, clock, minute=MINUTE, plant=plant, **options, **SETTINGS
        ) as device,
    ):
        for instant, happen in _events(calendar, stream, second):
            device.run_until(instant)
            happen(device)
            device.work()
        device.run_until(calendar.last_sent + 9 * HOUR)
        device.stop()
    return emitted, logs


def _events(
    calendar: Calendar, stream: Stream, release: Any
) -> list[tuple[float, Callable[[Device], None]]]:
    """Return what happens, in time."""

    def record(step: int) -> Callable[[Device], None]:
        def happen(device: Device) -> None:
            for value in stream(step):
                for name in device.collections:
                    device.client.record(name, value)

        return happen

    events: list[tuple[float, Callable[[Device], None]]] = [
        (calendar.at(step + RECORDED), record(step)) for step in range(PERIODS)
    ]
    others: list[tuple[float, Callable[[Device], None]]] = [
        (0.2, back_up),
        (0.7, Device.restart),
        (1.9, lambda device: install(device, release)),
        (2.6, restore),
        (3.6, lambda device: device.client.forget()),
        (3.7, lambda device: device.client.consent(True)),
    ]
    events += [(calendar.at(step - calendar.lead), happen) for step, happen in others]
    return sorted(events, key=lambda event: event[0])


def bodies_of(
    names: Sequence[str], emitted: Sequence[Emission], combination: Combination
) -> list[Emission]:
    """Return the emissions that carry reports of these questions."""
    collections = by_fingerprint(*releases(combination))
    series = {
        each for each, collection in collections.items() if question_of(collection)[1] in names
    }
    return [
        emission
        for emission in emitted
        if {report.fingerprint for report in decode_binary(emission.body).reports} & series
    ]
