"""One deployment a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import FILE, World, world


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[World]:
    """A worker on a new store, with three collections, on the third day of their campaigns."""
    with world(tmp_path, FILE) as made:
        yield made
