"""The client's pages for people, as a browser shows them: audited like the dashboard."""

from __future__ import annotations

from pathlib import Path

from selenium import webdriver

from veilcount_client.integrations.pages import PrivacyPages
from veilcount_client.testing import ClientHarness

from .chromium import AUDIT

FILE = Path(__file__).parents[2] / "docs" / "collections.toml"
MEDIA = "Emulation.setEmulatedMedia"
LOADED = "return performance.getEntriesByType('resource').length"


def test_receipt_and_consent_are_accessible_and_load_nothing(
    driver: webdriver.Chrome, veilcount: ClientHarness, tmp_path: Path
) -> None:
    """In both themes: names, order, contrast, nothing beyond the edge."""
    client = veilcount.client(FILE)
    client.record("theme", "dark")
    veilcount.flush()
    pages = PrivacyPages(lambda: client)
    for html in (
        client.receipt().html(),
        pages.consent(client, lambda: {"token": "x"}, objects=True).html,
    ):
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        for theme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": theme}
            driver.execute_cdp_cmd(MEDIA, {"features": [feature]})
            driver.get((tmp_path / "page.html").as_uri())

            assert driver.execute_script(AUDIT) == [], theme
            assert driver.execute_script(LOADED) == 0
