"""A deployment whose pages are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import CENTRAL, FILE, Deployment, deployment
from tests.aggregator.dashboard.page_fixtures import Visitor
from tests.browser.browser_population import NOW, stock
from veilcount_aggregator.auth.api_keys import Role


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment with three local collections and a central one."""
    with deployment(tmp_path, FILE, CENTRAL) as made:
        yield made


@pytest.fixture
def visitor(deployed: Deployment) -> Visitor:
    """A stranger."""
    return Visitor(deployed)


@pytest.fixture(scope="session")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment with questions of every kind and their crowds, for tests that change nothing."""
    with deployment(tmp_path_factory.mktemp("stocked"), now=NOW) as made:
        stock(made)
        yield made


@pytest.fixture
def analyst(stocked: Deployment) -> Visitor:
    """An analyst who has logged in there."""
    found = Visitor(stocked)
    found.enter(Role.ANALYST)
    return found
