"""The planner, in a browser: two numbers in, the third out, and a definition in the clipboard."""

from __future__ import annotations

import pytest
from selenium.webdriver.support.ui import Select

from tests.browser.chromium import NARROW, Browser
from tests.browser.overflow import fits


def test_a_plan_is_there_at_once_and_fits_on_a_phone(browser: Browser) -> None:
    browser.size(NARROW)
    browser.enter()
    browser.open("/plan")

    assert "each share is known to +/- 1.3 points." in browser.text(".verdict .headline")
    assert len(browser.all("#margins .scatterlayer .trace")) == 4
    assert fits(browser)


def test_what_is_left_empty_is_found(browser: Browser) -> None:
    browser.enter()
    browser.open("/plan")
    browser.find("#devices").clear()
    browser.find("#margin").send_keys("2")
    browser.follow("button.main")

    assert fits(browser)
    assert browser.text(".facts.big .tag") == "computed"
    assert "known to +/- 2 points." in browser.text(".verdict .headline")
    assert browser.find("#devices").get_attribute("value") == ""


def test_of_a_number_its_range_is_asked_for(browser: Browser) -> None:
    browser.enter()
    browser.open("/plan")

    assert not browser.find("#low").is_displayed()
    Select(browser.find("#kind")).select_by_value("number")
    assert not browser.find("#values").is_displayed()
    browser.find("#low").send_keys("0")
    browser.find("#high").send_keys("60")
    browser.follow("button.main")
    assert "the mean is known to" in browser.text(".verdict .headline")
    assert "range = [0, 60]" in browser.text("#toml")
    assert browser.find("#low").is_displayed()


def test_a_mistake_stands_beside_its_field(browser: Browser) -> None:
    browser.enter()
    browser.open("/plan")
    browser.expects("400 (BAD REQUEST)")
    browser.find("#margin").send_keys("1")
    browser.follow("button.main")

    assert "leave the one to compute empty" in browser.text("#devices-wrong")
    assert browser.find("#devices").get_attribute("aria-describedby") == "devices-wrong"
    assert browser.find("#margin").get_attribute("value") == "1"


@pytest.mark.parametrize(("allowed", "said"), [("granted", "Copied"), ("denied", "Selected")])
def test_the_definition_is_copied_or_at_least_selected(
    browser: Browser, allowed: str, said: str
) -> None:
    browser.enter()
    browser.open("/plan")
    browser.tell("Browser.setPermission", permission={"name": "clipboard-write"}, setting=allowed)
    browser.find("[data-copy]").click()
    browser.wait("return document.querySelector('[data-copy]').textContent !== 'Copy'")

    assert browser.text("[data-copy]").startswith(said)
    if allowed == "denied":
        assert browser.run("return String(getSelection())").startswith('app = "my-app"')


@pytest.mark.parametrize(
    "script",
    [
        "document.querySelector('.plot').style.cssText = 'height: 10px; min-height: 0'",
        "document.querySelector('#toml').style.width = '3000px'",
    ],
)
def test_what_has_no_room_is_noticed(browser: Browser, script: str) -> None:
    """A chart over what follows; a page wider than the screen."""
    browser.enter()
    browser.open("/plan")
    browser.run(script)

    assert not fits(browser)
