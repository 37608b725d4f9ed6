"""Deployments that are attacked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import CENTRAL, FILE, World, world


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[World]:
    """A deployment with three local collections and a central one."""
    with world(tmp_path, FILE, CENTRAL) as made:
        yield made
