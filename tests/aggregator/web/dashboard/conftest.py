"""Deployments whose pages are opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ....browser.browser_population import NOW, stock
from ..api.deployment_fixtures import CENTRAL, FILE, Deployment, deployment
from .page_fixtures import Visitor, logged_in


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE, CENTRAL) as made:
        yield made


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment with local collections only: all counts are public."""
    with deployment(tmp_path, FILE) as made:
        yield made


@pytest.fixture
def visitor(deployed: Deployment) -> Visitor:
    return Visitor(deployed)


@pytest.fixture(scope="session")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Collections of every kind with reports, for tests that change nothing."""
    with deployment(tmp_path_factory.mktemp("stocked"), now=NOW) as made:
        stock(made)
        made.aggregator.flush()
        yield made


@pytest.fixture
def analyst(stocked: Deployment) -> Visitor:
    return logged_in(stocked)
