"""The compare tab in a browser: drawn, chosen with the keyboard, readable on a phone."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.browser.chromium import NARROW, Browser


def test_two_segments_are_drawn_and_listed_and_exchanged_with_the_keyboard(
    browser: Browser,
) -> None:
    browser.enter()
    browser.open("/collections/theme/compare?from=2026-11-01&to=2026-11-30")

    assert "points" in browser.text(".verdict .headline")
    assert len(browser.all("#differences .barlayer .point")) == 3
    assert [each.split()[0] for each in browser.texts("tbody th")] == ["light", "dark", "system"]
    assert all(" to " in each for each in browser.texts("tbody td:nth-child(5)"))
    Select(browser.find("#a")).select_by_value("arm:B")
    Select(browser.find("#b")).select_by_value("arm:A")
    browser.await_page(lambda: browser.find("#values").send_keys("light,dark", Keys.ENTER))
    assert "a=arm%3AB" in browser.path
    assert [each.split()[0] for each in browser.texts("tbody th")] == ["light", "dark"]
    assert "B: arm A" in browser.text(".facts")


def test_segments_days_and_definitions_are_links(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/theme/compare")
    browser.follow(browser.all(".choice a")[1])

    assert browser.text(".choice a[aria-current]") == "Ranges of days"
    assert "2026-11-01 to 2026-11-30" in browser.text()
    browser.follow(browser.all(".choice a")[2])
    assert browser.text(".choice a[aria-current]") == "Definitions"
    assert "under definition" in browser.text(".verdict")


def test_thirty_names_fit_on_a_phone(browser: Browser) -> None:
    browser.size(NARROW)
    browser.enter()
    browser.open("/collections/word/compare")

    assert browser.fits()
    assert len(browser.all("#differences .barlayer .point")) == 30
    assert "The first 30 values are drawn; the table has all." in browser.text("figcaption")
