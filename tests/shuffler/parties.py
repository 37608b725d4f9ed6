"""The parties around a shuffler: devices that seal, and an aggregator that checks and opens."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from veilcount_shared import Collection, parse_collections
from veilcount_shared.oblivious_http.key_config import AES_128_GCM, KeyConfig
from veilcount_shared.oblivious_http.key_file import RelayKey
from veilcount_shared.randomness import RandomSource, SystemRandomSource
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.part import BatchHead, BatchPart, batch_digest
from veilcount_shared.shuffling.plain_report import PlainReport
from veilcount_shared.shuffling.sealed_report import open_report, seal_report
from veilcount_shuffler.crowd_states import CrowdStates
from veilcount_shuffler.crowd_store import CrowdStore
from veilcount_shuffler.delivery import Delivery
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.errors import AggregatorAway, NotTaken
from veilcount_shuffler.hand_over import HandOver, HandOverEvent
from veilcount_shuffler.holding import EnvelopeAnswer, Holding
from veilcount_shuffler.served_crowds import ServedCrowd, ServedCrowds, crowds_of
from veilcount_shuffler.store_settings import StoreSettings
from veilcount_shuffler.witness import Witness

from ..client.device_fixtures import definitions_text

START = date(2026, 12, 1)
PRIVATE = X25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = KeyConfig(1, PRIVATE.public_key().public_bytes_raw(), (AES_128_GCM,))
RELAY_KEYS = [RelayKey(START, KEY.encode(), KEY)]
PART = 50


def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have parts of 50 reports, so that a batch of 140 has three."""
    monkeypatch.setattr("veilcount_shared.shuffling.part.PART_REPORTS", PART)
    for module in ("delivery", "shuffling_pass"):
        monkeypatch.setattr(f"veilcount_shuffler.{module}.PART_REPORTS", PART)


def definition(least: int = 100, covers: int = 142, name: str = "theme", **keys: object) -> str:
    """Return a file with a question whose reports travel in crowds."""
    batch = {"epsilon": 1, "delta": 1e-6, "least": least, "covers": covers}
    model = {"model": "shuffled", "presence": "hidden", "epsilon": 4, "batch": batch}
    values = {"values": ["light", "dark", "system"], "until": "2027-02-01"}
    return definitions_text(**{name: model | values | keys})


def collection(least: int = 100, covers: int = 142, **keys: object) -> Collection:
    return parse_collections(definition(least, covers, **keys), lambda _: [])["theme"]  # type: ignore[arg-type] # by name


@dataclass
class HandClock:
    """A clock that a test sets."""

    now: datetime = datetime(2026, 12, 2, 3, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the instant."""
        return self.now

    def advance(self, **by: float) -> None:
        """Move on."""
        self.now += timedelta(**by)


def messages(crowd: ServedCrowd, number: int, first: int = 0) -> list[Envelope]:
    """Return envelopes of so many devices, each sealed once."""
    return [seal(crowd, place % 3) for place in range(first, first + number)]


def seal(crowd: ServedCrowd, message: int) -> Envelope:
    """Return the envelope of a device whose message is this."""
    plain = PlainReport(crowd.collection.pack(message)).encode()
    sealed = seal_report(crowd.config, crowd.crowd_id, crowd.period, plain)
    return Envelope(crowd.crowd_id, crowd.period, sealed)


@dataclass
class CheckingAggregator:
    """Takes parts and records as an aggregator does, and opens what is in them."""

    public: Ed25519PublicKey
    clock: HandClock
    disk: Disk = field(default_factory=Disk)
    away: bool = False
    clock_error: timedelta = timedelta()
    parts: dict[bytes, dict[int, bytes]] = field(default_factory=dict)  # of a crowd
    heads: dict[bytes, BatchHead] = field(default_factory=dict)
    records: list[BatchRecord] = field(default_factory=list)
    repeated: int = 0
    refuses_second: bool = True

    def now(self) -> datetime:
        """Return its time."""
        if self.away:
            raise AggregatorAway("away")
        return self.clock() + self.clock_error

    def take_part(self, raw: bytes) -> list[int]:
        """Take a part whose signature and head are right."""
        if self.away:
            raise AggregatorAway("away")
        part = BatchPart.decode(raw)
        self.public.verify(part.signature, part.signed())
        crowd_id = part.head.crowd_id if self.refuses_second else part.head.batch_id
        if self.heads.setdefault(crowd_id, part.head) != part.head:
            raise NotTaken(409, "second-batch")
        taken = self.parts.setdefault(crowd_id, {})
        self.repeated += part.number in taken
        if taken.setdefault(part.number, raw) != raw:
            raise NotTaken(409, "other-part")
        return [number for number in range(part.head.parts) if number not in taken]

    def take_record(self, raw: bytes) -> None:
        """Take a record whose signature is right."""
        if self.away:
            raise AggregatorAway("away")
        record = BatchRecord.decode(raw)
        self.public.verify(record.signature, record.signed())
        if record not in self.records:
            self.records.append(record)

    def sealed(self, crowd_id: bytes) -> list[bytes]:
        """Return the sealed reports of a whole batch in its order, its digest checked."""
        head = self.heads[crowd_id]
        parts = [BatchPart.decode(self.parts[crowd_id][number]) for number in range(head.parts)]
        raw = b"".join(part.sealed for part in parts)
        assert batch_digest(part.digest for part in parts) == head.digest
        assert len(raw) == head.total * head.size
        return [raw[start : start + head.size] for start in range(0, len(raw), head.size)]

    def messages(self, crowd: ServedCrowd) -> Counter[int]:
        """Return the messages of a batch, covers among them, opened with the private key."""
        opened = (
            PlainReport.decode(
                open_report({KEY.key_id: PRIVATE}, crowd.crowd_id, crowd.period, sealed),
                crowd.collection.message_bytes,
            )
            for sealed in self.sealed(crowd.crowd_id)
        )
        return Counter(crowd.collection.unpack(plain.message) for plain in opened)

    def states(self) -> list[BatchState]:
        """Return what the records say."""
        return [record.state for record in self.records]


class ShufflerStore:
    """A store in a folder, with workers and a hand-over in this process."""

    def __init__(
        self,
        folder: Path,
        clock: HandClock,
        disk: Disk | None = None,
        *,
        least: int = 100,
        covers: int = 142,
        witness: Path | None = None,
        aggregator: CheckingAggregator | None = None,
        target: str = "http://127.0.0.1:1",
        randomness: RandomSource | None = None,  # of the covers
        collections: Sequence[Collection] = (),  # in place of one with `least` and `covers`
        keys: Sequence[RelayKey] = RELAY_KEYS,
    ) -> None:
        self.clock, self.disk = clock, disk or Disk()
        self.randomness = randomness or SystemRandomSource()
        self.settings = StoreSettings(folder, Disk())
        if not self.settings.exists:
            self.settings.make(target, "key", "relay")
            self.settings.set_keys(keys, START)
            self.settings.add_collections(collections or [collection(least, covers)], START)
        self.served = ServedCrowds(self.settings)
        public = self.settings.signing_key.public_key()
        self.aggregator = aggregator or CheckingAggregator(public, clock)
        self.witness_folder = witness
        self._open: list[CrowdStates | Holding] = []
        weakref.finalize(self, _close_all, self._open)  # a test may end without

    @property
    def crowd(self) -> ServedCrowd:
        """The crowd of the first period."""
        return next(crowds_of(self.settings))

    def states(self) -> CrowdStates:
        """Return the states, opened afresh."""
        states = CrowdStates(self.settings.crowds, self.disk)
        self._open.append(states)
        return states

    def store(self) -> CrowdStore:
        """Return the store, opened afresh as by another process."""
        witness = Witness(self.witness_folder, self.disk, self.settings.witness_id)
        states, crowds = self.states(), self.settings.crowds
        return CrowdStore(crowds, self.served, states, witness, self.disk, self.clock)

    def worker(self, kind: type[Holding] = Holding) -> Holding:
        """Return a worker of its own."""
        holding = kind(self.store())
        self._open.append(holding)
        return holding

    def hand_over(self) -> HandOver:
        """Return the process that hands over."""
        store = self.store()
        key = self.settings.signing_key
        delivery = Delivery(self.aggregator, store.states, key, self.disk)
        return HandOver(store, delivery, self.randomness)

    def rounds(self, number: int = 2) -> list[HandOverEvent]:
        """Hand over what is due, a few times."""
        return [event for _ in range(number) for event in self.hand_over().round()]

    def leave(self) -> None:
        """Be at the instant at which the first crowd leaves."""
        self.clock.now = self.crowd.leaves + timedelta(minutes=1)

    def close(self) -> None:
        """Let go of all files, as the end of a process does."""
        _close_all(self._open)


def _close_all(opened: list[CrowdStates | Holding]) -> None:
    while opened:
        opened.pop().close()


def held(answers: Iterable[EnvelopeAnswer], envelopes: Iterable[Envelope]) -> set[bytes]:
    """Return what was acknowledged."""
    return {
        envelope.sealed
        for answer, envelope in zip(answers, envelopes, strict=True)
        if answer is EnvelopeAnswer.HELD
    }
