"""One estimate has one interval: page, overview, command, JSON, CSV and reader agree."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_analysis.kinds.headline import mean_text, share_text
from veilcount_analysis.kinds.results import Figure
from veilcount_analysis.text.number_format import (
    figure,
    interval,
    number_interval,
    precise,
    significant,
)
from veilcount_reader import Reader

from ..browser.browser_population import NOW, stock
from .operate.cli.conftest import Type, typed
from .operate.cli.server_fixtures import listening
from .web.api.deployment_fixtures import Deployment, deployment
from .web.dashboard.page_fixtures import Visitor, logged_in

__all__ = ["typed"]

SHARES = (
    *("theme", "opened", "dark"),  # three values, in segments; two values; of one's own period
    *("plan", "help", "country", "word"),  # crossed; hidden presence; 30 and 2,000 values
)
NUMBERS = ("minutes", "size", "latency")  # a mean, a distribution, ranges
LONG = ("country", "word")  # of which the page lists the largest


@dataclass(frozen=True)
class Faces:
    made: Deployment
    url: str
    key: str
    typed: Type

    def query(self, name: str) -> dict[str, str]:
        top = {"top": "25"} if name in LONG else {}
        return {"series": self.made.series(name).fingerprint, **top}

    def api(self, name: str, kind: str = "application/json") -> Any:
        words = "&".join(f"{key}={word}" for key, word in self.query(name).items())
        path = f"/v1/collections/{name}/estimate?{words}"
        answer = self.made.ask("GET", path, key=self.key, environ={"HTTP_ACCEPT": kind})

        assert answer.status == 200
        return answer.body.decode() if kind == "text/csv" else answer.json

    def finding(self, name: str) -> str:
        """Return what a collection's page leads with."""
        html = self.visitor.get(f"/collections/{name}").html
        (found,) = re.findall(r'<p class="headline">(.*?)(?: <span.*)?</p>', html)
        return unescape(found)

    def command(self, name: str) -> str:
        options = [word for key, text in self.query(name).items() for word in (f"--{key}", text)]
        printed = self.typed(
            "estimate", name, *options, "--show-anyway", "--url", self.url, "--key", self.key
        )

        assert printed.code == 0, printed.err
        return " ".join(printed.out.split())

    @property
    def visitor(self) -> Visitor:
        return logged_in(self.made)


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployment, str, str]]:
    with deployment(tmp_path_factory.mktemp("faces"), now=NOW) as made:
        stock(made)
        with listening(made.app.wsgi_app) as url:
            yield made, url, made.key(Role.ANALYST)


@pytest.fixture
def faces(stocked: tuple[Deployment, str, str], typed: Type) -> Faces:
    return Faces(*stocked, typed)


@pytest.mark.parametrize("name", SHARES)
def test_a_share_has_the_same_interval_on_every_face(faces: Faces, name: str) -> None:
    series = faces.api(name)["series"][0]
    found = series["ranges"][-1]
    rows = [row for row in found["figures"] if row["kind"] == "share"]
    ends = [(row["figure"], row["low"], row["high"]) for row in rows]
    sheet = list(csv.DictReader(io.StringIO(faces.api(name, "text/csv"))))
    read = Reader(faces.url, faces.key).estimate(name, **faces.query(name))
    page, printed = faces.visitor.get(f"/collections/{name}").text, faces.command(name)
    written = [
        (figure(share, of_shares=True), interval(low, high, of_shares=True))
        for share, low, high in ends
    ]
    listed = written[: series["facts"]["stand_out"]]  # of a long list those above the noise line

    assert [
        tuple(float(row[each]) for each in ("figure", "low", "high"))
        for row in sheet
        if row["kind"] == "share"
    ] == ends
    assert sorted(zip(read.figure, read.low, read.high, strict=True)) == sorted(ends)
    assert [each for each in listed if " ".join(each) not in page] == []
    assert [each for each in written if " ".join(each) not in printed] == []
    if found["usable"]:
        yes = [row for row in rows if row["of"] is True]
        largest = yes or sorted(rows, key=lambda row: -row["figure"])
        assert share_text(Figure(**largest[0])) in page
        assert faces.finding(name) in faces.visitor.get("/").text


@pytest.mark.parametrize("name", NUMBERS)
def test_a_mean_has_the_same_interval_on_every_face(faces: Faces, name: str) -> None:
    row = faces.api(name)["series"][0]["ranges"][-1]["figures"][0]
    ends = (row["figure"], row["low"], row["high"])
    sheet = csv.DictReader(io.StringIO(faces.api(name, "text/csv")))
    read = Reader(faces.url, faces.key).estimate(name, **faces.query(name))
    mean, interval = precise(*ends), number_interval(*ends[1:])

    assert [
        tuple(float(each[name]) for name in ("figure", "low", "high"))
        for each in sheet
        if each["kind"] == "mean"
    ] == [ends]
    assert (*read.figure, *read.low, *read.high) == ends
    assert f"Mean {mean} {interval}" in faces.command(name)
    unit = faces.api(name)["series"][0]["measured_in"]
    assert mean_text(Figure(**row), unit) in faces.visitor.get(f"/collections/{name}").text
    assert faces.finding(name) in faces.visitor.get("/").text


def test_the_command_prints_each_panel_of_a_distribution_under_its_title(faces: Faces) -> None:
    printed = faces.command("size")
    titles = ("The mean", "Shares of the parts of the range", "Quantiles figure band")
    places = [printed.index(title) for title in titles]

    assert places == sorted(places)
    assert re.search(r" 50\.00% [\d.]+ [\d.]+ to [\d.]+ ", printed)


@pytest.mark.parametrize("name", ["opened", "quiet"])
def test_too_few_reports_are_a_verdict_before_any_figure(faces: Faces, name: str) -> None:
    """Figures are shown on request: unfolded on the page, by an option of the command."""
    found = faces.api(name)["series"][0]["ranges"][-1]
    read = Reader(faces.url, faces.key).estimate(name)
    page = faces.visitor.get(f"/collections/{name}")
    without = faces.typed("estimate", name, "--url", faces.url, "--key", faces.key).out

    assert (found["usable"], read.usable) == (False, False)
    assert found["adequacy"] == read.adequacy
    assert found["adequacy"] in faces.visitor.get("/").text
    assert page.text.index(found["adequacy"]) < page.text.index("View options")
    assert "%" not in without.replace(found["adequacy"], "")
    shown = page.html.split("Show the figures anyway")
    assert "<td" not in shown[0]
    assert len(shown) == 1 + bool(found["n"])


@pytest.mark.parametrize("name", ["theme", "word", "minutes"])
def test_a_ratio_is_that_of_the_numbers_shown(faces: Faces, name: str) -> None:
    text = faces.visitor.get(f"/collections/{name}/contrast").text
    found = re.search(r"needs (\S+) times the people .*? n = (\S+); .*? n = (\S+)\. ", text)

    assert found is not None
    times, curator, local = (group.replace(",", "") for group in found.groups())
    assert significant(int(local) / int(curator), 2).replace(",", "") == times
