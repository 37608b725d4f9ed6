"""Collections of every kind with reports over months, for tests of pages.

Tests share them and change nothing: one that creates keys, pushes or releases has its own site.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from veilcount_aggregator.store import VERDICT, ServiceCounter
from veilcount_shared.report import Batch, Losses
from veilcount_shared.verdict import Verdict

from ..aggregator.queries.simulated_reports import counted, send, send_numbers
from ..aggregator.web.api.deployment_fixtures import Deployment

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
BEGAN = datetime(2026, 7, 15, 12, tzinfo=UTC)
MONTHS = range(5)  # July to November; December has begun
WORDS = 2_000
COUNTRIES = 30
LONG = "What is asked on each person's machine, ever, since the big rewrite of the format?"
VISITED = 13  # days, of which the first ten or so are closed

THEME: dict[str, Any] = {"question": "Which theme is active?", "unit": "month", "late": 10}
DARK: dict[str, Any] = {"question": "Is it dark?", "boolean": True, "unit": "user", "late": 10}
ARMS = {"segments.arm": ["A", "B"]}


def days(first: str, end: str) -> dict[str, date]:
    return {"from": date.fromisoformat(first), "until": date.fromisoformat(end)}


def monthly(question: str, **domain: Any) -> dict[str, Any]:
    """Return a definition that was asked by the month from October on."""
    terms = {"epsilon": 2, "unit": "month", "late": 10} | days("2026-10-01", "2027-04-01")
    return {"question": question} | terms | domain


def definitions(collections: dict[str, dict[str, Any]]) -> str:
    lines = ['app = "acme-editor"']
    for name, definition in collections.items():
        lines.append(f"[{name}]")
        for key, value in definition.items():
            lines.append(f"{key} = {value if isinstance(value, date) else json.dumps(value)}")
    return "\n".join(lines)


FIRST = {
    "theme": THEME | {"values": ["light", "dark"], "epsilon": 1} | days("2026-06-01", "2027-06-01")
}
COLLECTIONS: dict[str, dict[str, Any]] = {
    "theme": THEME
    | {"values": ["light", "dark", "system"], "epsilon": 2, "owner": "Editor team"}
    | {"purpose": "Which theme to polish first"}
    | ARMS
    | days("2026-07-01", "2027-07-01"),
    "opened": {"question": "Was the command palette opened?", "boolean": True, "epsilon": 0.5}
    | {"unit": "day", "linkage": "collection", "answers": 20, "late": 5}
    | days("2026-11-01", "2027-01-01"),
    "word": monthly("Which word is looked up first?", values_file="word.txt", epsilon=4),
    "country": monthly("Where is the keyboard layout from?", values_file="country.txt", epsilon=3),
    "minutes": {"question": "How long was the longest session?", "range": [0, 240]}
    | {"measure": "mean", "measured_in": "minutes", "epsilon": 1, "unit": "week", "late": 10}
    | days("2026-11-02", "2027-02-01"),
    "size": monthly(
        "How large is the largest document, in pages?", range=[0, 1000], measure="distribution"
    ),
    "latency": monthly(
        "How long did it take to start, in milliseconds?", range=[0, 1000], measure="ranges"
    )
    | ARMS,
    "help": monthly(
        "Which help was read?", values=["menu", "search", "none of both"], presence="hidden"
    ),
    "plan": monthly("Which plan has which theme?", values=["light", "dark"])
    | {"cross.plan": ["free", "paid"]},
    "dark": DARK | {"epsilon": 1, "twin": "dark_curated"} | days("2026-09-01", "2026-11-01"),
    "dark_curated": DARK
    | {"model": "central", "adjacency": "substitute", "budget": 1}
    | days("2026-09-01", "2026-11-01"),
    "visits": {"question": "How many pages were visited?", "range": [0, 9], "unit": "day"}
    | {"model": "central", "budget": 1, "late": 2}
    | days("2026-11-20", "2026-12-20"),
    "quiet": {"question": "Is anybody there?", "boolean": True, "epsilon": 1, "unit": "month"}
    | days("2026-11-01", "2027-02-01"),
    "later": {"question": LONG, "values": ["yes", "no", "perhaps"], "epsilon": 1, "unit": "month"}
    | days("2027-01-01", "2028-01-01"),
}
LISTS = {
    "word": "\n".join(f"word-{place:04}" for place in range(WORDS)),
    "country": "\n".join(f"A country with rather a long name, {n:02}" for n in range(COUNTRIES)),
}


def stock(made: Deployment) -> None:
    made.push(definitions(FIRST))
    made.clocks.now = BEGAN - timedelta(days=30)
    counted(send(made, "theme", [700, 500], seed=1))
    made.push(definitions(COLLECTIONS), **LISTS)
    for month in MONTHS:
        made.clocks.now = BEGAN + timedelta(days=31 * month)
        _answer_theme(made, month)
    made.clocks.now = datetime(2026, 10, 20, tzinfo=UTC)
    _answer_october(made)
    for day in range(VISITED):
        made.clocks.now = datetime(2026, 11, 20, 12, tzinfo=UTC) + timedelta(days=day)
        counted(send(made, "visits", [20, 30, 25, 15, 10, 6, 3, 2, 1, 1], period=day, seed=day))
    made.clocks.now = NOW
    _answer_november(made)
    _lose(made)


def _answer_theme(made: Deployment, month: int) -> None:
    more = 100 * month
    for segment, counts in enumerate(([900, 1400 + more, 300], [1200, 1000 + more, 350])):
        counted(
            send(made, "theme", counts, period=month, segment=segment, seed=10 * month + segment)
        )


def _answer_october(made: Deployment) -> None:
    counted(send(made, "dark", [3000, 1000], seed=51))
    counted(send(made, "dark_curated", [3000, 1000], seed=52))
    counted(send(made, "word", _words(), seed=53))
    counted(send(made, "country", [60 * (COUNTRIES - n) for n in range(COUNTRIES)], seed=54))
    counted(send(made, "help", [500, 900, 300, 2000], seed=55))
    counted(send(made, "plan", [900, 1500, 400, 700], seed=56))


def _answer_november(made: Deployment) -> None:
    numbers = np.random.default_rng(60).beta(2, 5, 6000)
    for day in range(27, 33):
        counted(send(made, "opened", [90, 210], period=day, seed=day))
    for week in range(3, 5):
        counted(send_numbers(made, "minutes", numbers[:2500] / (week - 2), period=week, seed=week))
    counted(send_numbers(made, "size", numbers, period=1, seed=62))
    counted(send_numbers(made, "latency", numbers, period=1, seed=63))
    counted(send_numbers(made, "latency", numbers / 2, period=1, segment=1, seed=64))
    counted(send(made, "word", _words(), period=1, seed=65))


def _words() -> list[int]:
    counts = [1] * WORDS
    counts[:6] = [2500, 1800, 1200, 900, 600, 300]
    return counts


def _lose(made: Deployment) -> None:
    series = made.series("theme")
    for bucket in (1, 1, 2, 3):
        reply = made.send(Batch(losses=Losses(series.fingerprint, aged=bucket)))

        assert reply.status == 200
    report = made.report("theme")

    assert made.verdicts(report) == [Verdict.COUNTED]
    assert made.verdicts(report) == [Verdict.DUPLICATE]
    notes = {ServiceCounter(VERDICT, series.fingerprint, 3, Verdict.STALE): 42}
    made.aggregator.store.commit([], notes)
