"""Budget, in a browser: three figures, and a line for each way to add them up."""

from __future__ import annotations

from tests.browser.chromium import NARROW, Browser
from tests.browser.overflow import fits
from veilcount_aggregator.auth.api_keys import Role


def test_three_figures_stand_together_and_all_is_drawn_on_a_phone(browser: Browser) -> None:
    browser.size(NARROW)
    browser.enter()
    browser.open("/collections/theme/budget")

    assert [each.split()[1] for each in browser.texts(".facts.big > div")] == ["2", "2", "24"]
    for name, lines in (("composed", 3), ("attack", 3), ("units", 2)):
        assert len(browser.all(f"#{name} .scatterlayer .trace")) == lines
    assert fits(browser)


def test_a_table_stands_behind_each_chart(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/theme/budget")
    for each in browser.all("figure summary"):
        each.click()

    assert fits(browser)
    assert browser.texts("#composed ~ .under tbody tr")[-1].split()[:2] == ["12", "24"]
    assert all(each.is_displayed() for each in browser.all("figure table"))


def test_the_histogram_of_spent_answers_is_for_admins(browser: Browser) -> None:
    browser.enter(Role.ADMIN)
    browser.open("/collections/opened/budget")
    shown = browser.text()
    browser.enter(Role.ANALYST)
    browser.open("/collections/opened/budget")

    assert "All of them: 1 answer, at most epsilon 0.5 each." in shown
    assert "Only admins see the distribution." in browser.text()


def test_dark_charts_are_drawn_in_dark_colours(browser: Browser) -> None:
    """Whoever prefers dark, or asks for it: the lines follow at once."""
    browser.enter()
    browser.open("/collections/theme/budget")
    script = "return getComputedStyle(document.querySelector('#composed .js-line')).stroke"
    light = browser.run(script)
    browser.find("#theme").click()
    browser.wait(f"{script} !== {light!r}")

    assert browser.run("return document.documentElement.dataset.theme") == "dark"
