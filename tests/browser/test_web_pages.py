"""Pages of other sites that send reports, in a browser that enforces what the server says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from flask import Flask
from selenium import webdriver

from veilcount_shared.report import Batch
from veilcount_shared.wire import BINARY_TYPE, encode_binary

from ..aggregator.web.api.deployment_fixtures import FILE, NOW, Deployment, deployment
from .chromium import HOST, Browser, Site, served

SEND = """
const [url, body, kind, mode, done] = arguments;
const headers = kind ? {'Content-Type': kind} : {};
fetch(url, {method: 'POST', body: new Uint8Array(body), headers, mode})
  .then((reply) => reply.type === 'opaque' ? 'sent unseen' : reply.json())
  .then((reply) => done(reply.verdicts || reply), () => done('blocked'));
"""
SUBMIT = """
document.body.innerHTML = `<form method="post" enctype="text/plain" action="${arguments[0]}">
  <input name="vote" value="yes"></form>`;
document.querySelector('form').submit();
"""
PAGE = b"<!doctype html><title>A page of another site</title><body></body>"


def page(_: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
    start("200 OK", [("Content-Type", "text/html")])
    return [PAGE]


@pytest.fixture
def intake(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE, now=NOW) as made:
        yield made


@pytest.fixture
def elsewhere(driver: webdriver.Chrome, intake: Deployment) -> Iterator[Browser]:
    """A browser at a page of another site, which nothing keeps from sending."""
    with served(replace(intake, app=cast("Flask", page))) as site:
        base = site.base.replace(HOST, "localhost")
        driver.get(base)
        yield Browser(driver, Site(base, intake))
        driver.get("about:blank")


def sent(browser: Browser, made: Deployment, kind: str = BINARY_TYPE, mode: str = "cors") -> object:
    """Return what a page hears that sends a report by this type and mode."""
    body = list(encode_binary(Batch((made.report("theme"),))))
    with served(made) as site:
        browser.driver.get(browser.site.base)
        url = f"{site.base}/v1/reports"
        return browser.driver.execute_async_script(SEND, url, body, kind, mode)


def test_a_page_of_a_listed_origin_sends_and_reads_its_verdicts(
    elsewhere: Browser, tmp_path: Path
) -> None:
    origins = (elsewhere.site.base,)
    with deployment(tmp_path / "listing", FILE, now=NOW, origins=origins) as listing:
        assert sent(elsewhere, listing) == ["counted"]
        assert listing.counted("theme") == 1


@pytest.mark.parametrize(
    ("kind", "mode", "heard"),
    [
        (BINARY_TYPE, "cors", "blocked"),
        (BINARY_TYPE, "no-cors", "sent unseen"),  # without its type, which needs a preflight
        ("text/plain", "cors", "blocked"),
        ("text/plain", "no-cors", "sent unseen"),
        ("", "no-cors", "sent unseen"),
    ],
)
def test_a_page_that_is_not_listed_counts_nothing(
    elsewhere: Browser, intake: Deployment, kind: str, mode: str, heard: str
) -> None:
    """Whether the browser asks first, or sends and shows no reply."""
    assert sent(elsewhere, intake, kind, mode) == heard
    assert intake.counted("theme") == 0


def test_a_form_of_such_a_page_counts_nothing(elsewhere: Browser, intake: Deployment) -> None:
    with served(intake) as site:
        elsewhere.driver.get(elsewhere.site.base)
        elsewhere.run(SUBMIT, f"{site.base}/v1/reports")
        elsewhere.wait_for(lambda: "wrong-origin" in elsewhere.driver.page_source)
    assert intake.counted("theme") == 0
