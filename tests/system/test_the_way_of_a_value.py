"""The whole way, piece by piece: value, randomizer, packed batch, POST, store, estimate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.aggregator.api.deployment_fixtures import Deployment, Response, deployment
from veilcount_aggregator import estimate
from veilcount_aggregator.estimation import MeanEstimate, ShareEstimates
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection, parse_collections
from veilcount_shared.report import Batch, Report
from veilcount_shared.schedule import SECRET_BYTES, derive_pseudonym, draw_slot, period_at
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, JSON_TYPE, decode_verdicts, encode_json

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


def send(aggregator: Deployment, batch: Batch) -> tuple[Verdict, ...]:
    """Post a packed batch; return its verdicts."""
    reply = aggregator.send(batch)

    assert reply.status == 200, reply.body
    return decode_verdicts(reply.body, len(batch.reports))


def counters(aggregator: Deployment, collection: Collection) -> NDArray[np.int64]:
    """Return the sum of a collection's tallies, over its periods and segments."""
    store, series = aggregator.aggregator.store, aggregator.series(collection.name)
    return store.counters(series, list(store.report_counts(series)))


def send_all(aggregator: Deployment, collection: Collection, values: Sequence[object]) -> None:
    """Send one report a value, five hundred to a batch, each counted."""
    sent = list(reports(collection, values))
    for first in range(0, len(sent), 500):
        verdicts = send(aggregator, Batch(tuple(sent[first : first + 500])))

        assert set(verdicts) == {Verdict.COUNTED}


def frequencies(aggregator: Deployment, collection: Collection) -> ShareEstimates:
    """Return the estimate of a collection of shares."""
    estimated = estimate(collection, counters(aggregator, collection), LEVEL)
    assert isinstance(estimated, ShareEstimates)
    return estimated


@pytest.mark.parametrize("name", ["autosave", "theme", "plugin"])
def test_shares_come_back_near_the_truth(name: str, aggregator: Deployment) -> None:
    """Values sent by devices come out as shares whose intervals hold the truth."""
    collection = COLLECTIONS[name]
    labels = collection.domain.labels  # type: ignore[union-attr] # none of these is a Number
    values = [labels[place % 7 % len(labels)] for place in range(DEVICES)]
    send_all(aggregator, collection, values)

    estimated = frequencies(aggregator, collection)

    assert estimated.n == DEVICES
    for place, label in enumerate(labels):
        truth = values.count(label) / DEVICES
        assert estimated.low[place] <= truth <= estimated.high[place], label
    assert estimated.frequency[0] > estimated.frequency[-1]


def test_a_mean_comes_back_near_the_truth(aggregator: Deployment) -> None:
    """Numbers sent by devices come out as a mean whose interval holds the truth."""
    collection = COLLECTIONS["session_minutes"]
    values: list[object] = [place % 61 for place in range(DEVICES)]
    send_all(aggregator, collection, values)

    estimated = estimate(collection, counters(aggregator, collection), LEVEL)

    assert isinstance(estimated, MeanEstimate)
    assert estimated.low < 30 < estimated.high
    assert estimated.high - estimated.low < 60


def test_a_wrong_distribution_is_rejected(aggregator: Deployment) -> None:
    """The same reports, debiased as if epsilon were 30 % higher, miss the truth."""
    collection = COLLECTIONS["autosave"]
    send_all(aggregator, collection, [True] * 20 * DEVICES)
    claimed = parse_collections(FILE.replace("epsilon = 1", "epsilon = 1.3"), lambda _: ["a", "b"])

    wrong = estimate(claimed["autosave"], counters(aggregator, collection), LEVEL)

    assert isinstance(wrong, ShareEstimates)
    assert (
        frequencies(aggregator, collection).low[1]
        <= 1
        <= frequencies(aggregator, collection).high[1]
    )
    assert wrong.high[1] < 1


def test_a_retry_counts_once(aggregator: Deployment) -> None:
    """The same bytes again are a duplicate, which is success to the sender."""
    batch = Batch(tuple(reports(COLLECTIONS["theme"], ["dark", "light"])))
    send(aggregator, batch)

    again = send(aggregator, batch)

    assert again == (Verdict.DUPLICATE, Verdict.DUPLICATE)
    assert frequencies(aggregator, COLLECTIONS["theme"]).n == 2


def test_json_is_counted_like_packed(aggregator: Deployment) -> None:
    """A client in another language sends JSON."""
    batch = Batch(tuple(reports(COLLECTIONS["plugin"], ["plugin 1"])))

    reply = aggregator.ask("POST", "/v1/reports", encode_json(batch), kind=JSON_TYPE)

    assert decode_verdicts(reply.body, 1) == (Verdict.COUNTED,)
    assert frequencies(aggregator, COLLECTIONS["plugin"]).n == 1


def test_a_bad_report_leaves_the_good_ones_counted(aggregator: Deployment) -> None:
    """Unknown, early and malformed reports get their verdict; the rest of the batch counts."""
    good, early, malformed = reports(COLLECTIONS["theme"], ["dark"] * 3)
    batch = Batch(
        (
            replace(good, fingerprint="0" * 64),
            replace(early, period=3),
            good,
            replace(malformed, message=b"\xff"),
        )
    )

    verdicts = send(aggregator, batch)

    assert verdicts == (
        Verdict.UNKNOWN_COLLECTION,
        Verdict.EARLY,
        Verdict.COUNTED,
        Verdict.MALFORMED,
    )
    assert frequencies(aggregator, COLLECTIONS["theme"]).n == 1


def test_a_late_retry_of_a_counted_report_is_a_duplicate(aggregator: Deployment) -> None:
    """The slot is looked up before the age is judged; a late report that is new is stale."""
    first, second = reports(COLLECTIONS["theme"], ["dark", "light"])
    send(aggregator, Batch((first,)))
    aggregator.clocks.now += timedelta(days=30)
    just = send(aggregator, Batch((first, next(reports(COLLECTIONS["theme"], ["dark"], 2)))))
    aggregator.clocks.now += timedelta(days=1)

    assert just == (Verdict.DUPLICATE, Verdict.COUNTED)
    assert send(aggregator, Batch((first, second))) == (Verdict.DUPLICATE, Verdict.STALE)


def test_once_its_period_was_dropped_a_report_is_stale_for_ever(aggregator: Deployment) -> None:
    """Whether it was counted or not: dropping re-opens no slot."""
    first, second = reports(COLLECTIONS["theme"], ["dark", "light"])
    send(aggregator, Batch((first,)))
    aggregator.clocks.now += timedelta(days=40)
    dropped = aggregator.drop_ended_epochs()
    late = send(aggregator, Batch((first, second)))
    aggregator.clocks.now = NOW

    assert dropped
    assert late == (Verdict.STALE, Verdict.STALE)
    assert send(aggregator, Batch((first, second))) == (Verdict.STALE, Verdict.STALE)


@pytest.mark.parametrize(
    ("body", "kind", "status", "place"),
    [
        (b"{}", JSON_TYPE, 400, "version"),
        (b"VC", BINARY_TYPE, 400, "head"),
        (b"x", "text/plain", 415, "Content-Type"),
    ],
)
def test_a_malformed_body_is_refused_whole(
    body: bytes, kind: str, status: int, place: str, aggregator: Deployment
) -> None:
    """What is no batch gets a problem document that names the place."""
    reply: Response = aggregator.ask("POST", "/v1/reports", body, kind=kind)

    assert reply.status == status
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert reply.json["place"] == place


def test_test_batches_are_refused(aggregator: Deployment) -> None:
    """A production aggregator counts no test reports."""
    batch = Batch(tuple(reports(COLLECTIONS["theme"], ["dark"])), test=True)

    assert aggregator.send(batch).status == 400
    assert counters(aggregator, COLLECTIONS["theme"]).sum() == 0
