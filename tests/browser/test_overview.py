"""The first page in a real browser."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.browser.chromium import NARROW, WIDE, Browser

OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_a_line_leads_to_its_collection_wherever_it_is_touched(browser: Browser) -> None:
    browser.enter()
    browser.open("/")
    reached = browser.run(
        "const end = [...document.querySelectorAll('.listing li')]"
        ".find((each) => each.innerText.includes('command palette')).querySelector('.when');"
        "end.scrollIntoView(); const box = end.getBoundingClientRect();"
        "return document.elementFromPoint(box.x + 5, box.y + 5).getAttribute('href')"
    )

    assert reached == "/collections/opened"


def test_a_search_is_an_address_and_keeps_what_was_typed(browser: Browser) -> None:
    browser.enter()
    browser.open("/")
    browser.find("#find").send_keys("theme")
    browser.follow(".find button")

    assert browser.path == "/?find=theme"
    assert browser.texts(".listing h3") == ["Which theme is active?", "Which plan has which theme?"]
    assert browser.run("return document.getElementById('find').value") == "theme"


@pytest.mark.parametrize(("size", "theme"), [(WIDE, "light"), (NARROW, "dark")])
def test_nothing_is_cut_and_headings_are_in_order(
    browser: Browser, size: tuple[int, int], theme: str
) -> None:
    browser.size(size)
    browser.theme(theme)
    browser.enter()
    browser.open("/")
    levels = browser.run(
        "return [...document.querySelectorAll('h1, h2, h3')].map((each) => Number(each.tagName[1]))"
    )

    assert browser.run(OVERFLOW) == 0
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
