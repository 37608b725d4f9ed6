"""The whole way, piece by piece: value, randomizer, packed batch, POST, store, estimate.

With test_demo.py for whole clients; here the estimates of known answers, and of a wrong epsilon.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.aggregator.api.deployment_fixtures import Deployment, deployment
from veilcount_aggregator import estimate
from veilcount_aggregator.estimation import MeanEstimate, ShareEstimates
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection, parse_collections
from veilcount_shared.report import Report
from veilcount_shared.schedule import SECRET_BYTES, derive_pseudonym, draw_slot, period_at
from veilcount_shared.verdict import Verdict

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
FILE = """
app = "acme-editor"

[autosave]
question = "Is autosave on?"
boolean = true
epsilon = 1
unit = "month"
from = 2026-12-01
until = 2027-12-01

[theme]
question = "Which theme is active?"
values = ["light", "dark", "sepia", "contrast", "system"]
other = "another"
epsilon = 1
unit = "day"
from = 2026-12-01
until = 2027-12-01

[plugin]
question = "Which plugin was opened last?"
values_file = "plugins.txt"
epsilon = 2
unit = "day"
from = 2026-12-01
until = 2027-12-01

[session_minutes]
question = "How long was this session?"
range = [0, 240]
measure = "mean"
epsilon = 1
unit = "event"
per_day = 4
from = 2026-12-01
until = 2027-12-01
"""
PLUGINS = [f"plugin {place}" for place in range(300)]
COLLECTIONS = parse_collections(FILE, lambda _: PLUGINS)
DEVICES = 2_000
LEVEL = 1 - 1e-6  # of each figure; the coins are seeded, so a pass stays a pass


@pytest.fixture
def aggregator(tmp_path: Path) -> Iterator[Deployment]:
    """The aggregator on the third day of the campaign, on a store of its own."""
    with deployment(tmp_path, now=NOW) as deployed:
        deployed.push(FILE, plugins="\n".join(PLUGINS))
        yield deployed


def reports(collection: Collection, values: Sequence[object], seed: int = 1) -> Iterator[Report]:
    """Yield what a device each sends of these values, in the running period."""
    randomness = SeededRandomSource(seed)
    period = period_at(collection, NOW)
    assert period is not None
    for value in values:
        secret = b"".join(randomness.word().to_bytes(8, "big") for _ in range(SECRET_BYTES // 8))
        yield Report(
            fingerprint=collection.fingerprint,
            period=period,
            segment=0,
            pseudonym=derive_pseudonym(secret, collection, period, randomness),
            slot=draw_slot(secret, collection, period, 0),
            message=collection.pack(collection.randomize(value, randomness)),
        )


def counters(aggregator: Deployment, collection: Collection) -> NDArray[np.int64]:
    """Return the sum of a collection's tallies, over its periods and segments."""
    store, series = aggregator.aggregator.store, aggregator.series(collection.name)
    return store.counters(series, list(store.report_counts(series)))


def send_all(aggregator: Deployment, collection: Collection, values: Sequence[object]) -> None:
    """Send one report a value, five hundred to a batch, each counted."""
    sent = list(reports(collection, values))
    for first in range(0, len(sent), 500):
        assert set(aggregator.verdicts(*sent[first : first + 500])) == {Verdict.COUNTED}


def share_estimates(collection: Collection, counted: NDArray[np.int64]) -> ShareEstimates:
    estimated = estimate(collection, counted, LEVEL)
    assert isinstance(estimated, ShareEstimates)
    return estimated


@pytest.mark.parametrize("name", ["autosave", "theme", "plugin"])
def test_shares_come_back_near_the_truth(name: str, aggregator: Deployment) -> None:
    collection = COLLECTIONS[name]
    labels = collection.domain.labels  # type: ignore[union-attr] # none of these is a Number
    values = [labels[place % 7 % len(labels)] for place in range(DEVICES)]
    send_all(aggregator, collection, values)

    estimated = share_estimates(collection, counters(aggregator, collection))

    assert estimated.n == DEVICES
    for place, label in enumerate(labels):
        truth = values.count(label) / DEVICES
        assert estimated.low[place] <= truth <= estimated.high[place], label
    assert estimated.frequency[0] > estimated.frequency[-1]


def test_a_mean_comes_back_near_the_truth(aggregator: Deployment) -> None:
    collection = COLLECTIONS["session_minutes"]
    send_all(aggregator, collection, [place % 61 for place in range(DEVICES)])

    estimated = estimate(collection, counters(aggregator, collection), LEVEL)

    assert isinstance(estimated, MeanEstimate)
    assert estimated.low < 30 < estimated.high
    assert estimated.high - estimated.low < 60


def test_a_wrong_distribution_is_rejected(aggregator: Deployment) -> None:
    """The same reports, debiased as if epsilon were 30 % higher, miss the truth."""
    collection = COLLECTIONS["autosave"]
    send_all(aggregator, collection, [True] * 8 * DEVICES)
    claimed = parse_collections(FILE.replace("epsilon = 1", "epsilon = 1.3"), lambda _: ["a", "b"])
    counted = counters(aggregator, collection)

    right, wrong = (share_estimates(each, counted) for each in (collection, claimed["autosave"]))

    assert right.low[1] <= 1 <= right.high[1]
    assert wrong.high[1] < 1
