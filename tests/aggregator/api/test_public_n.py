"""The exact number of a curator's answers: shown everywhere at once, or nowhere and never."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.aggregator.api.deployment_fixtures import Deployment, deployment
from tests.aggregator.dashboard.page_fixtures import Visitor
from tests.aggregator.queries.simulated_reports import counted, send
from veilcount_aggregator.auth.api_keys import Role

MONTHS = {"2026-09": 1301, "2026-10": 1409, "2026-11": 1511}  # marks: the answers of each
TOTAL = sum(MONTHS.values())
LAST_DAY = {"2026-09": "30", "2026-10": "31", "2026-11": "30"}
OVER = datetime(2027, 5, 1, tzinfo=UTC)
CHEAP = "0.000001"
REQUESTED = """
app = "acme-editor"

[crash]
question = "Did it crash?"
boolean = true
unit = "month"
model = "central"
budget = 1
adjacency = "substitute"
from = 2026-09-01
until = 2026-12-01
late = 120
"""
WITHHELD = {
    "answered in some months only": REQUESTED.replace("late = 120", "answers = 2\nlate = 120"),
    "asked of events": REQUESTED.replace('"month"', '"event"').replace("late", "per_day = 2\nlate"),
    "add-remove": REQUESTED.replace("substitute", "add-remove"),
}


def filled(folder: Path, text: str) -> Iterator[Deployment]:
    with deployment(folder, text) as deployed:
        deployed.clocks.now = datetime(2026, 11, 30, 12, tzinfo=UTC)
        every = deployed.series("crash").collection.periods // len(MONTHS)
        for month, answers in enumerate(MONTHS.values()):
            counted(send(deployed, "crash", [answers], period=month * every))
        yield deployed


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Deployment]:
    yield from filled(tmp_path, REQUESTED)


@pytest.fixture(params=list(WITHHELD.values()), ids=list(WITHHELD))
def withheld(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    yield from filled(tmp_path, request.param)


def seen(deployed: Deployment) -> dict[str, str]:
    """What each page and endpoint says that could know a number of answers."""
    key = deployed.key(Role.ADMIN)
    visitor = Visitor(deployed)
    visitor.log_in(key)
    paths = ("/v1/collections", "/v1/collections/crash", "/v1/collections/crash/budget",
             "/v1/collections/crash/contrast", "/metrics")  # fmt: skip
    pages = ("/", "/collections/crash", "/collections/crash/budget", "/collections/crash/releases",
             "/operations")  # fmt: skip
    found = {path: deployed.ask("GET", path, key=key).body.decode() for path in paths}
    return found | {f"page {path}": visitor.get(path).html for path in pages}


def occurrences(deployed: Deployment, *, of: int) -> list[str]:
    """Where a number stands, with or without its separators; not within another one."""
    number = re.compile(rf"(?<![\w.,])(?:{of}|{of:,})(?![\w])")
    return [where for where, text in seen(deployed).items() if number.search(text)]


def released(deployed: Deployment) -> list[Any]:
    """The mean of each month, at the least epsilon there is, and of all of them."""
    deployed.clocks.now = OVER
    days = [(f"{month}-01", f"{month}-{LAST_DAY[month]}") for month in MONTHS]
    key = deployed.key(Role.ANALYST)
    return [
        deployed.ask("POST", "/v1/collections/crash/releases", _cheap(*ends), key=key).json
        for ends in (*days, (days[0][0], days[-1][1]))
    ]


def _cheap(first: str, last: str) -> bytes:
    return json.dumps({"query": "mean", "epsilon": CHEAP, "from": first, "to": last}).encode()


def test_public_numbers_stand_everywhere_before_any_release(public: Deployment) -> None:
    found = occurrences(public, of=TOTAL)

    assert {"/v1/collections", "/v1/collections/crash", "/metrics", "page /"} <= set(found)
    assert [occurrences(public, of=answers) != [] for answers in MONTHS.values()] == [True] * len(
        MONTHS
    )
    assert [each["n"] for each in released(public)] == [*MONTHS.values(), TOTAL]


def test_withheld_numbers_stand_nowhere_nor_in_cheap_releases(withheld: Deployment) -> None:
    """Of a campaign, of a month, and by the sum of what the months' releases state."""
    answers = released(withheld)

    assert [occurrences(withheld, of=each) for each in (TOTAL, *MONTHS.values())] == [[]] * 4
    assert [each["n"] for each in answers] == [None] * 4
    assert all(each["charged"] for each in answers)
