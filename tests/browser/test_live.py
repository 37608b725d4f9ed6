"""The live view of `veilcount dev` in a browser: a report appears on the page that is open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from selenium import webdriver

from veilcount_aggregator.intake.live_reports import LiveReports
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.server.app import assemble

from ..aggregator.web.api.deployment_fixtures import FILE, NOW, deployment
from .chromium import browsing, served


def test_a_report_appears_on_the_open_page_and_the_page_is_accessible(
    driver: webdriver.Chrome, tmp_path: Path
) -> None:
    live = LiveReports(lambda _: None, lambda: NOW)
    with deployment(tmp_path, FILE, dev=True) as production:
        made = replace(production, app=assemble(production.aggregator, live=live).flask)
        with served(made) as site, browsing(driver, site) as browser:
            browser.enter(Role.ADMIN)
            browser.open("/live")
            assert "No reports yet" in browser.text()
            assert browser.audit() == []
            browser.run("document.body.dataset.same = 'page'")
            made.verdicts(made.report("theme"))
            browser.wait("return !!document.querySelector('#reports td')")

            assert "12:00:00 theme counted" in browser.text("#reports tbody")
            assert "randomized: light" in browser.text("#reports tbody")
            assert browser.run("return document.body.dataset.same") == "page"
            assert browser.audit() == []
            assert production.ask("GET", "/live").status == 404
