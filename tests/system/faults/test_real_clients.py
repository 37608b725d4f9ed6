"""The client that people install, against the server that they run, over a network that fails.

What it says has left was counted once, and it gives up nothing.
"""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path

from veilcount_aggregator.store import open_store
from veilcount_client import Client
from veilcount_client.testing import SettableClock
from veilcount_shared.verdict import Verdict

from ...proxy import HOST, Mood
from .campaign import DAYS_BEFORE, Campaign
from .deployments import OnSqlite
from .store_verification import spent

PERSONS = 12
MOODS = [Mood.REFUSE, Mood.LOSE_REPLY, Mood.HALF_REQUEST, Mood.LOSE_REPLY]


def delivered(client: Client, clock: SettableClock) -> bool:
    """Whether everything leaves in time; a device that failed waits for hours between two tries."""
    for _ in range(10):
        if client.flush(timeout=2):
            return True
        clock.advance(hours=1)
    return False


def test_what_a_client_delivers_through_a_bad_network_is_counted_once(tmp_path: Path) -> None:
    campaign, clock = Campaign.write(tmp_path), SettableClock(Campaign.now())
    deployment = OnSqlite(campaign, tmp_path)
    url = f"http://{HOST}:{deployment.way.port}"
    reports = 0
    try:
        with closing(campaign.client(url, tmp_path / "state", clock)) as client:
            noon = campaign.now().replace(hour=12)
            for day in range(DAYS_BEFORE):
                clock.set(noon - timedelta(DAYS_BEFORE - day))
                reports += campaign.answer(client, "person", PERSONS)
            clock.set(campaign.now())
            for mood in MOODS:
                deployment.way.mood = mood
                client.flush(timeout=0.5)
                clock.advance(hours=1)
            deployment.way.mood = Mood.PASS
            assert delivered(client, clock)
    finally:
        deployment.close()

    with closing(open_store(deployment.store)) as store:
        counted = sum(n for series in campaign.series for n in store.report_counts(series).values())
        noted = store.service_counts().items()
        lost = sum(n for note, n in noted if note.word == Verdict.DUPLICATE)

        assert lost, "no reply was lost: the network was too good"
        assert counted == len(list(spent(store.export_pieces()))) == reports
