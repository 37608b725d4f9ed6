"""Sixty-four threads that send the same batch at once have it counted once, by two workers."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict

from .campaign import Campaign
from .deployments import DEPLOYMENTS
from .honest_devices import Device
from .store_verification import assert_consistent

THREADS = 64


@pytest.mark.parametrize(
    "engine",
    [
        each if each == "sqlite" else pytest.param(each, marks=pytest.mark.full)
        for each in DEPLOYMENTS
    ],
)
def test_a_batch_that_is_replayed_by_many_at_once_is_counted_once(
    engine: str, tmp_path: Path
) -> None:
    campaign = Campaign.write(tmp_path)
    randomness = SeededRandomSource(5)
    batch = [report for _ in range(5) for report in campaign.person(randomness)]
    deployment = DEPLOYMENTS[engine](campaign, tmp_path)
    try:
        verdicts = replay(campaign, deployment.server.port, batch)
        assert_consistent(deployment.store, campaign, batch)
    finally:
        deployment.close()

    assert all(Counter(each)[Verdict.COUNTED] == 1 for each in zip(*verdicts, strict=True))
    assert Counter(verdict for each in verdicts for verdict in each) == {
        Verdict.COUNTED: len(batch),
        Verdict.DUPLICATE: len(batch) * (THREADS - 1),
    }


def replay(campaign: Campaign, port: int, batch: list[Report]) -> list[tuple[Verdict, ...]]:
    """Send a batch from many threads at the same moment, until each is answered."""
    together = threading.Barrier(THREADS)

    def send(number: int) -> tuple[Verdict, ...]:
        device = Device(campaign, port, number, patience=20.0)
        together.wait()
        verdicts = device.post(batch)
        device.close()
        assert verdicts is not None, "no answer"
        return verdicts

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(send, range(THREADS)))
