"""The operator of an aggregator, a shuffler that is not trusted, and what passes between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli import options
from veilcount_aggregator.operate.shuffler_canaries.canary_sender import CanarySender
from veilcount_aggregator.store import Cell
from veilcount_shared.randomness import RandomSource, SystemRandomSource
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shuffler.crowd_store import CrowdStore
from veilcount_shuffler.delivery import Delivery
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.hand_over import HandOver
from veilcount_shuffler.holding import EnvelopeAnswer, Holding
from veilcount_shuffler.served_crowds import crowds_of
from veilcount_shuffler.store_settings import StoreSettings

from ..aggregator.intake.shuffled_batches import batch_fixtures
from ..aggregator.operate.cli.conftest import Type
from ..aggregator.web.api.deployment_fixtures import Deployment, deployment
from ..shuffler.parties import HandClock, seal
from .test_through_a_shuffler import CalledAggregator, opened

DIRECT = """
[direct]
question = "Direct?"
boolean = true
epsilon = 1
unit = "day"
from = 2026-12-01
until = 2027-01-01
"""
FILE = batch_fixtures.FILE.replace("least = 100", "least = 1000").replace(
    "least = 2,", "least = 20,"
)
FILE += DIRECT
START, AFTER_GRACE = datetime(2026, 12, 1, 9, tzinfo=UTC), datetime(2026, 12, 5, 3, tzinfo=UTC)
MESSAGES = [1, 2, 3] * 340  # of devices: never the message of a canary
STATUS = {EnvelopeAnswer.HELD: 202, EnvelopeAnswer.OVER: 410, EnvelopeAnswer.UNKNOWN: 404}


@dataclass
class Parties:
    """An aggregator, a shuffler, and the operator of the one, who does not trust the other."""

    deployed: Deployment
    store: CrowdStore
    settings: StoreSettings
    clock: HandClock
    folder: Path
    typed: Type
    envelopes: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.deployed.aggregator.settings.store

    def plan(self, *words: str, name: str = "theme") -> Path:
        file = self.folder / "canaries.json"
        plan = ("canary", "plan", name, "--to", "https://shuffler.example.net")
        planned = self.typed(*plan, "--out", str(file), "--store", self.url, *words)
        assert planned.code == 0, planned.err
        return file

    def post(self, shuffler: str, envelope: bytes, proxy: str) -> int:
        assert shuffler == "https://shuffler.example.net"
        self.envelopes.append(envelope)
        return STATUS[self.hold([Envelope.decode(envelope)])[0]]

    def hold(self, envelopes: Sequence[Envelope]) -> list[EnvelopeAnswer]:
        with closing(Holding(self.store)) as worker:
            return worker.hold(envelopes)

    def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)

    def sender(self, file: Path, **more: object) -> CanarySender:
        fields: dict[str, object] = {"post": self.post, "sleep": self.sleep} | more
        return CanarySender(file, self.clock, **fields)  # type: ignore[arg-type]

    def devices_send(self, messages: Sequence[int] = MESSAGES) -> None:
        crowd = next(crowd for crowd in crowds_of(self.settings) if crowd.period == 0)
        self.clock.now = datetime(2026, 12, 2, 1, tzinfo=UTC)
        self.hold([seal(crowd, message) for message in messages])

    def hand_over(self, randomness: RandomSource | None = None) -> None:
        self.clock.now = self.deployed.clocks.now = AFTER_GRACE
        called = CalledAggregator(self.deployed)
        key = self.settings.signing_key
        for _ in range(3):
            delivery = Delivery(called, self.store.states, key, Disk())
            HandOver(self.store, delivery, randomness or SystemRandomSource()).round()

    def result(self, *files: Path) -> tuple[int, str]:
        words = ("canary", "result", *map(str, files), "--store", self.url)
        shown = self.typed(*words)
        assert not shown.err
        return shown.code, shown.out


@contextmanager
def parties(folder: Path, typed: Type, monkeypatch: pytest.MonkeyPatch) -> Iterator[Parties]:
    with deployment(folder, FILE, now=START) as deployed:
        clock, settings = HandClock(START), StoreSettings(folder / "shuffler", Disk())
        monkeypatch.setattr(options, "now", clock)
        with opened(deployed, folder / "shuffler", clock, ["theme"]) as store:
            yield Parties(deployed, store, settings, clock, folder, typed)


@pytest.fixture
def all_parties(tmp_path: Path, typed: Type, monkeypatch: pytest.MonkeyPatch) -> Iterator[Parties]:
    with parties(tmp_path, typed, monkeypatch) as created:
        yield created


def counted(deployed: Deployment) -> list[int]:
    listed: list[int] = deployed.aggregator.store.counters(
        deployed.series("theme"), [Cell(0, 0)]
    ).tolist()
    return listed
