"""The public site as a browser shows it from a folder: audited like the dashboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium import webdriver

from veilcount_aggregator.web.dashboard.layout import STYLE, asset
from veilcount_aggregator.web.dashboard.public.site_files import site_files

from ..aggregator.web.api.deployment_fixtures import Deployment
from .chromium import AUDIT

MEDIA, SIZE = "Emulation.setEmulatedMedia", "Emulation.setDeviceMetricsOverride"
NAMES = ("opened", "theme", "latency", "visits")


@pytest.fixture(scope="module")
def folder(stocked: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("public")
    for path, file in site_files(stocked.aggregator.snapshot(), NAMES, asset(STYLE).body).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(file.content)
    return folder


@pytest.mark.parametrize("page", ["index.html", *(f"{name}/index.html" for name in NAMES)])
def test_a_public_page_is_accessible_and_fits(
    driver: webdriver.Chrome, folder: Path, page: str
) -> None:
    """In both themes, wide and narrow: names, order, contrast, nothing beyond the edge."""
    for theme, width in (("light", 1280), ("dark", 390)):
        feature = {"name": "prefers-color-scheme", "value": theme}
        driver.execute_cdp_cmd(MEDIA, {"features": [feature]})
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd(SIZE, metrics)
        driver.get((folder / page).as_uri())

        assert driver.execute_script(AUDIT) == [], theme
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
