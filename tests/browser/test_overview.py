"""The overview in a browser."""

from __future__ import annotations

from tests.browser.chromium import Browser


def test_a_row_is_a_link_as_a_whole_and_a_search_is_an_address(browser: Browser) -> None:
    browser.enter()
    browser.open("/")
    link = browser.run(
        "const end = [...document.querySelectorAll('.listing li')]"
        ".find((each) => each.innerText.includes('command palette')).querySelector('.when');"
        "end.scrollIntoView(); const box = end.getBoundingClientRect();"
        "return document.elementFromPoint(box.x + 5, box.y + 5).getAttribute('href')"
    )

    assert link == "/collections/opened"
    browser.find("#find").send_keys("theme")
    browser.follow(".find button")
    assert browser.path == "/?find=theme"
    assert browser.texts(".listing h3") == ["Which theme is active?", "Which plan has which theme?"]
    assert browser.find("#find").get_attribute("value") == "theme"
