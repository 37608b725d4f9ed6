"""The page of releases in a real browser: a dry run, a release, its picture and its table."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.aggregator.api.deployment_fixtures import CENTRAL
from tests.aggregator.queries.simulated_reports import counted, send
from tests.browser.chromium import NARROW, Browser
from tests.browser.overflow import fits
from veilcount_aggregator.auth.api_keys import Role

HERE = "/collections/pages/releases"
PAGES = CENTRAL.replace("visits", "pages").replace("boolean = true", "range = [0, 5]")
BARS = "#figures .barlayer .point"
COLUMNS = "#budget .barlayer .point"


def test_a_release_is_dry_run_paid_for_drawn_and_listed(guest: Browser) -> None:
    made = guest.house.deployment
    made.push(PAGES)
    made.clocks.now = datetime(2026, 12, 1, 12, tzinfo=UTC)
    counted(send(made, "pages", [9, 8, 7, 6, 5, 4]))
    made.clocks.now = datetime(2027, 2, 1, 12, tzinfo=UTC)
    guest.enter(Role.ANALYST)
    guest.open(HERE)

    assert "30 closed periods have budget left." in guest.text(".verdict")
    assert len(guest.all(COLUMNS)) == 60
    guest.find("#epsilon").clear()
    guest.find("#epsilon").send_keys("0.25")
    guest.run("document.getElementById('from').value = '2026-12-01'")
    guest.run("document.getElementById('to').value = '2026-12-01'")
    guest.follow("#release-form button")
    assert "Remaining afterwards\n0.75" in guest.text("#dry-run")
    guest.follow("#release")
    assert guest.path.endswith("shown=1#shown")
    assert len(guest.all(BARS)) == 6
    guest.find("#shown summary").click()
    assert len(guest.all("#shown tbody tr")) == 6
    assert "2026-12-01 · epsilon 0.25 · released 2027-02-01" in guest.text(".release")

    guest.size(NARROW)
    guest.open(HERE)

    assert fits(guest)


def test_a_question_to_devices_leads_to_its_answers(browser: Browser) -> None:
    browser.enter()
    browser.open("/collections/theme/releases")
    browser.follow(".empty a")

    assert browser.path == "/collections/theme"
