"""Contrast, in a browser: four rows, lines on logarithmic axes."""

from __future__ import annotations

import pytest

from tests.browser.chromium import NARROW, Browser
from tests.browser.overflow import fits

ROWS = ["Local", "Shuffled, the same reports", "Shuffled, the same guarantee", "Central"]


def test_four_rows_and_three_lines_fit_on_a_phone(browser: Browser) -> None:
    browser.size(NARROW)
    browser.enter()
    browser.open("/collections/theme/contrast")

    assert browser.texts(".panel tbody th") == ROWS
    assert len(browser.all("#scaling .scatterlayer .trace")) == 3
    assert fits(browser)


def test_the_mark_stands_at_n_on_a_logarithmic_axis(browser: Browser) -> None:
    """In the middle of the five sizes, two decades either side."""
    browser.enter()
    browser.open("/collections/theme/contrast")
    mark, line = (
        browser.find(f"#scaling {each}").rect for each in (".shapelayer path", ".scatterlayer")
    )

    assert browser.text("#scaling .annotation").startswith("n = ")
    assert fits(browser)
    assert mark["x"] == pytest.approx(line["x"] + line["width"] / 2, abs=8)


def test_another_n_is_asked_for(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/crashed/contrast")
    browser.find("#n").send_keys("500")
    browser.follow("form[method=get] button")

    assert browser.path.endswith("/contrast?n=500")
    assert "n = 500: as requested. Predicted" in browser.text()
