"""Simulated devices that report to a real store, by the exact distribution of their messages."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.aggregator.api.deployment_fixtures import Deployment
from veilcount_aggregator import queries
from veilcount_aggregator.analysis.simulation import simulate_messages
from veilcount_aggregator.ingest.decode import DecodedBody
from veilcount_aggregator.ingest.decode.columns import ReportColumns
from veilcount_aggregator.queries.estimate_schema import SeriesEstimate, TimeRangeEstimate
from veilcount_shared.domain import GRID
from veilcount_shared.report import PSEUDONYM_BYTES
from veilcount_shared.verdict import Verdict

FILE = """
app = "acme"

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
epsilon = 2
unit = "month"
late = 10
from = 2026-10-01
until = 2027-10-01
segments = {arm = ["A", "B"], level = [1, 2]}

[opened]
question = "Was it opened?"
boolean = true
epsilon = 1
unit = "day"
from = 2026-11-01
until = 2027-01-01

[once]
question = "Is it on?"
values = [1, 2]
epsilon = 1
unit = "user"
from = 2026-11-01
until = 2027-01-01

[quiet]
question = "Which help was read?"
values = ["menu", "search"]
presence = "hidden"
epsilon = 2
unit = "month"
from = 2026-11-01
until = 2027-01-01

[plan]
question = "Which plan has which theme?"
values = ["light", "dark"]
cross = {plan = ["free", "paid"]}
epsilon = 2
unit = "month"
from = 2026-11-01
until = 2027-01-01

[minutes]
question = "How long?"
range = [0, 100]
measure = "mean"
epsilon = 2
unit = "week"
from = 2026-11-02
until = 2027-01-01

[spread]
question = "How long, spread?"
range = [0, 100]
measure = "distribution"
epsilon = 2
unit = "month"
from = 2026-11-01
until = 2027-01-01

[ranges]
question = "How long, in ranges?"
range = [0, 100]
measure = "ranges"
epsilon = 2
unit = "month"
from = 2026-11-01
until = 2027-01-01
segments = {arm = ["A", "B"]}

[word]
question = "Which word?"
values_file = "word.txt"
epsilon = 4
unit = "month"
from = 2026-11-01
until = 2027-01-01

[local]
question = "Dark?"
boolean = true
epsilon = 1
unit = "user"
twin = "curated"
from = 2026-10-01
until = 2026-11-01

[curated]
question = "Dark?"
boolean = true
model = "central"
adjacency = "substitute"
budget = 1
unit = "user"
from = 2026-10-01
until = 2026-11-01
"""
WORDS = 700
LISTS = {"word": "\n".join(f"w{place}" for place in range(WORDS))}


def send(
    deployed: Deployment,
    name: str,
    held: Sequence[int],
    *,
    period: int = 0,
    segment: int = 0,
    seed: int = 1,
) -> list[Verdict]:
    """Send the reports of `held[i]` devices with each input i; return their verdicts."""
    inputs = np.repeat(np.arange(len(held)), held)
    return send_inputs(deployed, name, inputs, period=period, segment=segment, seed=seed)


def send_numbers(
    deployed: Deployment,
    name: str,
    shares: Any,
    *,
    period: int = 0,
    segment: int = 0,
    seed: int = 1,
) -> list[Verdict]:
    """Send a report for each number, a place in the range from 0 to 1."""
    inputs = np.rint(np.asarray(shares) * GRID).astype(np.int64)
    return send_inputs(deployed, name, inputs, period=period, segment=segment, seed=seed)


def send_inputs(
    deployed: Deployment, name: str, inputs: Any, *, period: int, segment: int, seed: int
) -> list[Verdict]:
    """Send one report of each device, each under a pseudonym of its own."""
    series, n = deployed.series(name), len(inputs)
    rows = simulate_messages(series.collection, inputs, np.random.default_rng(seed))
    slot = period * series.collection.per_period if series.linked else 0
    pseudonyms = np.frombuffer(secrets.token_bytes(PSEUDONYM_BYTES * n), np.uint8)

    def column(number: int) -> Any:
        return np.full(n, number, np.int64)

    columns = ReportColumns(
        series.fingerprint,
        np.arange(n),
        pseudonyms.reshape(n, PSEUDONYM_BYTES),
        column(period),
        column(segment),
        column(slot),
        rows,
    )
    return deployed.aggregator.take(DecodedBody(n, (columns,)))


def counted(verdicts: list[Verdict]) -> None:
    """All of them were."""
    assert set(verdicts) == {Verdict.COUNTED}


def snapshot(deployed: Deployment) -> queries.Snapshot:
    """What queries read."""
    aggregator = deployed.aggregator
    aggregator.flush()
    return queries.Snapshot(aggregator.known().catalog, aggregator.store, aggregator.today())


def question(**params: str | list[str]) -> queries.EstimateQuery:
    """A query from its typed parameters; `from_` is `from`."""
    return queries.EstimateQuery.parse(typed(**params))


def typed(**params: str | list[str]) -> dict[str, list[str]]:
    """Parameters as an endpoint gets them."""
    return {
        name.removesuffix("_"): [words] if isinstance(words, str) else words
        for name, words in params.items()
    }


def estimate(deployed: Deployment, name: str, **params: str | list[str]) -> queries.EstimateResult:
    """Query an estimate."""
    return queries.estimate(snapshot(deployed), name, question(**params))


def compare(deployed: Deployment, name: str, **params: str | list[str]) -> queries.CompareResult:
    """Query a comparison."""
    read = queries.CompareQuery.parse(typed(**params))
    return queries.compare(snapshot(deployed), name, read)


def only(answer: queries.EstimateResult) -> tuple[SeriesEstimate, TimeRangeEstimate]:
    """The series and the time range of a result that has one of each."""
    (series,) = answer.series
    (time_range,) = series.time_ranges
    return series, time_range
