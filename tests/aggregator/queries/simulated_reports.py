"""Simulated devices that report to a real store, by the exact distribution of their messages."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from veilcount_aggregator import queries
from veilcount_aggregator.intake.decode import DecodedBody
from veilcount_aggregator.intake.decode.columns import ReportColumns
from veilcount_aggregator.queries.estimate_schema import RangeResult, SeriesResult
from veilcount_analysis.simulation import simulate_messages
from veilcount_shared.domain import GRID
from veilcount_shared.limits import PSEUDONYM_BYTES
from veilcount_shared.verdict import Verdict

from ..web.api.deployment_fixtures import Deployment

OCTOBER, WINTER = ("2026-10-01", "2026-11-01"), ("2026-11-01", "2027-01-01")
THEMES = 'values = ["light", "dark", "system"]\nlate = 10'
ARMS, LEVELS = 'segments = {arm = ["A", "B"]}', 'segments = {arm = ["A", "B"], level = [1, 2]}'
CROSSED = 'values = ["light", "dark"]\ncross = {plan = ["free", "paid"]}'
NUMBER = "range = [0, 100]\nmeasure = "
CURATED = 'model = "central"\nadjacency = "substitute"\nboolean = true'
#: name -> unit, from, until, epsilon or budget, domain and what goes with it
COLLECTIONS: dict[str, tuple[str, str, str, str, str]] = {
    "theme": ("month", "2026-10-01", "2027-10-01", "epsilon = 2", f"{THEMES}\n{LEVELS}"),
    "opened": ("day", *WINTER, "epsilon = 1", "boolean = true"),
    "once": ("user", *WINTER, "epsilon = 1", "values = [1, 2]"),
    "quiet": ("month", *WINTER, "epsilon = 2", 'presence = "hidden"\nvalues = ["menu", "search"]'),
    "plan": ("month", *WINTER, "epsilon = 2", CROSSED),
    "minutes": ("week", "2026-11-02", WINTER[1], "epsilon = 2", f'{NUMBER}"mean"'),
    "spread": ("month", *WINTER, "epsilon = 2", f'{NUMBER}"distribution"'),
    "ranges": ("month", *WINTER, "epsilon = 2", f'{NUMBER}"ranges"\n{ARMS}'),
    "word": ("month", *WINTER, "epsilon = 4", 'values_file = "word.txt"'),
    "local": ("user", *OCTOBER, "epsilon = 1", 'twin = "curated"\nboolean = true'),
    "curated": ("user", *OCTOBER, "budget = 1", CURATED),
}
FILE = 'app = "acme"\n' + "".join(
    f'[{name}]\nquestion = "Which {name}?"\n{domain}\n{price}\n'
    f'unit = "{unit}"\nfrom = {start}\nuntil = {until}\n'
    for name, (unit, start, until, price, domain) in COLLECTIONS.items()
)
WORDS = 700
LISTS = {"word": "\n".join(f"w{place}" for place in range(WORDS))}
Params = dict[str, str | list[str]]
NOVEMBER: Params = {"from_": "2026-11-01", "to": "2026-11-30"}


def send(deployed: Deployment, name: str, held: Sequence[int], **where: int) -> list[Verdict]:
    """Send the reports of `held[i]` devices with each input i; return their verdicts."""
    return send_inputs(deployed, name, np.repeat(np.arange(len(held)), held), **where)


def send_numbers(deployed: Deployment, name: str, shares: Any, **where: int) -> list[Verdict]:
    """Send a report for each number, a place in the range from 0 to 1."""
    return send_inputs(deployed, name, np.rint(np.asarray(shares) * GRID).astype(np.int64), **where)


def send_inputs(
    deployed: Deployment,
    name: str,
    inputs: Any,
    *,
    period: int = 0,
    segment: int = 0,
    seed: int = 1,
) -> list[Verdict]:
    """Send one report of each device, drawn from the exact distribution of its message."""
    collection = deployed.series(name).collection
    rows = simulate_messages(collection, inputs, np.random.default_rng(seed))
    return send_rows(deployed, name, rows, period=period, segment=segment)


def send_rows(
    deployed: Deployment, name: str, rows: Any, *, period: int = 0, segment: int = 0
) -> list[Verdict]:
    """Send one report for each row of message bytes, each under a pseudonym of its own."""
    series, n = deployed.series(name), len(rows)
    slot = period * series.collection.per_day if series.linked else 0
    drawn = np.frombuffer(secrets.token_bytes(PSEUDONYM_BYTES * n), np.uint8)
    pseudonyms = drawn.reshape(n, PSEUDONYM_BYTES)
    periods, segments, slots = (np.full(n, each, np.int64) for each in (period, segment, slot))
    columns = ReportColumns(
        series.fingerprint, np.arange(n), pseudonyms, periods, segments, slots, rows
    )
    return deployed.aggregator.take(DecodedBody(n, (columns,)))


def counted(verdicts: list[Verdict]) -> None:
    assert set(verdicts) == {Verdict.COUNTED}


def snapshot(deployed: Deployment) -> queries.Snapshot:
    aggregator = deployed.aggregator
    aggregator.flush()
    return queries.Snapshot(aggregator.known().catalog, aggregator.store, aggregator.today())


def question(**params: str | list[str]) -> queries.EstimateQuery:
    """Return a query from its typed parameters; `from_` is `from`."""
    return queries.EstimateQuery.parse(typed(**params))


def typed(**params: str | list[str]) -> dict[str, list[str]]:
    """Return parameters as an endpoint gets them."""
    return {
        name.removesuffix("_"): [words] if isinstance(words, str) else words
        for name, words in params.items()
    }


def estimate(deployed: Deployment, name: str, **params: str | list[str]) -> queries.EstimateResult:
    return queries.estimate(snapshot(deployed), name, question(**params))


def compare(deployed: Deployment, name: str, **params: str | list[str]) -> queries.CompareResult:
    read = queries.CompareQuery.parse(typed(**params))
    return queries.compare(snapshot(deployed), name, read)


def only(answer: queries.EstimateResult) -> tuple[SeriesResult, RangeResult]:
    """Return the series and the time range of a result that has one of each."""
    (series,) = answer.series
    (time_range,) = series.ranges
    return series, time_range


def figures_of(time_range: RangeResult, kind: str = "share") -> list[Any]:
    """Return the figures of one kind, whose intervals are numbers."""
    return [figure for figure in time_range.figures if figure.kind == kind]
