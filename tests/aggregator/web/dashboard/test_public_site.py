"""The public site: without log-in, cookie or script; served and exported alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.queries.publishing_key import (
    create_publishing_key,
    public_text,
    read_publishing_key,
)
from veilcount_aggregator.server.app import create_app
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.web.dashboard.pages import PAGES
from veilcount_aggregator.web.dashboard.public import served_site
from veilcount_aggregator.web.dashboard.public.site_files import NO_RELEASE, NOTHING_YET, Files
from veilcount_analysis.counts import join_open_counters, read_open_counters

from ...queries.simulated_reports import FILE, LISTS, send, send_numbers
from ..api.deployment_fixtures import Deployment, deployment

NAMES = ("theme", "once", "spread", "plan", "curated")
OCTOBER, DECEMBER = datetime(2026, 10, 20, tzinfo=UTC), datetime(2026, 12, 20, 12, tzinfo=UTC)
FEBRUARY = datetime(2027, 2, 1, 12, tzinfo=UTC)
LINK = re.compile(r'(?:href|src)="([^"]*)"')
NOW = "veilcount_aggregator.operate.cli.options.now"


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "publish.key"
    create_publishing_key(path)
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("site")
    with deployment(folder, now=OCTOBER, publish=NAMES, publish_key=key) as made:
        made.push(FILE, **LISTS)
        send(made, "theme", [300, 600, 100])
        send(made, "curated", [40, 60])
        made.clocks.now = DECEMBER
        send(made, "once", [2000, 6000])
        send(made, "plan", [1000, 2000, 3000, 4000])
        send(made, "quiet", [3000, 3000, 0])
        send_numbers(made, "spread", [place / 1000 for place in range(1000)])
        made.clocks.now = FEBRUARY
        made.aggregator.flush()
        yield made


def links(site: Deployment, path: str) -> set[str]:
    """Return the paths that a page names, resolved as a browser does."""
    names = LINK.findall(site.ask("GET", path).body.decode())
    return {str(Path("/public") / Path(path).relative_to("/public") / name) for name in names}


def test_a_page_states_finding_interval_method_and_date(site: Deployment) -> None:
    shown = site.ask("GET", "/public/theme/").body.decode().replace("\N{NO-BREAK SPACE}", " ")

    for text in ("of 100 answers are dark", "95 % interval", "1 to 31 Oct 2026", "1,000 reports"):
        assert text in shown
    assert "randomizes its answer before it sends it" in shown


def test_a_page_says_what_its_epsilons_are_and_why_a_curator_s_has_no_figures(
    site: Deployment,
) -> None:
    shown = site.ask("GET", "/public/curated/").body.decode()

    assert "The epsilon of one answer, of a UTC day, and of everything" in shown
    assert "<strong>What is sent.</strong> Your true answer" in shown
    assert NO_RELEASE in shown
    assert NOTHING_YET not in shown


def test_only_what_is_named_is_there(site: Deployment) -> None:
    """Planted: the same question of a collection that is published."""
    listed = site.ask("GET", "/public/").body.decode()

    assert [name for name in NAMES if f'href="{name}/"' not in listed] == []
    assert "quiet" not in listed
    assert site.ask("GET", "/public/once/").status == 200
    assert site.ask("GET", "/public/quiet/").status == 404


def test_without_the_setting_nothing_is_there(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE.replace('values_file = "word.txt"', "boolean = true")) as made:
        assert made.ask("GET", "/public/").status == 404
        assert made.ask("GET", "/public/theme/").status == 404


def test_nobody_is_followed(site: Deployment) -> None:
    """No cookie, no script, nothing of another host, and a policy that allows none."""
    for path in ("/public/", "/public/theme/", "/public/spread/", "/public/theme/chart.svg"):
        reply = site.ask("GET", path)
        text = reply.body.decode()

        assert "Set-Cookie" not in reply.headers
        assert "Cookie" not in reply.headers.get("Vary", "")
        assert "script" not in text.lower()
        assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
        assert "script-src" not in reply.headers["Content-Security-Policy"]
        assert not [link for link in LINK.findall(text) if "//" in link]


def test_a_page_that_keeps_cookies_would_be_noticed(
    site: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: declared as other open pages are, it sets one."""
    monkeypatch.setitem(PAGES, "public", replace(PAGES["public"], cookies=True))
    planted = Deployment(site.aggregator, create_app(site.aggregator), site.clocks)

    assert "Set-Cookie" in planted.ask("GET", "/public/theme/").headers


def test_caches_may_answer_and_other_pages_may_embed(site: Deployment) -> None:
    page, chart = (site.ask("GET", f"/public/theme/{name}") for name in ("", "chart.svg"))
    again = site.ask("GET", "/public/theme/", environ={"HTTP_IF_NONE_MATCH": page.headers["ETag"]})

    assert page.headers["Cache-Control"] == "public, max-age=300"
    assert (again.status, again.body) == (304, b"")
    assert chart.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert chart.headers["Access-Control-Allow-Origin"] == "*"
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]


def test_a_folder_without_its_slash_leads_to_it(site: Deployment) -> None:
    reply = site.ask("GET", "/public/theme")

    assert (reply.status, reply.headers["Location"]) == (308, "theme/")


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_what_it_is_called(site: Deployment, name: str) -> None:
    named = links(site, f"/public/{name}/")
    own = [path for path in named if "." in Path(path).name and ".." not in path]

    assert any(path.endswith("badge.svg") for path in own)
    for path in own:
        reply = site.ask("GET", path)
        assert reply.status == 200, path
        if path.endswith(".svg"):
            assert ET.fromstring(reply.body).tag.endswith("svg")  # noqa: S314 - ours
        if path.endswith(".json"):
            json.loads(reply.body)
        if path.endswith(".parquet"):
            assert reply.body.startswith(b"PAR1")


def test_counters_are_signed_and_give_the_figures_of_the_page(site: Deployment, key: Path) -> None:
    text = public_text(read_publishing_key(key))
    named = [path for path in links(site, "/public/theme/") if "counters-" in path]
    counters = [read_open_counters(site.ask("GET", path).body, text) for path in named]
    estimates = site.ask("GET", "/public/theme/estimates.json").json

    assert join_open_counters(counters).counters
    assert estimates["series"][0]["ranges"][0]["n"] == sum(file.reports for file in counters)
    assert text in site.ask("GET", "/public/theme/").body.decode()


def test_a_curators_page_has_releases_and_no_counters(site: Deployment) -> None:
    shown = site.ask("GET", "/public/curated/").body.decode()

    assert "A trusted curator holds the true values" in shown
    assert "counters-" not in shown
    assert site.ask("GET", "/public/curated/estimates.json").status == 404


def test_an_export_has_the_same_files(
    site: Deployment, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NOW, lambda: FEBRUARY)
    store = site.aggregator.settings.store
    words = ("publish", str(tmp_path / "out"), *NAMES, "--store", store, "--publish-key", str(key))
    assert run(words) == 0
    exported = {
        str(path.relative_to(tmp_path / "out")): path.read_bytes()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }

    assert {"index.html", "style.css", "key.pem", "theme/index.html"} <= exported.keys()
    for path, content in exported.items():
        served = site.ask("GET", f"/public/{path.removesuffix('index.html')}").body
        if not path.endswith(".parquet"):  # names the moment it was written
            assert served == content, path


def test_while_the_store_is_away_what_was_published_is_there(
    site: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a site that has computed nothing yet is not."""

    def away(_: object) -> None:
        raise StoreUnavailable("the store is away")

    before = site.ask("GET", "/public/once/")
    fresh = Deployment(site.aggregator, create_app(site.aggregator), site.clocks)
    monkeypatch.setattr(Aggregator, "snapshot", away)
    site.clocks.passed += 61

    assert site.ask("GET", "/public/once/").body == before.body
    assert fresh.ask("GET", "/public/once/").status == 503


def test_figures_are_computed_once_for_everybody(
    site: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute later the store is looked at again, and nothing is computed if nothing changed."""
    site.ask("GET", "/public/")
    computed: list[object] = []

    def compute(*_: object) -> Files:
        computed.append(1)
        return {}

    monkeypatch.setattr(served_site, "site_files", compute)

    for _ in range(3):
        site.clocks.passed += 61
        assert site.ask("GET", "/public/").status == 200
    assert computed == []

    site.clocks.now = FEBRUARY.replace(day=2)
    site.clocks.passed += 61
    site.ask("GET", "/public/")
    assert computed == [1]
