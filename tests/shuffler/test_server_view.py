"""What the server sees of a batch is the same, byte for byte, whoever came at which hour.

All that is random is drawn from one seed, so that runs can be compared as they are; without a seed
the reports of devices are compared as a multiset. Planted: an order, a name or an id with a time.
"""

from __future__ import annotations

import hmac
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.part import BatchPart
from veilcount_shared.shuffling.sealed_report import seal_report
from veilcount_shuffler import crowd_states, held_file, shuffling_pass
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.holding import EnvelopeAnswer

from .parties import CheckingAggregator, HandClock, ShufflerStore, messages

DEVICES, COVERS, DAY = 150, 142, 24
SEED = 20261201
Hours = Sequence[int]  # at which each device comes, from the first of the grace on
Plant = Callable[[Hours], AbstractContextManager[object]]


@dataclass
class SeenByServer(CheckingAggregator):
    """Keeps every body with the instant at which it came."""

    seen: list[tuple[datetime, bytes]] = field(default_factory=list)

    def take_part(self, raw: bytes) -> list[int]:
        """Take a part."""
        self.seen.append((self.clock(), raw))
        return super().take_part(raw)

    def take_record(self, raw: bytes) -> None:
        """Take a record."""
        self.seen.append((self.clock(), raw))
        super().take_record(raw)


@dataclass(frozen=True)
class View:
    """What a server sees of a batch, and how the shuffler's files were named before it left."""

    seen: list[tuple[datetime, bytes]]
    files: list[tuple[str, int]]
    sealed: list[bytes]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of which every run is a copy: all have its key."""
    folder = tmp_path_factory.mktemp("template") / "store"
    ShufflerStore(folder, HandClock(), covers=COVERS).close()
    return folder


@pytest.fixture(scope="module")
def envelopes(template: Path) -> list[Envelope]:
    """What devices send: sealed once, whenever they send it."""
    return messages(ShufflerStore(template, HandClock()).crowd, DEVICES)


@contextmanager
def seeded() -> Iterator[None]:
    """Draw all that a shuffler draws from one seed."""
    stream = Random(SEED)

    def seal(config: KeyConfig, crowd_id: bytes, period: int, plain: bytes) -> bytes:
        ephemeral = X25519PrivateKey.from_private_bytes(stream.randbytes(32))
        return seal_report(config, crowd_id, period, plain, ephemeral)

    with ExitStack() as stack:
        stack.enter_context(patch("os.urandom", stream.randbytes))
        stack.enter_context(patch.object(shuffling_pass, "seal_report", seal))
        yield


def view(
    template: Path, folder: Path, envelopes: Sequence[Envelope], hours: Hours, workers: int = 1
) -> View:
    """Have each device come at its hour, and return what the server saw."""
    shutil.copytree(template, folder)
    store = ShufflerStore(folder, HandClock(), randomness=SeededRandomSource(SEED))
    opens = store.crowd.opens
    aggregator = SeenByServer(store.aggregator.public, store.clock)
    store.aggregator = aggregator
    holding = [store.worker() for _ in range(workers)]
    for hour, place in sorted((hour, place) for place, hour in enumerate(hours)):
        store.clock.now = opens + timedelta(hours=hour)
        answers = holding[hour % workers].hold([envelopes[place]])
        assert answers == [EnvelopeAnswer.HELD]
    files = sorted((path.name, path.stat().st_size) for path in folder.glob("crowds/*/*"))
    store.leave()
    store.rounds()
    sealed = aggregator.sealed(envelopes[0].crowd_id)
    store.close()
    return View(aggregator.seen, files, sealed)


def days(number: int) -> Iterator[Hours]:
    """Yield the hours of devices: some, then permutations of them, and others, a few later."""
    random = Random(SEED)
    hours = [random.randrange(DAY) for _ in range(DEVICES)]
    yield hours
    for later in range(1, number):
        yield (
            random.sample(hours, DEVICES)
            if later % 2
            else [hour + later % DAY for hour in hours[::-1]]
        )


def planted_nothing(_: Hours) -> AbstractContextManager[object]:
    """Leave a shuffler as it is."""
    return nullcontext()


def views(
    template: Path,
    folder: Path,
    envelopes: Sequence[Envelope],
    number: int,
    plant: Plant = planted_nothing,
) -> list[View]:
    """Return the view of each day, from one seed."""
    views = []
    for place, hours in enumerate(days(number)):
        with seeded(), plant(hours):
            views.append(view(template, folder / str(place), envelopes, hours))
    return views


@pytest.mark.parametrize("number", [6, pytest.param(60, marks=pytest.mark.full)])
def test_the_servers_view_says_nothing_of_the_hours(
    template: Path, tmp_path: Path, envelopes: list[Envelope], number: int
) -> None:
    """Every body, its bytes and its instant; the names and sizes of files as well."""
    first, *others = views(template, tmp_path, envelopes, number)

    assert len(first.seen) == 2
    assert len(set(first.sealed)) == DEVICES + COVERS
    assert all(other.seen == first.seen for other in others)
    assert all(other.files == first.files for other in others)


@pytest.mark.parametrize("workers", [2, 3])
def test_of_several_workers_it_is_the_same(
    template: Path, tmp_path: Path, envelopes: list[Envelope], workers: int
) -> None:
    """To which of them a device came is a matter of its hour as well."""
    (first,) = views(template, tmp_path, envelopes, 1)
    for place, hours in enumerate(days(3)):
        with seeded():
            other = view(template, tmp_path / f"of {place}", envelopes, hours, workers)

        assert other.seen == first.seen


def test_without_a_seed_the_multiset_of_reports_is_the_same(
    template: Path, tmp_path: Path, envelopes: list[Envelope]
) -> None:
    """And all fields of the parts, but what was drawn: id, digest, covers and order."""
    runs = [
        view(template, tmp_path / str(place), envelopes, hours)
        for place, hours in enumerate(days(3))
    ]
    own = {envelope.sealed for envelope in envelopes}
    heads = [BatchPart.decode(run.seen[0][1]).head for run in runs]
    orders = [[sealed for sealed in run.sealed if sealed in own] for run in runs]

    assert all(Counter(order) == Counter(own) for order in orders)
    assert len({(h.crowd_id, h.period, h.reports, h.covers, h.parts, h.size) for h in heads}) == 1
    assert len({tuple(at for at, _ in run.seen) for run in runs}) == 1
    assert len({head.batch_id for head in heads}) == len(set(map(tuple, orders))) == 3


# -- planted faults --------------------------------------------------------------------------------


def order_of_arrival(_: Hours) -> AbstractContextManager[object]:
    """Write a bucket as it is, unsorted."""

    def unsorted(path: Path, size: int) -> Iterator[bytes]:
        raw, mac = path.read_bytes(), shuffling_pass.MAC_BYTES
        for start in range(0, len(raw), mac + size):
            yield raw[start + mac : start + mac + size]

    return patch.object(shuffling_pass, "_sorted_records", unsorted)


def hours_shuffled_apart(hours: Hours) -> AbstractContextManager[object]:
    """Shuffle what came in an hour by itself, one hour after the other."""
    by_arrival = sorted(hours)

    def distribute(
        files: Iterable[Path], buckets: list[Path], size: int, secret: bytes, disk: Disk
    ) -> None:
        records = [sealed for file in files for sealed in held_file.read_records(file, size)]
        with buckets[0].open("wb") as bucket:
            for hour, sealed in zip(by_arrival + [DAY] * COVERS, records, strict=True):
                mac = hmac.digest(secret, sealed, "sha256")
                bucket.write(bytes([hour]) + mac[1 : shuffling_pass.MAC_BYTES] + sealed)

    return patch.object(shuffling_pass, "_distribute", distribute)


def files_named_by_hour(hours: Hours) -> AbstractContextManager[object]:
    """Name the files of reports by the hour of the first."""
    return patch.object(held_file, "HELD", f"held-{min(hours)}")


def ids_of_the_hour(hours: Hours) -> AbstractContextManager[object]:
    """Have the id of a batch, which is in every part, begin with a time."""

    drawn = SimpleNamespace(
        **vars(os) | {"urandom": lambda number: min(hours).to_bytes(number, "big")}
    )
    return patch.object(crowd_states, "os", drawn)


@pytest.mark.parametrize(
    "plant", [order_of_arrival, hours_shuffled_apart, files_named_by_hour, ids_of_the_hour]
)
def test_planted_a_time_shows(
    template: Path, tmp_path: Path, envelopes: list[Envelope], plant: Plant
) -> None:
    first, *others = views(template, tmp_path, envelopes, 3, plant)

    assert any((other.seen, other.files) != (first.seen, first.files) for other in others)
