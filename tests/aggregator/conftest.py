"""A store in a file, and a clock that stands still by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from veilcount_aggregator.store import Store, open_store

from .aggregator_fixtures import SteppedClock


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    url = f"sqlite:///{tmp_path}/store.db?durability=relaxed"
    with closing(open_store(url, make=True)) as opened:
        yield opened


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()
