"""One browser and one site with reports for each process; after each test, no complaints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from ..aggregator.web.api.deployment_fixtures import Deployment, deployment
from ..aggregator.web.dashboard.conftest import stocked
from .browser_population import NOW
from .chromium import Browser, Site, browsing, chromium, served

__all__ = ["stocked"]


@pytest.fixture(scope="session")
def site(stocked: Deployment) -> Iterator[Site]:
    """The site with reports, for all tests that change nothing in it."""
    with served(stocked) as opened:
        yield opened


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def browser(driver: webdriver.Chrome, site: Site) -> Iterator[Browser]:
    """A browser without a session, at the site with reports."""
    with browsing(driver, site) as opened:
        yield opened


@pytest.fixture
def own_browser(driver: webdriver.Chrome, tmp_path: Path) -> Iterator[Browser]:
    """A browser without a session, at an empty site, which the test may change."""
    with (
        deployment(tmp_path, now=NOW) as made,
        served(made) as site,
        browsing(driver, site) as opened,
    ):
        yield opened
