"""The releases tab in a browser: a dry run, a release, its chart and its table."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.aggregator.api.deployment_fixtures import CENTRAL
from tests.aggregator.queries.simulated_reports import counted, send
from tests.browser.chromium import NARROW, Browser
from veilcount_aggregator.auth.api_keys import Role

HERE = "/collections/pages/releases"
PAGES = CENTRAL.replace("visits", "pages").replace("boolean = true", "range = [0, 5]")
BARS = "#figures .barlayer .point"
COLUMNS = "#budget .barlayer .point"


def test_a_release_is_dry_run_charged_drawn_and_listed(own_browser: Browser) -> None:
    made = own_browser.site.deployment
    made.push(PAGES)
    made.clocks.now = datetime(2026, 12, 1, 12, tzinfo=UTC)
    counted(send(made, "pages", [9, 8, 7, 6, 5, 4]))
    made.clocks.now = datetime(2027, 2, 1, 12, tzinfo=UTC)
    own_browser.enter(Role.ANALYST)
    own_browser.open(HERE)

    assert "30 closed periods have budget left." in own_browser.text(".verdict")
    assert len(own_browser.all(COLUMNS)) == 60
    own_browser.find("#epsilon").clear()
    own_browser.find("#epsilon").send_keys("0.25")
    own_browser.run("document.getElementById('from').value = '2026-12-01'")
    own_browser.run("document.getElementById('to').value = '2026-12-01'")
    own_browser.follow("#release-form button")
    assert "Remaining afterwards\n0.75" in own_browser.text("#dry-run")
    own_browser.follow("#release")
    assert own_browser.path.endswith("shown=1#shown")
    assert len(own_browser.all(BARS)) == 6
    own_browser.find("#shown summary").click()
    assert len(own_browser.all("#shown tbody tr")) == 6
    assert "2026-12-01 · epsilon 0.25 · released 2027-02-01" in own_browser.text(".release")

    own_browser.size(NARROW)
    own_browser.open(HERE)

    assert own_browser.fits()


def test_a_local_collection_links_to_its_estimates(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/theme/releases")
    browser.follow(".empty a")

    assert browser.path == "/collections/theme"
