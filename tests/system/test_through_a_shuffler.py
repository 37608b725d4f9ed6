"""From sealed reports to figures: the shuffler's own store, and a whole aggregator.

What devices seal is held in files, handed over in signed parts among covers, opened, counted and
estimated. Nothing stands in for either server; their HTTP is a call, so that one clock rules both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.queries import Snapshot
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.gateway_keys import (
    create_gateway_key,
    key_file,
    load_gateway_keys,
)
from veilcount_aggregator.records.shuffled_batches import batch_states
from veilcount_aggregator.records.shuffler_keys import ANY, trust_shuffler
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection
from veilcount_shared.oblivious_http.key_file import decode_key_file
from veilcount_shared.shuffling.batch_record import RECORD_TYPE
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.part import PART_TYPE
from veilcount_shuffler.crowd_states import CrowdStates
from veilcount_shuffler.crowd_store import CrowdStore
from veilcount_shuffler.delivery import Delivery
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.hand_over import HandOver
from veilcount_shuffler.holding import Holding
from veilcount_shuffler.served_crowds import ServedCrowds, crowds_of
from veilcount_shuffler.store_settings import PUBLIC_FILE, StoreSettings
from veilcount_shuffler.witness import Witness

from ..aggregator.intake.shuffled_batches.batch_fixtures import FILE
from ..aggregator.web.api.deployment_fixtures import Deployment, deployment
from ..shuffler.parties import HandClock, held, seal

OVER, AFTER_GRACE = datetime(2026, 12, 2, 1, tzinfo=UTC), datetime(2026, 12, 5, 3, tzinfo=UTC)
ANSWERS = ["light"] * 200 + ["dark"] * 70 + [None] * 30  # of the last nothing was recorded
ESTIMATE = "/v1/collections/{}/estimate?from=2026-12-01&to=2026-12-01"


class CalledAggregator:
    """The aggregator of a deployment, as a shuffler calls it."""

    def __init__(self, deployed: Deployment) -> None:
        self.deployed, self.key = deployed, deployed.key(Role.SHUFFLER)

    def now(self) -> datetime:
        return self.deployed.clocks.now

    def take_part(self, part: bytes) -> list[int]:
        reply = self.deployed.ask("POST", "/v1/batches", part, key=self.key, kind=PART_TYPE)
        assert reply.status == 200, reply.body
        missing: list[int] = reply.json["missing"]
        return missing

    def take_record(self, record: bytes) -> None:
        reply = self.deployed.ask(
            "POST", "/v1/batch-records", record, key=self.key, kind=RECORD_TYPE
        )
        assert reply.status == 200, reply.body


@contextmanager
def opened(
    deployed: Deployment, folder: Path, clock: HandClock, names: Sequence[str]
) -> Iterator[CrowdStore]:
    """A shuffler with some of the aggregator's definitions and its keys, and its trust."""
    stored, now = deployed.aggregator.store, deployed.clocks.now
    create_gateway_key(stored, now, datetime(2026, 11, 1, tzinfo=UTC).date())
    settings = StoreSettings(folder, Disk())
    settings.make("http://127.0.0.1:1", "", "Example")
    keys = decode_key_file(key_file(load_gateway_keys(stored)))
    settings.set_keys(keys, now.date())
    settings.add_collections([deployed.series(name).collection for name in names], now.date())
    trust_shuffler(stored, (folder / PUBLIC_FILE).read_bytes(), ANY, now)
    with closing(CrowdStates(settings.crowds, Disk())) as states:
        served = ServedCrowds(settings)
        yield CrowdStore(settings.crowds, served, states, Witness(None, Disk()), Disk(), clock)


def sealed_answers(settings: StoreSettings, name: str, answers: Sequence[object]) -> list[Envelope]:
    """Return what devices send of the first day."""
    crowd = next(
        crowd
        for crowd in crowds_of(settings)
        if crowd.period == 0 and crowd.collection.name == name
    )
    randomness = SeededRandomSource(1)
    return [seal(crowd, randomized(crowd.collection, answer, randomness)) for answer in answers]


def randomized(collection: Collection, answer: Any, randomness: SeededRandomSource) -> int:
    if answer is None:
        return collection.randomize_absent(randomness)
    return collection.randomize(answer, randomness)


@contextmanager
def batches(
    tmp_path: Path, file: str, answers: Mapping[str, Sequence[object]]
) -> Iterator[Deployment]:
    """A deployment whose batches of the first day have come."""
    with deployment(tmp_path, file, now=OVER) as deployed:
        clock, folder = HandClock(OVER), tmp_path / "shuffler"
        with opened(deployed, folder, clock, list(answers)) as store:
            settings = StoreSettings(folder, Disk())
            envelopes = [
                envelope
                for name, values in answers.items()
                for envelope in sealed_answers(settings, name, values)
            ]
            with closing(Holding(store)) as worker:
                taken = held(worker.hold(envelopes + envelopes[:9]), envelopes + envelopes[:9])
            assert len(taken) == len(envelopes), "a retry is the same envelope"
            clock.now = deployed.clocks.now = AFTER_GRACE
            delivery = Delivery(
                CalledAggregator(deployed), store.states, settings.signing_key, Disk()
            )
            for _ in range(3):
                HandOver(store, delivery, SeededRandomSource(2)).round()
            left = [path for path in folder.rglob("*") if path.is_file()]
            assert not any(envelopes[0].sealed in path.read_bytes() for path in left), "erased"
        yield deployed


@pytest.fixture
def handed_over(tmp_path: Path) -> Iterator[Deployment]:
    with batches(tmp_path, FILE, {"theme": ANSWERS}) as deployed:
        yield deployed


def shares(deployed: Deployment) -> tuple[int, dict[str, tuple[float, float, float]]]:
    result, _ = figures_of(deployed, "theme")
    return result["n"], {
        row["of"]: (row["figure"], row["low"], row["high"]) for row in result["figures"]
    }


def figures_of(deployed: Deployment, name: str, query: str = "") -> tuple[Any, list[str]]:
    """Return the figures of the first day, and the notes on them."""
    reply = deployed.ask("GET", ESTIMATE.format(name) + query, key=deployed.key(Role.ANALYST))
    assert reply.status == 200, reply.body
    (series,) = reply.json["series"]
    return series["ranges"][0], series["notes"]


def test_what_devices_seal_becomes_figures_of_the_persons_alone(handed_over: Deployment) -> None:
    n, figures = shares(handed_over)

    assert n == len(ANSWERS)
    for label in ("light", "dark", "system"):
        _, low, high = figures[label]
        assert low <= ANSWERS.count(label) / n <= high, label


def test_covers_that_are_not_subtracted_are_noticed(
    handed_over: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the covers of a batch are taken for persons."""
    monkeypatch.setattr(Snapshot, "covers", lambda *_: 0)
    n, figures = shares(handed_over)

    assert n == len(ANSWERS) + 142
    assert not figures["light"][1] <= 200 / 300 <= figures["light"][2]


def test_analysts_read_what_has_come_of_the_period(handed_over: Deployment) -> None:
    aggregator = handed_over.aggregator
    series = handed_over.series("theme")
    first = batch_states.batch_states(aggregator.store, aggregator.store, series, AFTER_GRACE)[0]

    assert (first.period, first.state, first.text) == (0, "handed-over", "handed over: 300 reports")
