"""No joiner: someone who sees all that the server sees, but addresses, cannot pair a person's rows.

The joiner has every body with its length, its contents and its instant of arrival, and tries every
way it knows to say which row of one collection (or period) belongs to which row of another. It is
right about as often as with a blind guess; planted bugs hand it nearly everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import poisson

from veilcount_client.delivery import uploader
from veilcount_client.recording.answer_drawing import AnswerDrawer, PersonAnswer
from veilcount_client.state import QueuedReport
from veilcount_client.testing import SeededRandomSource, SettableClock
from veilcount_shared import Collection
from veilcount_shared.report import KEYLESS_BODY_PSEUDONYMS, Batch
from veilcount_shared.wire import encode_binary

from ..device_fixtures import (
    HOUR,
    MINUTE,
    Device,
    Wire,
    at,
    clock_at,
    device_in_memory,
    file,
    number,
)
from ..planting import Plant, in_place_of

DEVICES, MANY = 32, 400  # so many in the suite, and with --full
ALPHA = 1e-6  # of one way of joining two kinds of rows; all sources are seeded
COLLECTIONS = file(
    a={"values": ["x", "y", "z"]},
    b={"range": [0, 9], "measure": "mean"},
    c={"unit": "event", "per_day": 1},
    hidden={"presence": "hidden"},
    hidden_too={"presence": "hidden"},
)
HIDDEN = "hidden", "hidden_too"
PUBLIC = {name: COLLECTIONS[name] for name in "abc"}
Name = tuple[str, int]  # a collection and a period


@dataclass(frozen=True)
class Row:
    """One pseudonym's body, as the joiner has it, and whose it is, which the joiner has not."""

    instant: float
    body: bytes
    person: int
    marks: bytes = (
        b""  # what else the server sees: of a request through a relay, its fields and key
    )


Rows = Mapping[Name, Sequence[Row]]
Join = Callable[[Sequence[Row], Sequence[Row]], Iterable[tuple[Row, Row]]]


# -- ways of joining -------------------------------------------------------------------------------


def nearest(ones: Sequence[Row], others: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Take the one that arrived nearest."""
    for one in ones:
        yield one, min(others, key=lambda other: abs(other.instant - one.instant))


def following(ones: Sequence[Row], others: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Take the next that arrived."""
    for one in ones:
        later = [other for other in others if other.instant >= one.instant]
        if later:
            yield one, min(later, key=lambda other: other.instant)


def in_order(ones: Sequence[Row], others: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Take the first for the first, the second for the second."""

    in_time = (sorted(rows, key=lambda row: row.instant) for rows in (ones, others))
    yield from zip(*in_time, strict=False)


def all_together(ones: Sequence[Row], others: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Pair everybody so that all the distances in time, taken together, are the smallest."""
    distance = np.abs(np.subtract.outer(_instants(ones) % _DAY, _instants(others) % _DAY))
    yield from _assigned(distance, ones, others)


def by_seconds(ones: Sequence[Row], others: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Take the one whose second of the minute is nearest: a clock that is off is off for all."""
    distance = np.abs(np.subtract.outer(_instants(ones) % MINUTE, _instants(others) % MINUTE))
    yield from _assigned(np.minimum(distance, MINUTE - distance), ones, others)


def by_length(ones: Sequence[Row], others: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Take one of the same length, the nearest of them."""
    yield from _alike(ones, others, lambda row: len(row.body))


def by_marks(ones: Sequence[Row], others: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Take one whose request was the same but for the body, the nearest of them."""
    yield from _alike(ones, others, lambda row: row.marks)


def _alike(
    ones: Sequence[Row], others: Sequence[Row], feature: Callable[[Row], object]
) -> Iterator[tuple[Row, Row]]:
    for one in ones:
        alike = [other for other in others if feature(other) == feature(one)]
        if alike:
            yield one, min(alike, key=lambda other: abs(other.instant - one.instant))


def in_one_body(ones: Sequence[Row], others: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Take what came in the same body."""
    known = {other.body: other for other in others}
    for one in ones:
        if one.body in known:
            yield one, known[one.body]


_DAY = 24 * HOUR
WAYS = nearest, following, in_order, all_together, by_seconds, by_length, by_marks, in_one_body


def _instants(rows: Sequence[Row]) -> np.ndarray:
    return np.array([row.instant for row in rows])


def _assigned(
    cost: np.ndarray, ones: Sequence[Row], others: Sequence[Row]
) -> Iterator[tuple[Row, Row]]:
    for place, other in zip(*linear_sum_assignment(cost), strict=True):
        yield ones[int(place)], others[int(other)]


def best(rows: Rows, one: Name, other: Name) -> int:
    """Return how many persons the best way of joining pairs rightly."""
    return max(sum(a.person == b.person for a, b in way(rows[one], rows[other])) for way in WAYS)


def chance() -> int:
    """Return how many persons a blind guess pairs rightly at most, but for one case in a million.

    A blind matching has one fixed point on the average, as good as Poisson distributed.
    """
    return int(poisson.isf(ALPHA, 1))


# -- the population --------------------------------------------------------------------------------


def population(
    devices: int = DEVICES,
    names: Iterable[str] = "ab",
    *,
    days: int = 1,
    outage: bool = False,
    jitter: float | None = None,
    plant: Plant = nullcontext,
    wire: Callable[[SettableClock, int], Wire] = lambda clock, _: Wire(clock),
    defined: Mapping[str, Collection] = COLLECTIONS,
) -> Rows:
    """Return what arrives of many devices, all used once in the same hour of the day."""
    rows: dict[Name, list[Row]] = {}
    collections = {name: defined[name] for name in names}
    named = {each.fingerprint: name for name, each in collections.items()}
    for person in range(devices):
        chances = Random(number("life", person))
        error = chances.uniform(-30, 30)  # the device's clock is off by as much
        options: dict[str, Any] = {"randomness": SeededRandomSource(person), "jitter": jitter}
        clock = clock_at(at(0, 0, error))
        with plant(), device_in_memory(
            person, collections, clock, minute=HOUR, wire=wire(clock, person), **options
        ) as device:  # fmt: skip
            live(device, days, chances, outage=outage)
        for each in device.wire.arrivals:
            row = Row(each.instant - error, each.body, person, each.marks)
            reports = each.batch.reports
            for name in {(named[report.fingerprint], report.period) for report in reports}:
                rows.setdefault(name, []).append(row)
    order = Random(1)
    for found in rows.values():
        order.shuffle(found)  # the place in a list says nothing
    return rows


def live(device: Device, days: int, chances: Random, *, outage: bool) -> None:
    """Be used once a day; in an outage nothing gets through until the last noon."""
    if outage:
        device.wire.offline()
    for day in range(days):
        device.run_until(at(day, 9, chances.uniform(0, HOUR)))
        device.record()
    if outage:
        device.run_until(at(days - 1, 13))
        device.wire.online()
    device.run_until(at(days, 20))
    device.stop()


#: how many devices, and with how many the same is tried once more
few_and_many = pytest.mark.parametrize(
    "devices", [DEVICES, pytest.param(MANY, marks=pytest.mark.full)]
)


@few_and_many
def test_nobody_joins_a_persons_collections_or_periods(devices: int) -> None:
    """What one person records in one moment in many collections, and in one hour of two days.

    Hidden reports leave at an odd second: how far a clock is off does not pair them.
    """
    rows = population(devices, COLLECTIONS, days=2)
    pairs = [("a", "b", 0), ("a", "c", 0), ("b", "c", 0), ("a", "a", 1), (*HIDDEN, 0)]

    assert all(len(rows[name, day]) == devices for name in COLLECTIONS for day in range(2))
    for one, other, day in pairs:
        assert best(rows, (one, 0), (other, day)) <= chance(), (one, other, day)


@few_and_many
def test_a_backlog_does_not_come_in_step(devices: int) -> None:
    """After hours in which nothing got through, a person's reports do not arrive together."""
    rows = population(devices, PUBLIC, outage=True)

    assert all(len(found) == devices for found in rows.values())
    for one, other in ("ab", "ac", "bc"):
        assert best(rows, (one, 0), (other, 0)) <= chance()


def bodies_of_persons(place: Path, **options: Any) -> list[list[int]]:
    """Return the bodies that a client of many persons sends: of which persons their rows are."""
    device = Device(place, PUBLIC, consent=None, persons=True, jitter=0, **options)
    owners: dict[tuple[str, bytes], int] = {}
    for person in range(DEVICES):
        here = device.client.person(person)
        here.consent(True)
        for name in PUBLIC:
            here.record(name, True)
        device.worker.store()
        rows = device.worker.state.sent(device.client._session.consents.key(str(here._person)))
        owners |= {(each.report.fingerprint, each.report.pseudonym): person for each in rows}
    device.client.flush()
    return [
        [owners[each.fingerprint, each.pseudonym] for each in arrival.batch.reports]
        for arrival in device.wire.arrivals
    ]


def test_a_body_of_many_persons_has_one_row_of_each_in_no_order(tmp_path: Path) -> None:
    """No body has two pseudonyms of one person, no order is that of another body.

    Without a key a body has no more rows than an open intake accepts.
    """
    bodies = bodies_of_persons(tmp_path / "keyed", key="k")
    keyless = bodies_of_persons(tmp_path / "keyless")

    assert sorted(map(len, bodies)) == [DEVICES] * len(PUBLIC)
    assert all(len(set(body)) == len(body) for body in bodies + keyless)
    for body, other in zip(bodies, [*bodies[1:], list(range(DEVICES))], strict=True):
        assert sum(a == b for a, b in zip(body, other, strict=True)) <= chance()
    assert max(map(len, keyless)) == KEYLESS_BODY_PSEUDONYMS
    assert sum(map(len, keyless)) == DEVICES * len(PUBLIC)


LENGTHS = count(1000)


@in_place_of(uploader, "group_into_bodies")
def one_body(
    _: object, queued_reports: list[QueuedReport], *__: object, **___: bool
) -> list[list[QueuedReport]]:
    """Wrong: what is due goes into one body, whatever its pseudonyms."""
    return [queued_reports] if queued_reports else []


@contextmanager
def revealing_length() -> Iterator[None]:
    """Wrong: the length of a body depends on the device, as that of a name or a version would."""
    length = next(LENGTHS)

    def encode_padded(batch: Batch) -> bytes:
        return encode_binary(replace(batch, padding=length))

    with patch.object(uploader, "encode_padded", encode_padded):
        yield


@in_place_of(AnswerDrawer, "_times")
def on_the_minute(
    _: object, answers: AnswerDrawer, answer: PersonAnswer, place: int
) -> tuple[float, float]:
    """Wrong, and once so: hidden reports leave on the device's full minute."""
    instant = answer.instants[place]
    return instant, instant


@in_place_of(uploader.Uploader, "_put_back")
def in_step(
    _: object, each: Any, outbox: Any, queued_reports: list[QueuedReport], *__: Any, **___: Any
) -> None:
    """Wrong, and once so: one back-off for the whole device; when it ends, all of it leaves."""
    if getattr(each, "quiet", 0.0) <= each.now():
        each.quiet = each.now() + HOUR
    outbox.reschedule({report.number: each.quiet for report in queued_reports})


PLANTED: dict[str, dict[str, Any]] = {
    "sent back to back": {"jitter": 1e-9},
    "one body of two pseudonyms": {"jitter": 1e-9, "plant": one_body},
    "a length that identifies the person": {"plant": revealing_length},
    "a clock that identifies the person": {"names": HIDDEN, "plant": on_the_minute},
    "a backlog in step": {"outage": True, "plant": in_step},
}


@pytest.mark.parametrize("bug", PLANTED)
def test_the_joiner_succeeds_against(bug: str) -> None:
    """The same joiner, on a planted bug, pairs far more persons than chance allows."""
    rows = population(**PLANTED[bug])
    one, other = PLANTED[bug].get("names", "ab")
    found = best(rows, (one, 0), (other, 0))

    assert found > 2 * chance(), f"{found} of {DEVICES}"
