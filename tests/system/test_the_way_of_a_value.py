"""The whole way, piece by piece: value, randomizer, batch, POST, store, estimate.

Of one question, and of a wrong epsilon; test_demo.py has every kind of question, and whole clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from veilcount_aggregator.queries.estimate_schema import SeriesResult
from veilcount_analysis import estimate
from veilcount_analysis.estimation import ShareEstimates
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection, parse_collections
from veilcount_shared.report import Report
from veilcount_shared.schedule import SECRET_BYTES, derive_pseudonym, draw_slot, period_at
from veilcount_shared.verdict import Verdict

from ..aggregator.queries.simulated_reports import estimate as estimated
from ..aggregator.web.api.deployment_fixtures import Deployment, deployment
from ..client.device_fixtures import definitions_text

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
FILE = definitions_text(autosave={"unit": "month", "until": "2027-12-01"})
DEVICES, BATCH = 16_000, 500
LEVEL = 1 - 1e-6  # the coins are seeded, so a pass stays a pass


def reports(collection: Collection, values: Sequence[object]) -> Iterator[Report]:
    """Yield what a device each sends of these values, in the running period."""
    randomness = SeededRandomSource(1)
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


def test_shares_are_near_the_truth_and_a_wrong_distribution_is_rejected(tmp_path: Path) -> None:
    """The same reports, debiased as if epsilon were 30 % higher, miss the truth."""
    collection, claimed = (
        parse_collections(text, lambda _: [])["autosave"]
        for text in (FILE, FILE.replace("epsilon = 1", "epsilon = 1.3"))
    )
    with deployment(tmp_path, FILE, now=NOW) as deployed:
        sent = list(reports(collection, [True] * DEVICES))
        for first in range(0, DEVICES, BATCH):
            assert set(deployed.verdicts(*sent[first : first + BATCH])) == {Verdict.COUNTED}
        store, series = deployed.aggregator.store, deployed.series("autosave")
        counters = store.counters(series, list(store.report_counts(series)))
    right, wrong = (estimate(each, counters, LEVEL) for each in (collection, claimed))

    assert isinstance(right, ShareEstimates)
    assert isinstance(wrong, ShareEstimates)
    assert right.n == DEVICES
    assert right.low[1] <= 1 <= right.high[1]
    assert right.low[1] > 0.9
    assert wrong.high[1] < 1


USER = {"unit": "user", "until": "2027-12-01"}
OTHERS = definitions_text(
    tag={"values": "open", "epsilon": 4, **USER},
    work={
        "features": {"age": [0, 100], "hours": [0, 60]}, "measure": "moments", "epsilon": 8, **USER
    },
)  # fmt: skip


def test_strings_and_several_numbers_take_the_same_way(tmp_path: Path) -> None:
    """By the device's own code: a string that nobody listed is found, numbers are correlated."""
    tags = ["todo", " todo "] * 600 + ["draft"] * 800
    work = [{"age": age, "hours": age / 2} for age in range(10, 90)] * 50
    with deployment(tmp_path, OTHERS, now=NOW) as deployed:
        held: dict[str, Sequence[object]] = {"tag": tags, "work": work}
        for name, values in held.items():
            sent = list(reports(deployed.series(name).collection, values))
            for first in range(0, len(sent), BATCH):
                assert set(deployed.verdicts(*sent[first : first + BATCH])) == {Verdict.COUNTED}
        named = queried(deployed, "tag", candidates=["todo", "draft", "never"], level="0.999999")
        numbers = queried(deployed, "work", level="0.999999")
    found = {str(row.of): row.interval for row in named.ranges[0].figures}
    figures = {(row.kind, row.of): row.interval for row in numbers.ranges[0].figures}
    low, _ = figures["correlation", "age, hours"]

    assert list(found) == ["todo", "draft"]
    assert found["todo"][0] < 0.6 < found["todo"][1]
    assert low > 0.5


def queried(deployed: Deployment, name: str, **params: str | list[str]) -> SeriesResult:
    (series,) = estimated(deployed, name, **params).series
    return series
