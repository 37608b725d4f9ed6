"""The page of operations in a real browser: a collection is chosen, and drawn by period."""

from __future__ import annotations

from tests.browser.chromium import Browser
from veilcount_aggregator.auth.api_keys import Role


def test_a_collection_is_chosen_and_drawn(browser: Browser) -> None:
    browser.enter()
    browser.open("/operations")
    browser.run("document.getElementById('collection').value = 'opened'")
    browser.follow("form[action='#periods'] button")

    assert browser.path == "/operations?collection=opened#periods"
    assert len(browser.all("#verdicts .barlayer .point")) == 6
    browser.find(".under summary").click()
    assert len(browser.all(".under tbody tr")) == 6
    assert "Audit log" not in browser.texts("h2")


def test_an_admin_sees_who_changed_what(browser: Browser) -> None:
    browser.enter(Role.ADMIN)
    browser.open("/operations")

    assert "Audit log" in browser.texts("h2")
    assert "collections push" in browser.text()
