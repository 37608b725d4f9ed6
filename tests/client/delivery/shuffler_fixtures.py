"""A device whose reports travel by shuffler, and what stands for the shuffler and its keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from veilcount_client.delivery.transport import Delivered, Outcome
from veilcount_client.recording.answer_drawing import AnswerDrawer
from veilcount_client.testing import SettableClock
from veilcount_shared import Collection
from veilcount_shared.oblivious_http.key_config import AES_128_GCM, KeyConfig
from veilcount_shared.oblivious_http.key_file import encode_key_file
from veilcount_shared.shuffling.crowd import Crowd
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.plain_report import PlainReport
from veilcount_shared.shuffling.sealed_report import open_report

from ..device_fixtures import HOUR, Device, at, clock_at, file, minutes_of

PRIVATE = X25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = KeyConfig(1, PRIVATE.public_key().public_bytes_raw(), (AES_128_GCM,))
KEYS = encode_key_file([(date(2026, 11, 1), KEY.encode())]).encode()
BATCH = {"epsilon": 1, "delta": 1e-6, "least": 1000, "covers": 142, "grace": 3}
SHUFFLED = {"model": "shuffled", "epsilon": 4, "batch": BATCH, "presence": "hidden"}
THEME = {"values": ["light", "dark", "system"], **SHUFFLED}
COLLECTIONS = file(
    theme=THEME,
    last={**THEME, "takes": "last", "held": "device"},
    minutes={**SHUFFLED, "presence": "public", "range": [0, 240], "measure": "mean"},
    visible={"batch": {"least": 50, "grace": 3}},
    hidden={"values": THEME["values"], "presence": "hidden"},
    plain={},
)
BY_SHUFFLER = {name: each for name, each in COLLECTIONS.items() if each.batch}


@dataclass
class Arrived:
    """An envelope, and when it came."""

    at: float
    raw: bytes

    @property
    def envelope(self) -> Envelope:
        return Envelope.decode(self.raw)


@dataclass
class FakeShuffler:
    """Holds what comes, or answers otherwise; `test_shuffler.py` has the real exchange."""

    clock: SettableClock
    arrived: list[Arrived] = field(default_factory=list)
    outcome: Outcome = field(default_factory=lambda: Delivered(("held",)))

    def send_envelope(self, envelope: bytes) -> Outcome:
        self.arrived.append(Arrived(self.clock.now(), envelope))
        return self.outcome

    def held(self, collection: Collection) -> list[tuple[int, bytes]]:
        """Return the periods and messages of a collection, each report once."""
        found = {each.raw: each.envelope for each in self.arrived}
        return [
            (envelope.period, message)
            for envelope in found.values()
            if (message := opened(envelope, collection)) is not None
        ]


def opened(envelope: Envelope, collection: Collection) -> bytes | None:
    """Return the message, if it is a report of this collection."""
    crowd = Crowd.of_period(collection, envelope.period, KEY.encode(), KEY).crowd_id
    if crowd != envelope.crowd_id:
        return None
    plain = open_report({1: PRIVATE}, crowd, envelope.period, envelope.sealed)
    return PlainReport.decode(plain, collection.message_bytes).message


@contextmanager
def device(place: Path, *names: str, **options: object) -> Iterator[tuple[Device, FakeShuffler]]:
    """Yield a device of these collections that consented a day before the campaign."""
    clock = clock_at(at(-1))
    shuffler = FakeShuffler(clock)
    chosen = {name: COLLECTIONS[name] for name in names or BY_SHUFFLER}
    options = {"shuffler": shuffler, "relay_keys": KEYS, "person": 1, "lazy": True, **options}
    with minutes_of(HOUR):  # what is due here is due on full hours
        device = Device(place, chosen, clock, **options)  # type: ignore[arg-type] # of its options
        yield device, shuffler
        if device.runs:
            device.stop()


def hurried(self: AnswerDrawer, answer: object, number: int) -> tuple[float, float]:
    """The planted mistake: a sealed report leaves like any other."""
    return answer.at, answer.at  # type: ignore[attr-defined] # of an answer
