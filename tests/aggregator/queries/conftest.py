"""One stocked store for all that only read it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from ..web.api.deployment_fixtures import Deployment, deployment
from .simulated_reports import FILE, LISTS, WORDS, counted, send, send_numbers

BEFORE = datetime(2026, 10, 31, 12, tzinfo=UTC)
AFTER = datetime(2026, 12, 5, 12, tzinfo=UTC)


@pytest.fixture(scope="package")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A store with reports of each collection; it is the fifth of December."""
    with deployment(tmp_path_factory.mktemp("stocked"), now=AFTER) as made:
        made.push(FILE, **LISTS)
        stock(made)
        yield made


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Deployment]:
    """A store with the same definitions and no reports."""
    with deployment(tmp_path, now=AFTER) as made:
        made.push(FILE, **LISTS)
        yield made


def stock(made: Deployment) -> None:
    made.clocks.now = BEFORE
    counted(send(made, "theme", [1000, 3000, 0], seed=2))
    counted(send(made, "local", [3000, 1000], seed=3))
    counted(send(made, "curated", [3000, 1000], seed=4))
    made.clocks.now = AFTER
    counted(send(made, "theme", [1000, 2000, 1000], period=1, segment=0, seed=5))
    counted(send(made, "theme", [2000, 1000, 1000], period=1, segment=2, seed=6))
    counted(send(made, "theme", [500, 500, 0], period=2, segment=3, seed=7))
    for day in range(5, 35):
        counted(send(made, "opened", [40, 60], period=day, seed=day))
    counted(send(made, "once", [1000, 3000], seed=8))
    counted(send(made, "quiet", [1000, 3000, 4000], seed=9))
    counted(send(made, "plan", [1000, 2000, 3000, 4000], seed=10))
    numbers = np.random.default_rng(11).beta(2, 5, 8000)
    counted(send_numbers(made, "minutes", numbers, seed=12))
    counted(send_numbers(made, "spread", numbers, seed=13))
    counted(send_numbers(made, "ranges", numbers, seed=14))
    counted(send_numbers(made, "ranges", numbers / 2, segment=1, seed=15))
    words = [0] * WORDS
    words[:4] = [8000, 6000, 4000, 2000]
    counted(send(made, "word", words, seed=16))
