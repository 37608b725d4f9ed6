"""The client's pages for people, as a browser shows them: audited like the dashboard."""

from __future__ import annotations

from pathlib import Path

from selenium import webdriver

from veilcount_client.integrations.pages import PrivacyPages
from veilcount_client.testing import ClientHarness

from .chromium import NARROW, WIDE, complaints

FILE = Path(__file__).parents[2] / "docs" / "collections.toml"
MEDIA = "Emulation.setEmulatedMedia"
LOADED = "return performance.getEntriesByType('resource').length"


def test_the_pages_for_people_are_accessible_and_load_nothing(
    driver: webdriver.Chrome, veilcount: ClientHarness, tmp_path: Path
) -> None:
    """In both themes, on a screen and a phone: names, contrast, nothing beyond the edge."""
    client = veilcount.client(FILE)
    client.record("theme", "dark")
    veilcount.flush()
    pages = PrivacyPages(lambda: client)

    def fields() -> dict[str, str]:
        return {"token": "x"}

    rendered = (
        pages.receipt(client),
        pages.consent(client, fields, objects=True),
        pages.consent(client, fields, failed=409),
        pages.forget(client, fields),
        pages.erased(),
        pages.consent(None, fields),
    )
    for page in rendered:
        (tmp_path / "page.html").write_text(page.html, encoding="utf-8")
        for theme, (width, height) in (("light", WIDE), ("dark", NARROW)):
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            feature = {"name": "prefers-color-scheme", "value": theme}
            driver.execute_cdp_cmd(MEDIA, {"features": [feature]})
            driver.get((tmp_path / "page.html").as_uri())

            assert complaints(driver) == [], theme
            assert driver.execute_script(LOADED) == 0
