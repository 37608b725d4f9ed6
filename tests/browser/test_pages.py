"""The overview, the planner and the operations page in a browser."""

from __future__ import annotations

from selenium.webdriver.support.ui import Select

from .chromium import Browser

#: what is at the end of a collection's row
LINK_AT_THE_END = """
const end = [...document.querySelectorAll('.listing li')]
  .find((each) => each.innerText.includes('command palette')).querySelector('.when');
end.scrollIntoView();
const box = end.getBoundingClientRect();
return document.elementFromPoint(box.x + 5, box.y + 5).getAttribute('href')"""


def test_a_row_is_a_link_as_a_whole_and_a_search_is_an_address(browser: Browser) -> None:
    browser.enter()
    browser.open("/")

    assert browser.run(LINK_AT_THE_END) == "/collections/opened"
    assert "1 duplicate, counted once" in browser.text()
    assert browser.audit() == []
    browser.find("#find").send_keys("theme")
    browser.follow(".find button")
    assert browser.path == "/?find=theme"
    assert browser.texts(".listing h3") == ["Which theme is active?", "Which plan has which theme?"]
    assert browser.find("#find").get_attribute("value") == "theme"


def test_a_plan_is_shown_at_once_and_the_empty_field_is_computed(browser: Browser) -> None:
    browser.enter()
    browser.expects("400 (BAD REQUEST)")
    browser.open("/plan")

    assert "each share is known to +/- 1.3 points." in browser.text(".verdict .headline")
    assert len(browser.all("#margins .line")) == 4
    assert browser.copy("denied").startswith("Selected")
    assert browser.run("return String(getSelection())").startswith('app = "my-app"')
    browser.type("#devices", "")
    browser.find("#margin").send_keys("2")
    browser.follow("button.main")
    assert browser.text(".facts.big .tag") == "computed"
    assert "known to +/- 2 points." in browser.text(".verdict .headline")
    assert browser.find("#devices").get_attribute("value") == ""

    assert not browser.find("#low").is_displayed()
    Select(browser.find("#kind")).select_by_value("number")
    assert not browser.find("#values").is_displayed()
    browser.find("#low").send_keys("0")
    browser.find("#high").send_keys("60")
    browser.follow("button.main")
    assert "the mean is known to" in browser.text(".verdict .headline")
    assert "range = [0, 60]" in browser.text("#toml")
    assert browser.find("#low").is_displayed()
    browser.find("#devices").send_keys("1000")
    browser.follow("button.main")
    assert "leave the one to compute empty" in browser.text("#devices-wrong")
    assert browser.find("#devices").get_attribute("aria-describedby") == "devices-wrong"
    assert browser.find("#margin").get_attribute("value") == "2"
    assert browser.audit() == []
