"""Estimates are those of the former code, in every row, head, fact and refusal, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from veilcount_aggregator.queries import EstimateQuery, EstimateResult, Snapshot, estimate, plain
from veilcount_analysis.errors import QueryError
from veilcount_analysis.mechanisms.moments import moments_handler
from veilcount_analysis.series.packed_rows import Packed, rows_from_messages, rows_from_numbers
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection
from veilcount_shared.domain import GRID

from ..web.api.deployment_fixtures import Deployment, deployment
from .conftest import AFTER, stock
from .former_estimate.estimate import estimate as former_estimate
from .simulated_reports import (
    COLLECTIONS,
    FILE,
    LISTS,
    Params,
    counted,
    question,
    send,
    send_numbers,
    send_rows,
    snapshot,
)

MONTHLY = 'unit = "month"\nfrom = 2026-11-01\nuntil = 2027-01-01'
DAILY = 'epsilon = 1\nunit = "day"\nanswers = 1\nfrom = 2026-11-05\nuntil = 2027-01-01'
MORE = {
    "listed": f'values = "open"\nepsilon = 4\n{MONTHLY}',
    "letters": f'values = "open"\ndiscover = true\nepsilon = 8\n{MONTHLY}',
    "state": 'boolean = true\nmeasure = "trend"\nchanges = 1\nepsilon = 2\n'
    'unit = "day"\nfrom = 2026-11-01\nuntil = 2027-01-01',
    "body": "features = {age = [0, 120], hours = [0, 60], size = [1, 2]}\n"
    f'measure = "moments"\nepsilon = 4\n{MONTHLY}',
    "rose": f"boolean = true\n{DAILY}",
    "absent": f'values = ["a", "b"]\npresence = "hidden"\n{DAILY}',
    "daily": f'range = [0, 100]\nmeasure = "mean"\n{DAILY}',
    "silent": f"boolean = true\n{DAILY}",
}
DEFINITIONS = FILE + "".join(
    f'[{name}]\nquestion = "Which {name}?"\n{rest}\n' for name, rest in MORE.items()
)
LEAST_FIGURES = 40  # of each collection: an oracle that compares refusals alone says nothing
NAMES = [name for name in [*COLLECTIONS, *MORE] if name != "curated"]
STRINGS = {"red": 900, "green": 700, "blue": 400, "teal": 200, "crimson": 10}
QUERIES: list[Params] = [
    {},
    {"by": "month"},
    {"by": "day"},
    {"by": "week"},
    {"by": "day", "view": "smooth"},
    {"by": "day", "view": "smooth", "among": "answered", "level": "0.8"},
    {"by": "week", "view": "smooth"},
    {"by": "day", "view": "consistent"},
    {"top": "2"},
    {"view": "consistent"},
    {"looks": "every"},
    {"looks": "every", "view": "consistent"},
    {"level": "0.8"},
    {"fakes": "0.1"},
    {"among": "answered"},
    {"among": "answered", "view": "consistent"},
    {"page": "2"},
    {"page": "2", "size": "1"},
    {"page": "3", "size": "300"},
    {"page": "9"},
    {"size": "1"},
    {"values": ["true"]},
    {"values": ["0..10", "20..30"]},
    {"values": ["30..20"]},
    {"values": ["light,dark"]},
    {"values": ['{"answer":"dark","plan":"free"}']},
    {"values": ["nothing"]},
    {"values": ["w1", "w2"]},
    {"values": ["menu"], "among": "answered"},
    {"values": ["red", "zebra"]},
    {"values": ["\n"]},
    {"group": ["warm:light,dark", "cold:system"]},
    {"group": ["plan"]},
    {"group": ["a:menu"]},
    {"group": ["a:menu"], "among": "answered"},
    {"segment": ["arm:A"]},
    {"segment": ["level:2"], "by": "month"},
    {"from_": "2026-11-03", "to": "2026-11-20"},
    {"from_": "2030-01-01"},
    {"candidates": ["red", "blue", "violet"]},
    {"candidates": ["red"], "by": "month"},
    {"discover": "true"},
    {"discover": "true", "candidates": ["red", "crimson"]},
]
#: of listed values alone: of two parameters that are refused, another one is named first
TOP_LISTS: list[Params] = [
    {"top": "2", "view": "consistent"},
    {"top": "3", "looks": "every"},
]
UNLISTED = {"minutes", "spread", "ranges", "daily", "listed", "letters", "state", "body"}
LETTERS: list[Params] = [
    {"discover": "true"},
    {"discover": "true", "candidates": ["red", "crimson"], "level": "0.8"},
    {"values": ["red", "zebra"]},
    {"candidates": ["red"]},
    {"top": "2"},
    {"view": "consistent"},
]
REGRESSIONS: list[Params] = [{"regress": "age"}, {"regress": "other"}]


@cache
def string_rows(collection: Collection) -> Packed:
    """Return reports of strings by the devices' own code."""
    source = SeededRandomSource(21)
    texts = [text for text, devices in STRINGS.items() for _ in range(devices)]
    messages = [collection.randomize(text, source) for text in texts]
    return rows_from_messages(collection, messages)


def fill(deployed: Deployment) -> None:
    """Send reports of every kind of question."""
    deployed.push(DEFINITIONS, **LISTS)
    stock(deployed)
    generator = np.random.default_rng(5)
    for name in ("listed", "letters"):
        counted(send_rows(deployed, name, string_rows(deployed.series(name).collection)))
    for day in range(5, 34):
        where = {"period": day, "seed": 100 + day}
        counted(send(deployed, "state", [300 + 5 * day, 700 - 5 * day], **where))
    for day in range(29):
        where = {"period": day, "seed": 200 + day}
        counted(send(deployed, "rose", [300 + 5 * day, 700 - 5 * day], **where))
        counted(send(deployed, "absent", [300, 500, 100 + day], **where))
        counted(send_numbers(deployed, "daily", generator.uniform(0.2, 0.6, 500), **where))
    body = deployed.series("body").collection
    handler = moments_handler(body)
    points = np.rint(generator.beta(2, 5, (30_000, 3)) * GRID).astype(np.int64)
    numbers = handler.draw_messages(handler.draw_moments(points, generator), generator)
    counted(send_rows(deployed, "body", rows_from_numbers(numbers, body.message_bytes)))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployment, Deployment]]:
    """Two stores with the same reports: a search of strings writes to its own."""
    folders = [tmp_path_factory.mktemp(name) for name in ("former", "present")]
    with deployment(folders[0], now=AFTER) as former, deployment(folders[1], now=AFTER) as present:
        for deployed in (former, present):
            fill(deployed)
        yield former, present


def response(
    function: Callable[[Snapshot, str, EstimateQuery], EstimateResult],
    deployed: Deployment,
    name: str,
    params: Params,
) -> Any:
    """Return the JSON of an estimate, or the message of its refusal."""
    try:
        return plain(function(snapshot(deployed), name, question(**params)))
    except QueryError as error:
        return str(error)


def figures(document: Any) -> int:
    """Return how many numbers a JSON document has."""
    if isinstance(document, dict | list):
        parts = document.values() if isinstance(document, dict) else document
        return sum(map(figures, parts))
    return isinstance(document, float)


def cases() -> Iterator[Any]:
    """Yield the queries of each collection; those of open strings one by one, for they are slow."""
    for name in NAMES:
        if name in {"letters", "listed"}:
            for params in LETTERS if name == "letters" else QUERIES:
                is_slow = name == "letters" and "discover" in params  # searches 20 million counters
                marks = [pytest.mark.full] * is_slow
                yield pytest.param(name, [params], 0, id=f"{name} {params}", marks=marks)
        else:
            more = REGRESSIONS * (name == "body") + TOP_LISTS * (name not in UNLISTED)
            yield pytest.param(name, [*QUERIES, *more], LEAST_FIGURES, id=name)


@pytest.mark.parametrize(("name", "queries", "least"), list(cases()))
def test_every_figure_fact_and_refusal_is_that_of_the_former_estimate(
    stores: tuple[Deployment, Deployment], name: str, queries: list[Params], least: int
) -> None:
    former, present = stores

    expected = [response(former_estimate, former, name, params) for params in queries]
    actual = [response(estimate, present, name, params) for params in queries]

    assert actual == expected
    assert figures(expected) >= least
