"""What a shuffler records of a batch whose last answer was lost: what the aggregator has counted.

Nothing stands in for either server; their HTTP is a call, which loses answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from veilcount_aggregator.intake.shuffled_batches import batch_intake
from veilcount_aggregator.intake.shuffled_batches.batch_checks import (
    BatchOrigin,
    require_numbers,
    require_time,
)
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.shuffled_batches import record_store
from veilcount_aggregator.records.shuffled_batches.batch_states import batch_states
from veilcount_shared.shuffling.batch_record import RECORD_TYPE, BatchState
from veilcount_shared.shuffling.part import PART_TYPE, BatchHead
from veilcount_shuffler import delivery as delivery_module
from veilcount_shuffler.crowd_states import CrowdRow
from veilcount_shuffler.crowd_store import CrowdStore
from veilcount_shuffler.delivery import Delivery
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.errors import AggregatorAway, NotTaken
from veilcount_shuffler.hand_over import HandOver, HandOverEvent
from veilcount_shuffler.holding import Holding
from veilcount_shuffler.store_settings import StoreSettings

from ..aggregator.intake.shuffled_batches.batch_fixtures import FILE
from ..aggregator.web.api.deployment_fixtures import Deployment, Response, deployment
from ..shuffler.parties import HandClock
from .test_through_a_shuffler import AFTER_GRACE, ANSWERS, OVER, opened, sealed_answers


class LossyAggregator:
    """The aggregator of a deployment, whose answers are lost while `loses_answers`."""

    def __init__(self, deployed: Deployment) -> None:
        self.deployed, self.key = deployed, deployed.key(Role.SHUFFLER)
        self.is_away = self.loses_answers = False

    def now(self) -> datetime:
        """Return its time."""
        if self.is_away:
            raise AggregatorAway("away")
        return self.deployed.clocks.now

    def take_part(self, part: bytes) -> list[int]:
        """Take a part."""
        missing: list[int] = self._answer("/v1/batches", part, PART_TYPE).json["missing"]
        if self.loses_answers and not missing:
            raise AggregatorAway("its answer was lost")
        return missing

    def take_record(self, record: bytes) -> None:
        """Take a record."""
        self._answer("/v1/batch-records", record, RECORD_TYPE)

    def _answer(self, path: str, body: bytes, kind: str) -> Response:
        if self.is_away:
            raise AggregatorAway("away")
        reply = self.deployed.ask("POST", path, body, key=self.key, kind=kind)
        if reply.status != 200:
            raise NotTaken(reply.status, reply.problem)
        return reply


@dataclass
class Parties:
    """A shuffler and an aggregator, with one clock."""

    deployed: Deployment
    aggregator: LossyAggregator
    store: CrowdStore
    settings: StoreSettings
    clock: HandClock

    def later(self, **by: float) -> None:
        """Be later; what is due at the aggregator then is closed."""
        self.clock.advance(**by)
        self.deployed.clocks.now = self.clock.now
        self.deployed.aggregator._close_batches([self.deployed.series("theme")])

    def round(self) -> list[HandOverEvent]:
        """Run a round of the shuffler."""
        key = self.settings.signing_key
        delivery = Delivery(self.aggregator, self.store.states, key, Disk())
        return HandOver(self.store, delivery).round()

    def row(self) -> CrowdRow:
        """Return what the shuffler says of the first crowd."""
        return next(row for row in self.store.states.rows() if row.period == 0)

    def records(self) -> list[tuple[BatchState, int]]:
        """Return what the aggregator keeps as signed of it."""
        stored, series = self.deployed.aggregator.store, self.deployed.series("theme")
        records = record_store.batch_records(stored, series)
        return [(record.state, record.reports) for record in records if record.period == 0]

    def state(self) -> str:
        """Return what an analyst reads of it."""
        stored, series = self.deployed.aggregator.store, self.deployed.series("theme")
        return batch_states(stored, stored, series, self.clock.now)[0].text


@pytest.fixture
def parties(tmp_path: Path) -> Iterator[Parties]:
    """A crowd of 300 whose batch was counted, and whose shuffler does not know that."""
    with deployment(tmp_path, FILE, now=OVER) as deployed:
        clock, folder = HandClock(OVER), tmp_path / "shuffler"
        with opened(deployed, folder, clock, ["theme"]) as store:
            settings = StoreSettings(folder, Disk())
            with closing(Holding(store)) as worker:
                worker.hold(sealed_answers(settings, "theme", ANSWERS))
            parties = Parties(deployed, LossyAggregator(deployed), store, settings, clock)
            clock.now = deployed.clocks.now = AFTER_GRACE
            parties.aggregator.loses_answers = True
            assert [event.what for event in parties.round()] == ["crowd waits"]
            parties.aggregator.loses_answers = False
            assert (parties.row().outcome, parties.state()) == (None, "handed over: 300 reports")
            yield parties


@pytest.mark.parametrize("days", [1, 36, 45, 59, 61, 100])
def test_a_batch_that_was_counted_is_recorded_as_handed_over(parties: Parties, days: int) -> None:
    """However long its shuffler was off: from 35 days on none is taken, from 60 none looked for."""
    parties.later(days=days)
    parties.round()

    assert parties.records() == [(BatchState.HANDED_OVER, 300)]
    assert (parties.row().outcome, parties.row().recorded) == (BatchState.HANDED_OVER, True)
    assert parties.state() == "handed over: 300 reports"


def test_a_batch_of_which_the_aggregator_answers_after_a_month_is_handed_over(
    parties: Parties,
) -> None:
    """It went away with its answer: here the batch has expired, its files are gone."""
    parties.aggregator.is_away = True
    for _ in range(31):
        parties.later(days=1)
        parties.round()
    assert parties.row().outcome is BatchState.EXPIRED
    parties.aggregator.is_away = False
    parties.round()

    assert parties.records() == [(BatchState.HANDED_OVER, 300)]
    assert parties.row().outcome is BatchState.HANDED_OVER


def test_planted_the_aggregator_that_looks_at_the_time_has_it_expire(
    parties: Parties, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With neither an answer to a late retry nor a record that is compared."""
    without_answers(monkeypatch)
    monkeypatch.setattr(record_store, "_require_same_batch", lambda *_: None)
    parties.later(days=36)
    parties.round()

    assert parties.records() == [(BatchState.EXPIRED, 0)]


def test_either_the_answer_or_the_record_is_enough(
    parties: Parties, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_answers(monkeypatch)
    parties.later(days=36)
    parties.round()

    assert parties.records() == [(BatchState.HANDED_OVER, 300)]


def without_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an aggregator that takes no part late, whichever it is."""

    def both(origin: BatchOrigin, head: BatchHead, **named: bool) -> None:
        require_numbers(origin, head, **named)
        require_time(origin, OVER + timedelta(days=90))

    monkeypatch.setattr(batch_intake, "require_numbers", both)


def test_what_was_not_sent_whole_is_never_signed_as_handed_over(
    parties: Parties, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an aggregator says of it: the record stays its own, with one alert."""
    monkeypatch.setattr(delivery_module, "_may_have_arrived", lambda _: False)
    without_answers(monkeypatch)
    parties.later(days=36)
    events = parties.round()

    assert ("record refused", True) in [(event.what, event.is_alert) for event in events]
    assert parties.records() == []
    assert (parties.row().outcome, parties.row().recorded) == (BatchState.EXPIRED, True)
    assert not [event for event in parties.round() if event.what == "record refused"]


def test_another_batch_than_the_aggregators_stays_expired(parties: Parties) -> None:
    """As of a store that drew covers afresh: neither record of it is taken."""
    parties.store.states._db.execute("update crowd set digest = ?", (bytes([7]) * 32,))
    parties.later(days=100)
    parties.round()

    assert parties.records() == []
    assert (parties.row().outcome, parties.row().recorded) == (BatchState.EXPIRED, True)
