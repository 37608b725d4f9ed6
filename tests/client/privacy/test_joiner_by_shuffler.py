"""No joiner through a shuffler: the order of a batch pairs nobody's reports, of real clients.

Apps that are open two hours a day, on days of which some are missed, send through the shuffler's
own store. The server has every batch in its order, and opens each report under whatever key and
period it was sealed for: what it could not do with the hours of single reports (two thirds of such
apps are joined by them) it does not do with these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import combinations, count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from scipy.stats import norm, poisson, spearmanr

from veilcount_client.delivery import shuffler as delivery
from veilcount_client.delivery.transport import Delivered, Outcome
from veilcount_client.testing import SeededRandomSource, SettableClock
from veilcount_shared import Collection
from veilcount_shared.errors import ObliviousError
from veilcount_shared.oblivious_http.key_config import AES_128_GCM, KeyConfig
from veilcount_shared.oblivious_http.key_file import RelayKey, encode_key_file
from veilcount_shared.schedule import SecretRandomSource, period_end
from veilcount_shared.shuffling import times
from veilcount_shared.shuffling.crowd import Crowd
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.sealed_report import open_report
from veilcount_shuffler import shuffling_pass
from veilcount_shuffler.holding import EnvelopeAnswer
from veilcount_shuffler.served_crowds import ServedCrowd, ServedCrowds, crowds_of

from ...shuffler.parties import HandClock, ShufflerStore
from ...shuffler.seeded import seeded_order, seeded_sealing
from ..device_fixtures import HOUR, at, clock_at, device_in_memory, file, number
from .test_joiner import WAYS, Join, Row, by_marks

DEVICES, MANY = 48, 240  # so many in the suite, and with --full
ALPHA = 1e-6  # of all pairs of batches together: the shuffle is the system's, with no seed
PLANTED = 0.01  # likewise, of what is planted and of the same without it: all sources are seeded
LEAST = 12  # reports of a batch
PRIVATE = [X25519PrivateKey.from_private_bytes(bytes([first, *range(31)])) for first in (8, 16)]
STARTS = date(2026, 11, 1), date(2026, 12, 1)
Name = tuple[str, int, bytes]  # a collection, a period and a gateway key
Plant = Callable[[], AbstractContextManager[object]]


def gateway_keys(*key_ids: int) -> tuple[RelayKey, ...]:
    """Return the server's two keys under these ids."""
    configs = [
        KeyConfig(key_id, private.public_key().public_bytes_raw(), (AES_128_GCM,))
        for key_id, private in zip(key_ids, PRIVATE, strict=True)
    ]
    return tuple(
        RelayKey(start, config.encode(), config)
        for start, config in zip(STARTS, configs, strict=True)
    )


OLD, NEW = KEYS = gateway_keys(1, 2)


@dataclass(frozen=True)
class Scene:
    """How devices live, which keys they have, and what is planted in them and in the shuffler."""

    days: int = 3
    grace: int = 3
    missed: Sequence[float] = (0.1,)  # shares of the days, of one device after the other
    apps: Sequence[Sequence[RelayKey]] = ((OLD,), KEYS)  # of half of the devices each
    served: Sequence[RelayKey] = KEYS
    least: int = LEAST
    in_devices: Plant = nullcontext
    in_shuffler: Plant = nullcontext
    is_seeded: bool = False

    def collections(self) -> Mapping[str, Collection]:
        """Return two questions, a yes or no of each day."""
        until = f"2026-12-{self.days + 1:02}"
        keys = {"batch": {"least": self.least, "grace": self.grace}, "until": until}
        return file(a=keys, b={**keys, "presence": "hidden"})


USUAL = Scene()


@dataclass
class Line:
    """What one person's device sends, and when."""

    clock: SettableClock
    person: int
    sent: list[tuple[float, int, Envelope]] = field(default_factory=list)

    def send_envelope(self, envelope: bytes) -> Outcome:
        self.sent.append((self.clock.now(), self.person, Envelope.decode(envelope)))
        return Delivered(("held",))


def life(
    person: int, collections: Mapping[str, Collection], scene: Scene
) -> list[tuple[float, int, Envelope]]:
    """Return what a device sends of some days: open two hours a day, some days not at all."""
    chances = Random(number("two hours", person))
    hour = chances.uniform(0, 22)
    keys = [(key.start, key.encoded) for key in scene.apps[person % 2]]
    clock = clock_at(at(-1))
    line = Line(clock, person)
    with (
        seeded_sealing(person) if scene.is_seeded else nullcontext(),
        device_in_memory(
            person,
            collections,
            clock,
            minute=HOUR,
            randomness=SeededRandomSource(person),
            shuffler=line,
            relay_keys=encode_key_file(keys).encode(),
        ) as device,
    ):
        device.stop()
        for day in range(scene.days + scene.grace):
            if chances.random() < scene.missed[person % len(scene.missed)]:
                continue  # offline, or not used: what was due comes late
            device.start_at(at(day) + hour * HOUR + chances.uniform(0, HOUR / 2))
            if day < scene.days:
                device.record("a", "b", value=chances.random() < 0.5)
            device.run_for(2 * HOUR)
            device.stop()
    return line.sent


def batches(
    folder: Path, devices: int, scene: Scene = USUAL, refused: EnvelopeAnswer | None = None
) -> Mapping[Name, list[Row]]:
    """Return the batches in their order: all that a server has of each report is its place.

    And under which key and for which period it was sealed: it tries them all.
    """
    collections = scene.collections()
    with scene.in_devices():
        lives = [sent for person in range(devices) for sent in life(person, collections, scene)]
    clock = HandClock(datetime(2026, 12, 1, tzinfo=UTC))
    store = ShufflerStore(folder, clock, collections=list(collections.values()), keys=scene.served)
    owners: dict[bytes, int] = {}
    order = seeded_order() if scene.is_seeded else nullcontext()
    with closing(store), scene.in_shuffler(), order:
        worker = store.worker()
        for instant, person, envelope in sorted(lives, key=lambda sent: sent[0]):
            clock.now = datetime.fromtimestamp(instant, UTC)
            (answer,) = worker.hold([envelope])
            assert answer in {EnvelopeAnswer.HELD, refused}, answer
            owners[envelope.sealed] = person
        for day in range(scene.days + scene.grace + 3):
            clock.now = datetime(2026, 12, 1, 3, tzinfo=UTC) + timedelta(days=day)
            store.rounds()
        return dict(_rows(store, owners))


def _rows(store: ShufflerStore, owners: Mapping[bytes, int]) -> Iterator[tuple[Name, list[Row]]]:
    crowds = list(crowds_of(store.settings))
    for crowd in crowds:
        if crowd.crowd_id in store.aggregator.heads:
            name = (crowd.collection.name, crowd.period, crowd.config.public)
            own = [other for other in crowds if other.collection == crowd.collection]
            yield (
                name,
                [
                    Row(float(place), sealed[:0], owners[sealed], marks(sealed, crowd, own))
                    for place, sealed in enumerate(store.aggregator.sealed(crowd.crowd_id))
                ],
            )


def marks(sealed: bytes, crowd: ServedCrowd, crowds: Sequence[ServedCrowd]) -> bytes:
    """Return under which key a report was sealed, and how many periods before its batch's."""
    for other in crowds:
        for place, private in enumerate(PRIVATE):
            with suppress(ObliviousError):
                open_report({sealed[0]: private}, other.crowd_id, other.period, sealed)
                return bytes([place, crowd.period - other.period])
    raise AssertionError("a report that the server cannot open")


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


def chance(number: int, alpha: float = ALPHA) -> int:
    """Return how many a blind matching pairs rightly at most: one of each pair on the average."""
    return int(poisson.isf(alpha / len(WAYS), number))


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
    rows = batches(tmp_path / "store", devices, Scene(days=4))
    found = {way.__name__: joined(rows, way) for way in WAYS}

    assert len(rows) == 16, sorted(rows)
    assert all(len(batch) >= LEAST for batch in rows.values())
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


# -- what tells the reports of a batch apart -------------------------------------------------------


@contextmanager
def never_over() -> Iterator[None]:
    """Planted: no period is over for a device, whose late report leaves as ever."""
    far = datetime(2027, 12, 1, tzinfo=UTC)
    with (
        patch.object(times, "grace_end", lambda *_: far),
        patch.object(delivery, "_is_over", lambda *_: False),
    ):
        yield


def late_in_the_next() -> AbstractContextManager[object]:
    """Planted: a report that comes after its grace is held for the crowd of a later period."""
    get = ServedCrowds.get

    def later(
        served: ServedCrowds, crowd_id: bytes, period: int, now: datetime
    ) -> ServedCrowd | None:
        crowd = get(served, crowd_id, period, now)
        if crowd is None or now < crowd.closes:
            return crowd
        return next(
            other
            for other in served.all(now)
            if other.collection == crowd.collection and other.opens <= now < other.closes
        )

    return patch.object(ServedCrowds, "get", later)


def named_by_key_id() -> AbstractContextManager[object]:
    """Planted: a crowd is named by the id of its key, not by the whole configuration."""
    whole: Any = Crowd.crowd_id

    def crowd_id(crowd: Crowd) -> bytes:
        name: bytes = whole.fget(replace(crowd, key_config=crowd.key_config[:1]))
        return name

    return patch.object(Crowd, "crowd_id", property(crowd_id))


#: some devices run daily, others seldom: what these send comes late, or would if it might
SELDOM = Scene(
    days=12,
    grace=1,
    missed=(0.1, 0.5, 0.8),
    apps=((OLD,), (OLD,)),
    served=(OLD,),
    least=2,
    is_seeded=True,
)
ONE, OTHER = gateway_keys(1, 1)
DIVIDED = Scene(days=6, apps=((ONE,), (OTHER,)), served=(ONE,), is_seeded=True)


def most_joined(rows: Mapping[Name, list[Row]]) -> tuple[int, int]:
    """Return what the best way of joining pairs rightly, and the most that a blind one does."""
    most = max(joined(rows, way) for way in WAYS)
    return most, chance(len(pairs(rows)), PLANTED)


def late_joined(rows: Mapping[Name, list[Row]]) -> tuple[int, int]:
    """Return how many late reports of one period's batches are paired rightly, and blindly."""
    right, expected = 0, 0.0
    for first, second in pairs(rows):
        if first[1] == second[1]:
            late, others = ([row for row in rows[name] if row.marks[1]] for name in (first, second))
            right += sum(one.person == other.person for one, other in by_marks(late, others))
            expected += len(late) / len(rows[second])
    return right, int(poisson.isf(PLANTED, expected)) if expected else 0


def test_late_reports_in_the_next_batch_join_devices(tmp_path: Path) -> None:
    """Both questions of a device are late alike. A report that is late goes nowhere."""
    late = replace(SELDOM, in_devices=never_over, in_shuffler=late_in_the_next)
    right, most = late_joined(batches(tmp_path / "planted", DEVICES, late))
    assert right > most

    rows = batches(tmp_path / "dropped", DEVICES, SELDOM)
    found, most = most_joined(rows)
    assert late_joined(rows) == (0, 0)
    assert found <= most


def test_two_keys_under_one_id_divide_a_batch_that_is_named_by_the_id(tmp_path: Path) -> None:
    """The server opens the reports of half of the devices with the other key.

    Named by the whole configuration, that half is in no crowd that the shuffler serves.
    """
    divided = replace(DIVIDED, in_devices=named_by_key_id, in_shuffler=named_by_key_id)
    found, most = most_joined(batches(tmp_path / "planted", DEVICES, divided))
    assert found > most

    rows = batches(tmp_path / "whole", DEVICES, DIVIDED, refused=EnvelopeAnswer.UNKNOWN)
    found, most = most_joined(rows)
    assert found <= most
    assert {row.person % 2 for batch in rows.values() for row in batch} == {0}
