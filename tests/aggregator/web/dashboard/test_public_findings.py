"""A public page leads with what the dashboard leads with, by the published counters alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.operate.doctor import Severity
from veilcount_aggregator.queries.published_figures import published_figures
from veilcount_aggregator.server.serve import prepare
from veilcount_aggregator.settings import Settings
from veilcount_serving.listen_address import ListenAddress

from ....system.server import HOST, free_port
from ...operate.doctor.doctor_fixtures import examine_deployment
from ...queries.simulated_reports import snapshot
from ...queries.test_leading_difference import FILE, lead, send_month
from ..api.deployment_fixtures import Deployment, deployment
from .page_fixtures import logged_in

AFTER = datetime(2027, 2, 1, tzinfo=UTC)
NAMES = ("theme", "walked", "tehme")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE, now=AFTER, publish=NAMES) as made:
        yield made


def headline(site: Deployment, name: str) -> str:
    site.clocks.now = AFTER
    finding = published_figures(snapshot(site), name).headline
    return finding.text if finding else ""


def shown(site: Deployment, path: str) -> str:
    return site.ask("GET", path).body.decode().replace("\N{NO-BREAK SPACE}", " ")


def test_segments_that_differ_lead_as_they_do_on_the_dashboard(site: Deployment) -> None:
    send_month(site, "theme", 0, [4000, 1000, 500], [1000, 4000, 500])

    assert headline(site, "theme") == lead(site, "theme")
    text = shown(site, "/public/theme/")
    assert "light leads in home map, dark in home list" in text
    assert "All together: " in text


def test_segments_that_are_published_together_are_not_compared(site: Deployment) -> None:
    """The dashboard compares 99 reports of one with the rest; its counters are not published."""
    send_month(site, "theme", 0, [2000, 0, 0], [0, 99, 0])

    assert "home map" in lead(site, "theme")
    assert "home" not in headline(site, "theme")


def test_a_month_with_few_reports_changes_no_public_finding(site: Deployment) -> None:
    """It is not published: what the finding states of it would be a second way to its counters."""
    send_month(site, "walked", 0, [3000, 1000])
    send_month(site, "walked", 2, [1000, 3000])
    before = headline(site, "walked")
    send_month(site, "walked", 4, [99, 0])

    assert headline(site, "walked") == before
    assert "in Sep 2026, up from" in before
    assert "in Nov 2026, down from" in lead(site, "walked")


def test_months_are_drawn_and_listed(site: Deployment) -> None:
    send_month(site, "walked", 0, [3000, 1000])
    send_month(site, "walked", 2, [1000, 3000])
    site.clocks.now = AFTER
    text = shown(site, "/public/walked/")

    assert "Over time" in text
    assert "By month, 1 Jul to 30 Sep 2026" in text
    assert "Without reports: 1 to 31 Aug 2026" in text


def test_the_dashboard_links_what_is_published(site: Deployment) -> None:
    visitor = logged_in(site)

    assert 'href="/public/theme/"' in visitor.get("/collections/theme").html
    assert "/public/" not in visitor.get("/collections/minutes").html


def test_a_name_that_nothing_is_published_of_is_named_with_the_nearest(
    site: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    store = site.aggregator.settings.store
    finding = examine_deployment(site, publish=NAMES)["published"]

    assert finding.state is Severity.WARN
    assert finding.what == 'no collection is named "tehme": did you mean theme?'
    assert examine_deployment(site, publish=NAMES[:2])["published"].state is Severity.OK
    prepare(Settings(store, publish=NAMES), ListenAddress(HOST, free_port()))
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["reason"]) == ("not published", finding.what)
