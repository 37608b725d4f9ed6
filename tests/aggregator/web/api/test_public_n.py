"""The exact number of a curator's answers: shown everywhere at once, or nowhere and never."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.records.api_keys import Role

from ...queries.simulated_reports import counted, send
from ..dashboard.page_fixtures import Visitor
from .deployment_fixtures import Deployment, deployment

MONTHS = {"2026-09": 1301, "2026-10": 1409, "2026-11": 1511}  # marks: the answers of each
TOTAL = sum(MONTHS.values())
LAST_DAY = {"2026-09": "30", "2026-10": "31", "2026-11": "30"}
OVER = datetime(2027, 5, 1, tzinfo=UTC)
CHEAP = "0.000001"
NUMBER = r"(?<![\w.,])(?:{}|{})(?![\w])"  # with or without separators; not within another one
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


@contextmanager
def filled(folder: Path, text: str) -> Iterator[Deployment]:
    with deployment(folder, text) as deployed:
        deployed.clocks.now = datetime(2026, 11, 30, 12, tzinfo=UTC)
        every = deployed.series("crash").collection.periods // len(MONTHS)
        for month, answers in enumerate(MONTHS.values()):
            counted(send(deployed, "crash", [answers], period=month * every))
        yield deployed


def occurrences(deployed: Deployment) -> list[set[str]]:
    """Where the total and each month stand: which pages and endpoints say them."""
    key, visitor = deployed.key(Role.ADMIN), Visitor(deployed)
    visitor.log_in(key)
    paths = ("/v1/collections", "/v1/collections/crash", "/v1/collections/crash/budget",
             "/v1/collections/crash/contrast", "/metrics")  # fmt: skip
    pages = ("/", "/collections/crash", "/collections/crash/budget", "/collections/crash/releases",
             "/operations")  # fmt: skip
    seen = {path: deployed.ask("GET", path, key=key).body.decode() for path in paths}
    seen |= {f"page {path}": visitor.get(path).html for path in pages}
    return [
        {where for where, text in seen.items() if re.search(NUMBER.format(of, f"{of:,}"), text)}
        for of in (TOTAL, *MONTHS.values())
    ]


def released(deployed: Deployment) -> list[Any]:
    """The mean of each month, at the least epsilon there is, and of all of them."""
    deployed.clocks.now = OVER
    days = [(f"{month}-01", f"{month}-{LAST_DAY[month]}") for month in MONTHS]
    key, request = deployed.key(Role.ANALYST), {"query": "mean", "epsilon": CHEAP}
    bodies = (
        json.dumps(request | {"from": first, "to": last}).encode()
        for first, last in (*days, (days[0][0], days[-1][1]))
    )
    path = "/v1/collections/crash/releases"
    return [deployed.ask("POST", path, body, key=key).json for body in bodies]


def test_public_numbers_stand_everywhere_before_any_release(tmp_path: Path) -> None:
    with filled(tmp_path, REQUESTED) as public:
        total, *months = occurrences(public)

        assert {"/v1/collections", "/v1/collections/crash", "/metrics", "page /"} <= total
        assert all(months)
        assert [each["n"] for each in released(public)] == [*MONTHS.values(), TOTAL]


@pytest.mark.parametrize("text", WITHHELD.values(), ids=WITHHELD)
def test_withheld_numbers_stand_nowhere_nor_in_cheap_releases(tmp_path: Path, text: str) -> None:
    """Of a campaign, of a month, and by the sum of what the months' releases state."""
    with filled(tmp_path, text) as withheld:
        answers = released(withheld)

        assert occurrences(withheld) == [set()] * 4
        assert [answer["n"] for answer in answers] == [None] * 4
        assert all(answer["charged"] for answer in answers)
