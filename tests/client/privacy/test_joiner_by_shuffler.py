"""No joiner through a shuffler: the order of a batch pairs nobody's reports, of real clients.

Apps that are open two hours a day, on days of which some are missed, send through the shuffler's
own store. The server has every batch in its order, opened: what it could not do with the hours of
single reports (two thirds of such apps are joined by them) it does not do with these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import combinations, count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from scipy.stats import norm, poisson, spearmanr

from veilcount_client.delivery.transport import Delivered, Outcome
from veilcount_client.testing import SeededRandomSource, SettableClock
from veilcount_shared import Collection
from veilcount_shared.oblivious_http.key_config import AES_128_GCM, KeyConfig
from veilcount_shared.oblivious_http.key_file import RelayKey, encode_key_file
from veilcount_shared.schedule import SecretRandomSource, period_end
from veilcount_shared.shuffling import times
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shuffler import shuffling_pass
from veilcount_shuffler.holding import EnvelopeAnswer
from veilcount_shuffler.served_crowds import crowds_of

from ...shuffler.parties import HandClock, ShufflerStore
from ..device_fixtures import HOUR, at, clock_at, device_in_memory, file, number
from .test_joiner import WAYS, Join, Row

DEVICES, MANY = 48, 240  # so many in the suite, and with --full
DAYS, GRACE = 3, 3
ALPHA = 1e-6  # of all pairs of batches together: the shuffle is the system's, with no seed
BATCH = {"least": 12, "grace": GRACE}
COLLECTIONS = file(a={"batch": BATCH}, b={"batch": BATCH, "presence": "hidden"})
PRIVATE = [X25519PrivateKey.from_private_bytes(bytes([first, *range(31)])) for first in (1, 2)]
KEYS = [
    KeyConfig(place + 1, private.public_key().public_bytes_raw(), (AES_128_GCM,))
    for place, private in enumerate(PRIVATE)
]
STARTS = date(2026, 11, 1), date(2026, 12, 1)
Name = tuple[str, int, int]  # a collection, a period and a gateway key


@dataclass
class Line:
    """What one person's device sends, and when."""

    clock: SettableClock
    person: int
    sent: list[tuple[float, int, Envelope]] = field(default_factory=list)

    def send_envelope(self, envelope: bytes) -> Outcome:
        self.sent.append((self.clock.now(), self.person, Envelope.decode(envelope)))
        return Delivered(("held",))


def life(person: int) -> list[tuple[float, Envelope]]:
    """Return what a device sends of three days: open two hours a day, some days not at all."""
    chances = Random(number("two hours", person))
    hour = chances.uniform(0, 22)
    has_new_key = person % 2
    keys = [(start, key.encode()) for start, key in zip(STARTS, KEYS, strict=True)]
    clock = clock_at(at(-1))
    line = Line(clock, person)
    with device_in_memory(
        person,
        COLLECTIONS,
        clock,
        minute=HOUR,
        randomness=SeededRandomSource(person),
        shuffler=line,
        relay_keys=encode_key_file(keys[: 1 + has_new_key]).encode(),
    ) as device:
        device.stop()
        for day in range(DAYS + GRACE):
            if chances.random() < 0.1:
                continue  # offline, or not used: what was due comes late
            device.start_at(at(day) + hour * HOUR + chances.uniform(0, HOUR / 2))
            if day < DAYS:
                device.record("a", "b", value=chances.random() < 0.5)
            device.run_for(2 * HOUR)
            device.stop()
    return [(instant, envelope) for instant, _, envelope in line.sent]


def batches(folder: Path, devices: int) -> Mapping[Name, list[Row]]:
    """Return the batches in their order: all that a server has of each report is its place."""
    arrivals = [
        (instant, person, envelope)
        for person in range(devices)
        for instant, envelope in life(person)
    ]
    arrivals.sort(key=lambda each: each[0])
    clock = HandClock(datetime(2026, 12, 1, tzinfo=UTC))
    store = ShufflerStore(folder, clock)
    relay_keys = [
        RelayKey(start, key.encode(), key) for start, key in zip(STARTS, KEYS, strict=True)
    ]
    store.settings.set_keys(relay_keys, date(2026, 11, 1))
    store.settings.add_collections(list(COLLECTIONS.values()), date(2026, 11, 1))
    owners: dict[bytes, int] = {}
    with closing(store):
        worker = store.worker()
        for instant, person, envelope in arrivals:
            clock.now = datetime.fromtimestamp(instant, UTC)
            (answer,) = worker.hold([envelope])
            assert answer is EnvelopeAnswer.HELD, answer
            owners[envelope.sealed] = person
        for day in range(DAYS + GRACE + 3):
            clock.now = datetime(2026, 12, 1, 3, tzinfo=UTC) + timedelta(days=day)
            store.rounds()
        return dict(_rows(store, owners))


def _rows(store: ShufflerStore, owners: Mapping[bytes, int]) -> Iterator[tuple[Name, list[Row]]]:
    for crowd in crowds_of(store.settings):
        if crowd.crowd_id in store.aggregator.heads:
            name = (crowd.collection.name, crowd.period, crowd.config.key_id)
            order = store.aggregator.sealed(crowd.crowd_id)
            yield (
                name,
                [
                    Row(float(place), sealed[:0], owners[sealed])
                    for place, sealed in enumerate(order)
                ],
            )


def pairs(rows: Mapping[Name, list[Row]]) -> list[tuple[Name, Name]]:
    """Return all pairs of batches that were sealed under one key."""
    every = combinations(sorted(rows), 2)
    return [(one, other) for one, other in every if one[2] == other[2]]


def joined(rows: Mapping[Name, list[Row]], way: Join) -> int:
    """Return how many persons one way of joining pairs rightly, over all pairs of batches."""
    return sum(
        one.person == other.person
        for first, second in pairs(rows)
        for one, other in way(rows[first], rows[second])
    )


def chance(number: int) -> int:
    """Return how many a blind matching pairs rightly at most: one of each pair on the average."""
    return int(poisson.isf(ALPHA / len(WAYS), number))


def order_of_both(rows: Mapping[Name, list[Row]]) -> float:
    """Return how far persons stand alike in both batches of a period, in standard deviations."""
    periods = {(period, key) for name, period, key in rows if name == "a"}
    scores = []
    for period, key in periods:
        one, other = ({row.person: row.instant for row in rows[name, period, key]} for name in "ab")
        both = sorted(one.keys() & other.keys())
        alike = spearmanr([one[each] for each in both], [other[each] for each in both])
        scores.append(alike.statistic * math.sqrt(len(both) - 1))
    return math.fsum(scores) / math.sqrt(len(scores))


@pytest.mark.parametrize("devices", [DEVICES, pytest.param(MANY, marks=pytest.mark.full)])
def test_the_order_of_batches_joins_nobody(tmp_path: Path, devices: int) -> None:
    rows = batches(tmp_path / "store", devices)
    found = {way.__name__: joined(rows, way) for way in WAYS}

    assert len(rows) == 16, sorted(rows)
    assert all(len(batch) >= 12 for batch in rows.values())
    assert max(found.values()) <= chance(len(pairs(rows))), found
    assert abs(order_of_both(rows)) < norm.isf(ALPHA / 2)


def kept_order() -> AbstractContextManager[object]:
    """Planted: a shuffle that keeps the order of arrival."""
    arrivals = count()

    def digest(*_: object) -> bytes:
        return next(arrivals).to_bytes(16, "big")

    return patch.object(shuffling_pass, "hmac", SimpleNamespace(digest=digest))


def leaving_together() -> AbstractContextManager[object]:
    """Planted: all questions of a device leave in one moment."""

    def together(secret: bytes, collection: Collection, period: int) -> datetime:
        randomness = SecretRandomSource(secret, "sending", "", period)
        return period_end(collection, period) + timedelta(seconds=randomness.below(86_400))

    return patch.object(times, "draw_sending_instant", together)


def test_questions_that_leave_together_are_joined_if_the_order_is_kept(tmp_path: Path) -> None:
    """The device's own instants, of each question alone, keep an order that is kept from joining.

    Of 96 such devices it joins 116 over all pairs, of which 56 are by chance and 99 are the bound.
    """
    with leaving_together(), kept_order():
        rows = batches(tmp_path / "kept", DEVICES)
    with leaving_together():
        shuffled = batches(tmp_path / "shuffled", DEVICES)

    assert max(joined(rows, way) for way in WAYS) > chance(len(pairs(rows)))
    assert order_of_both(rows) > norm.isf(ALPHA / 2)
    assert max(joined(shuffled, way) for way in WAYS) <= chance(len(pairs(shuffled)))
    assert abs(order_of_both(shuffled)) < norm.isf(ALPHA / 2)
