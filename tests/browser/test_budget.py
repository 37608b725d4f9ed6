"""The budget tab in a browser: epsilons, lines, and tables of the charts."""

from __future__ import annotations

from tests.browser.chromium import NARROW, Browser


def test_epsilons_lines_and_tables_are_shown_on_a_phone(browser: Browser) -> None:
    browser.size(NARROW)
    browser.enter()
    browser.open("/collections/theme/budget")

    assert [each.split()[1] for each in browser.texts(".facts.big > div")] == ["2", "2", "24"]
    for name, lines in (("composed", 3), ("attack", 3), ("units", 2)):
        assert len(browser.all(f"#{name} .scatterlayer .trace")) == lines
    for each in browser.all("figure summary"):
        each.click()
    assert all(each.is_displayed() for each in browser.all("figure table"))
    assert browser.texts("#composed ~ .under tbody tr")[-1].split()[:2] == ["12", "24"]
    assert browser.fits()


def test_charts_follow_the_theme_at_once(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/theme/budget")
    script = "return getComputedStyle(document.querySelector('#composed .js-line')).stroke"
    light = browser.run(script)
    browser.find("#theme").click()
    browser.wait(f"{script} !== {light!r}")

    assert browser.run("return document.documentElement.dataset.theme") == "dark"
