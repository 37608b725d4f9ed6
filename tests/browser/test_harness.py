"""Would the tests notice? What each page is watched for is brought about here, and seen."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Browser
from veilcount_aggregator.auth.api_keys import Role

ELSEWHERE = "http://127.0.0.2:9/"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("console.error('a plain fault')", "a plain fault"),
        ("setTimeout(() => { throw new Error('thrown') })", "thrown"),
        ("document.body.append(Object.assign(document.createElement('script'), {text: '1'}))",
         "policy violated: script-src"),
        (f"fetch('{ELSEWHERE}').catch(() => 0)", "policy violated: connect-src"),
        (f"location.href = '{ELSEWHERE}'", f"asked elsewhere: {ELSEWHERE}"),
    ],
)  # fmt: skip
def test_a_complaint_is_heard(browser: Browser, script: str, said: str) -> None:
    browser.open("/login")
    browser.run(script)

    browser.hear(said)


def test_a_quiet_page_is_not_complained_about(browser: Browser) -> None:
    browser.enter(Role.ANALYST)
    browser.open("/")

    assert browser.complaints() == []
