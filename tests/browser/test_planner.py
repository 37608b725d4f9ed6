"""The planner in a browser: two numbers give the third, and a definition to copy."""

from __future__ import annotations

import pytest
from selenium.webdriver.support.ui import Select

from tests.browser.chromium import Browser


def test_a_plan_is_shown_at_once_and_the_empty_field_is_computed(browser: Browser) -> None:
    browser.enter()
    browser.open("/plan")

    assert "each share is known to +/- 1.3 points." in browser.text(".verdict .headline")
    assert len(browser.all("#margins .scatterlayer .trace")) == 4
    browser.find("#devices").clear()
    browser.find("#margin").send_keys("2")
    browser.follow("button.main")
    assert browser.text(".facts.big .tag") == "computed"
    assert "known to +/- 2 points." in browser.text(".verdict .headline")
    assert browser.find("#devices").get_attribute("value") == ""


def test_a_number_has_a_range_and_an_error_is_shown_at_its_field(browser: Browser) -> None:
    browser.enter()
    browser.expects("400 (BAD REQUEST)")
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
    browser.find("#margin").send_keys("1")
    browser.follow("button.main")
    assert "leave the one to compute empty" in browser.text("#devices-wrong")
    assert browser.find("#devices").get_attribute("aria-describedby") == "devices-wrong"
    assert browser.find("#margin").get_attribute("value") == "1"


@pytest.mark.parametrize(("setting", "text"), [("granted", "Copied"), ("denied", "Selected")])
def test_the_definition_is_copied_or_selected(browser: Browser, setting: str, text: str) -> None:
    browser.enter()
    browser.open("/plan")
    permission = {"name": "clipboard-write"}
    browser.command("Browser.setPermission", permission=permission, setting=setting)
    browser.find("[data-copy]").click()
    browser.wait("return document.querySelector('[data-copy]').textContent !== 'Copy'")

    assert browser.text("[data-copy]").startswith(text)
    if setting == "denied":
        assert browser.run("return String(getSelection())").startswith('app = "my-app"')
