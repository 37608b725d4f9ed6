"""The store of a shuffler that handed over one crowd and holds another one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shuffler.crowd_store import CrowdStore
from veilcount_shuffler.delivery import Delivery
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.hand_over import HandOver
from veilcount_shuffler.holding import Holding
from veilcount_shuffler.served_crowds import ServedCrowd, crowds_of
from veilcount_shuffler.store_settings import StoreSettings

from ..aggregator.web.api.deployment_fixtures import Deployment
from ..shuffler.parties import HandClock, held, seal
from ..system.test_through_a_shuffler import CalledAggregator, opened

REPORTS = 120, 110  # of the two crowds


def fill_shuffler(deployed: Deployment, folder: Path) -> None:
    """Have a shuffler hand over a crowd, and hold another one."""
    clock = HandClock(deployed.clocks.now)
    with opened(deployed, folder, clock, ["shuffled"]) as store:
        settings = StoreSettings(folder, Disk())
        first, second, *_ = crowds_of(settings)
        hold(store, sealed(first, REPORTS[0], 1) + sealed(second, REPORTS[1], 2))
        leave(first, clock, deployed)
        hand_over(settings, store, deployed)


def sealed(crowd: ServedCrowd, number: int, seed: int) -> list[Envelope]:
    """Return what so many devices send for a crowd."""
    randomness = SeededRandomSource(seed)
    messages = (crowd.collection.randomize(place % 2, randomness) for place in range(number))
    return [seal(crowd, message) for message in messages]


def hold(store: CrowdStore, envelopes: Sequence[Envelope]) -> None:
    """Have a worker hold what devices send."""
    with closing(Holding(store)) as worker:
        assert len(held(worker.hold(envelopes), envelopes)) == len(envelopes)


def leave(crowd: ServedCrowd, clock: HandClock, deployed: Deployment) -> None:
    """Be at the instant at which a crowd leaves."""
    clock.now = deployed.clocks.now = crowd.leaves + timedelta(minutes=1)


def hand_over(settings: StoreSettings, store: CrowdStore, deployed: Deployment) -> None:
    """Have a shuffler hand over what is due."""
    delivery = Delivery(CalledAggregator(deployed), store.states, settings.signing_key, Disk())
    for _ in range(3):
        HandOver(store, delivery, SeededRandomSource(2)).round()
