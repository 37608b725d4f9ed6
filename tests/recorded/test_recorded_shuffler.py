"""The store of a shuffler of a released version: this one holds more, and hands over all."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_shuffler.crowd_states import CrowdStates
from veilcount_shuffler.crowd_store import CrowdStore
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.served_crowds import ServedCrowds, crowds_of
from veilcount_shuffler.store_settings import StoreSettings
from veilcount_shuffler.witness import Witness

from ..aggregator.web.api.deployment_fixtures import open_worker
from ..redis_server import RedisServer
from ..shuffler.parties import HandClock
from .shuffler_store import REPORTS, hand_over, hold, leave, sealed
from .world import content, read

NOW = datetime(2026, 12, 5, 12, tzinfo=UTC)
MORE = 30


@pytest.mark.parametrize("cut", [0, 1])
def test_a_shuffler_hands_over_what_it_held(redis: RedisServer, tmp_path: Path, cut: int) -> None:
    """All of it; of a file that lost its last byte, all but one report."""
    folder = tmp_path / "shuffler"
    for name, raw in read("shuffler.json.gz").items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            bytes.fromhex(raw)[: -cut or None] if "held" in name else bytes.fromhex(raw)
        )
        path.chmod(0o600)
    settings = StoreSettings(folder, Disk())
    clock, served = HandClock(NOW), ServedCrowds(settings)
    with (
        open_worker(redis.url, NOW) as deployed,
        closing(CrowdStates(settings.crowds, Disk())) as states,
    ):
        store = CrowdStore(settings.crowds, served, states, Witness(None, Disk()), Disk(), clock)
        _, crowd, *_ = crowds_of(settings)
        hold(store, sealed(crowd, MORE, 9))
        leave(crowd, clock, deployed)
        hand_over(settings, store, deployed)

        assert content(deployed)["shuffled"]["reports"] == [
            [0, 0, REPORTS[0]],
            [1, 0, REPORTS[1] + MORE - cut],
        ]
