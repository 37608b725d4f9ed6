"""One deployment with reports, for pages that only read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from ....queries.simulated_reports import FILE, LISTS, counted, send, send_numbers
from ...api.deployment_fixtures import CENTRAL, Deployment, deployment
from ..page_fixtures import Visitor, logged_in

OCTOBER = datetime(2026, 10, 31, 12, tzinfo=UTC)
DECEMBER = datetime(2026, 12, 5, 12, tzinfo=UTC)
TWICE = FILE.replace("values = [1, 2]", "values = [3, 2, 1]")  # `once`, defined anew


@pytest.fixture(scope="package")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """December 5: arms differ, weeks do not, both collections of a pair have reports."""
    folder = tmp_path_factory.mktemp("answered")
    with deployment(folder, now=OCTOBER, journal=folder / "journal") as made:
        made.push(FILE, **LISTS)
        _send_reports(made)
        yield made


def _send_reports(made: Deployment) -> None:
    counted(send(made, "theme", [1000, 3000, 0], seed=2))
    counted(send(made, "local", [3000, 1000], seed=3))
    counted(send(made, "curated", [3000, 1000], seed=4))
    made.clocks.now = DECEMBER
    counted(send(made, "theme", [1000, 2000, 1000], period=1, segment=0, seed=5))
    counted(send(made, "theme", [2000, 1000, 1000], period=1, segment=2, seed=6))
    for day in range(20, 34):
        counted(send(made, "opened", [40, 60], period=day, seed=day))
    numbers = np.random.default_rng(11).beta(2, 5, 4000)
    counted(send_numbers(made, "ranges", numbers, seed=14))
    counted(send_numbers(made, "ranges", numbers / 2, segment=1, seed=15))
    counted(send(made, "once", [1000, 3000], seed=8))
    made.push(TWICE + CENTRAL.partition("\n\n")[2], **LISTS)
    counted(send(made, "once", [1000, 2000, 2000], seed=9))
    request = {"query": "histogram", "epsilon": "0.5"}
    made.aggregator.curator.answer(made.series("curated"), request, made.clocks.now, "test")


@pytest.fixture
def analyst(answered: Deployment) -> Visitor:
    return logged_in(answered)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Deployment]:
    """An own deployment without reports."""
    with deployment(tmp_path, now=DECEMBER) as made:
        made.push(FILE, **LISTS)
        yield made
