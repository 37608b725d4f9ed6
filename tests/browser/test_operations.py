"""The operations page in a browser: a collection is chosen, and drawn by period."""

from __future__ import annotations

from tests.browser.chromium import Browser


def test_a_collection_is_chosen_and_drawn(browser: Browser) -> None:
    browser.enter()
    browser.open("/operations")
    browser.run("document.getElementById('collection').value = 'opened'")
    browser.follow("form[action='#periods'] button")

    assert browser.path == "/operations?collection=opened#periods"
    assert len(browser.all("#verdicts .barlayer .point")) == 6
    browser.find(".under summary").click()
    assert len(browser.all(".under tbody tr")) == 6
