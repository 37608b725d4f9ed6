"""The contrast tab in a browser: four rows, lines on logarithmic axes, another n."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Browser

ROWS = ["Local", "Shuffled, the same reports", "Shuffled, the same guarantee", "Central"]


def test_rows_and_lines_are_shown_and_n_is_marked_on_the_logarithmic_axis(browser: Browser) -> None:
    """n is in the middle of five sizes, two decades either side."""
    browser.enter()
    browser.open("/collections/theme/contrast")
    mark, line = (
        browser.find(f"#scaling {each}").rect for each in (".shapelayer path", ".scatterlayer")
    )

    assert browser.texts(".panel tbody th") == ROWS
    assert len(browser.all("#scaling .scatterlayer .trace")) == 3
    assert browser.text("#scaling .annotation").startswith("n = ")
    assert mark["x"] == pytest.approx(line["x"] + line["width"] / 2, abs=8)
    browser.find("#n").clear()
    browser.find("#n").send_keys("500")
    browser.follow("form[method=get] button")
    assert browser.path.endswith("n=500")
    assert "n = 500: as " in browser.text()
