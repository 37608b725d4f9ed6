"""Each complaint that tests watch for is caused here, and must be noticed."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Browser
from veilcount_aggregator.auth.api_keys import Role

ELSEWHERE = "http://127.0.0.2:9/"


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("console.error('a plain fault')", "a plain fault"),
        ("setTimeout(() => { throw new Error('thrown') })", "thrown"),
        ("document.body.append(Object.assign(document.createElement('script'), {text: '1'}))",
         "policy violated: script-src"),
        (f"fetch('{ELSEWHERE}').catch(() => 0)", "policy violated: connect-src"),
        (f"location.href = '{ELSEWHERE}'", f"requested elsewhere: {ELSEWHERE}"),
    ],
)  # fmt: skip
def test_a_complaint_is_noticed(browser: Browser, script: str, complaint: str) -> None:
    browser.open("/login")
    browser.run(script)

    browser.expect_complaint(complaint)


def test_a_correct_page_causes_no_complaint_and_overflow_is_noticed(browser: Browser) -> None:
    browser.enter(Role.ANALYST)
    browser.open("/plan")

    assert browser.complaints() == []
    assert browser.fits()
    for wide, style in (("#toml", "width: 3000px"), (".plot", "height: 10px; min-height: 0")):
        browser.run(f"document.querySelector('{wide}').style.cssText = '{style}'")
        assert not browser.fits()
        browser.run(f"document.querySelector('{wide}').style.cssText = ''")
