"""A store in a file of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from veilcount_aggregator.store.sqlite.store import SqliteStore

from .sqlite_fixtures import open_at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = open_at(path)
    yield opened
    opened.close()
