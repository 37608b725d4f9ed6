"""Deployments that are attacked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import CENTRAL, FILE, Deployment, deployment


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment with three local collections and a central one."""
    with deployment(tmp_path, FILE, CENTRAL) as made:
        yield made
