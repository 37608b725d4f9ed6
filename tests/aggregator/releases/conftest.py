"""A store with true answers, and a curator over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilcount_aggregator.releases.curator import Curator
from veilcount_aggregator.store import Store

from ..curator_fixtures import AGE, curator, fill


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "releases.jsonl"


@pytest.fixture
def asker(store: Store, journal: Path) -> Curator:
    fill(store, AGE, [3, 2, 1, 0])
    return curator(store, journal)
