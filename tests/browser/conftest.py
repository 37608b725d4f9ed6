"""One browser and one stocked house for each process of tests; after each test, no complaints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from tests.browser.browser_population import NOW, stock
from tests.browser.browser_server import House, open_house
from tests.browser.chromium import Browser, chromium, visiting


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The stocked house, for all tests that change nothing in it."""
    with open_house(tmp_path_factory.mktemp("house"), now=NOW) as made:
        stock(made.deployment)
        yield made


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """The one browser."""
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def browser(driver: webdriver.Chrome, house: House) -> Iterator[Browser]:
    """A stranger's browser at the stocked house."""
    with visiting(driver, house) as visitor:
        yield visitor


@pytest.fixture
def own_house(tmp_path: Path) -> Iterator[House]:
    """An empty house, which a test may change."""
    with open_house(tmp_path, now=NOW) as made:
        yield made


@pytest.fixture
def guest(driver: webdriver.Chrome, own_house: House) -> Iterator[Browser]:
    """A stranger's browser at the test's own house."""
    with visiting(driver, own_house) as visitor:
        yield visitor
