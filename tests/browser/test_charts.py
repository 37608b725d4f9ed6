"""Charts in a browser: read out at a pointer and with the keyboard, readable without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from .chromium import NARROW, Browser

#: pages with a chart of each kind, and the chart
CHARTS = {
    "/collections/theme/compare?from=2026-11-01&to=2026-11-30": "#differences",
    "/operations?collection=opened": "#verdicts",
    "/collections/theme/budget": "#units",
    "/collections/theme": ".multiples",
}
READOUT = "const at = document.querySelector('.readout'); return at.hidden ? '' : at.textContent"
FOCUSED = "return document.activeElement.getAttribute('aria-label')"
WITHIN = """const box = document.querySelector('.readout').getBoundingClientRect();
return box.left >= 0 && box.right <= document.documentElement.clientWidth && box.width > 20"""
PAINT = "return getComputedStyle(document.querySelector('#units .line')).stroke"


@contextmanager
def without_scripts(browser: Browser) -> Iterator[None]:
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        yield
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("path", CHARTS)
def test_a_pointer_and_the_focus_show_the_same_text(browser: Browser, path: str) -> None:
    """In a window as wide as a phone, where it must not leave the screen."""
    browser.size(NARROW)
    browser.enter()
    browser.open(path)
    mark, *_ = browser.all(f"{CHARTS[path]} .mark")
    text = mark.get_attribute("aria-label")

    assert text
    assert browser.run(READOUT) == ""
    ActionChains(browser.driver).move_to_element(mark).perform()
    assert browser.run(READOUT) == text
    ActionChains(browser.driver).move_to_element(browser.find("h1")).perform()
    assert browser.run(READOUT) == ""
    browser.run("arguments[0].focus()", mark)
    assert browser.run(READOUT) == text
    assert browser.run(WITHIN)


def test_arrow_keys_lead_from_mark_to_mark_and_a_chart_is_one_stop(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/theme/compare?from=2026-11-01&to=2026-11-30")
    marks = browser.all("#differences .mark")
    names = [mark.get_attribute("aria-label") for mark in marks]
    browser.run("arguments[0].focus()", marks[0])
    seen = []
    for key in (Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.HOME, Keys.END):
        browser.driver.switch_to.active_element.send_keys(key)
        seen.append((browser.run(FOCUSED), browser.run(READOUT)))

    assert [name.split(":")[0] for name in names if name] == ["light", "dark", "system"]
    assert seen == [(names[index], names[index]) for index in (1, 2, 2, 0, 2)]
    assert [mark.get_attribute("tabindex") for mark in marks] == ["-1", "-1", "0"]
    browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert browser.run(READOUT) == ""


@pytest.mark.parametrize("path", CHARTS)
def test_without_scripts_a_chart_has_its_labels_its_values_and_its_table(
    browser: Browser, path: str
) -> None:
    browser.enter()
    with without_scripts(browser):
        browser.driver.get(browser.site.base + path)
        titles = browser.all(f"{CHARTS[path]} .mark title")
        for summary in browser.all("figure.chart details:not([open]) summary"):
            summary.click()

        assert titles
        assert all(
            any(map(str.isdigit, title.get_attribute("textContent") or "")) for title in titles
        )
        assert len(browser.all(f"{CHARTS[path]} .x text")) > 1
        assert browser.all(f"{CHARTS[path]} .names li, {CHARTS[path]} .y text")[0].is_displayed()
        assert browser.all("figure.chart tbody td")[0].is_displayed()
        assert not browser.all(".readout")


def test_a_chart_follows_the_theme_without_a_script(browser: Browser) -> None:
    browser.enter()
    with without_scripts(browser):
        browser.driver.get(f"{browser.site.base}/collections/theme/budget")
        light = browser.run(PAINT)
        browser.theme("dark")

        assert browser.run(PAINT) != light


def test_a_report_to_print_has_its_style_and_its_drawings_by_the_policy(browser: Browser) -> None:
    browser.enter()
    browser.expects("favicon.ico")  # of a document that stands alone
    browser.driver.get(f"{browser.site.base}/collections/theme/report")
    line, body = (
        browser.run(f"return getComputedStyle(document.querySelector('{selector}'))['{key}']")
        for selector, key in ((".multiples .line", "stroke"), ("body", "display"))
    )

    assert (line, body) == ("rgb(15, 96, 115)", "block")
    assert len(browser.all(".multiples .mark title")) > len(browser.all(".multiples .line"))
    assert not browser.all("script")
