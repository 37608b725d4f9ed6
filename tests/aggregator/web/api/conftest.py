"""One deployment a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .deployment_fixtures import FILE, Deployment, deployment


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployment]:
    """A worker on a new store, with three collections, on the third day of their campaigns."""
    with deployment(tmp_path, FILE) as made:
        yield made
