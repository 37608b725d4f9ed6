"""Hostile requests, many: never a fault of ours, never a wrong count.

Two thousand mutated bodies in the suite and a million with `--full`; and whatever schemathesis
makes of the document.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.web.api.routes import ENDPOINTS, Endpoint
from veilcount_shared.report import Batch, Report
from veilcount_shared.shuffling.batch_record import RECORD_TYPE
from veilcount_shared.shuffling.part import PART_TYPE
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, encode_binary

from ...intake.test_decode import mutated
from .deployment_fixtures import FILE, Deployment, deployment

NAMES = ("theme", "opened", "alone")
for media_type in (BINARY_TYPE, PART_TYPE, RECORD_TYPE):
    schemathesis.openapi.media_type(media_type, st.binary(max_size=200))


def batch(deployed: Deployment, random_: random.Random) -> Batch:
    reports: list[Report] = []
    for _ in range(random_.randint(1, 4)):
        if reports and random_.random() < 0.2:
            reports.append(random_.choice(reports))
        else:
            reports.append(deployed.report(random_.choice(NAMES), slot=random_.choice([0, 0, 1])))
    return Batch(tuple(reports))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("seed", "bodies"),
    [(1, 2_000), *(pytest.param(seed, 100_000, marks=pytest.mark.full) for seed in range(10, 20))],
)
def test_mutated_bodies_never_count_wrongly(deployed: Deployment, seed: int, bodies: int) -> None:
    """No fault is ours, and the counters are what the verdicts said."""
    random_ = random.Random(seed)
    statuses, verdicts = Counter[int](), Counter[str]()
    for _ in range(bodies):
        raw = encode_binary(batch(deployed, random_))
        if random_.random() < 0.9:
            raw = mutated(random_, raw)
        answer = deployed.ask("POST", "/v1/reports", raw, kind=BINARY_TYPE)
        statuses[answer.status] += 1
        if answer.status == 200:
            verdicts.update(answer.json["verdicts"])

    assert statuses.keys() == {200, 400}
    assert min(statuses.values()) > bodies // 100
    assert sum(map(deployed.counted, NAMES)) == verdicts[Verdict.COUNTED]
    store = deployed.aggregator.store
    for series in map(deployed.series, NAMES):
        counts = store.report_counts(series)
        weight = getattr(series.collection.mechanism, "w", 1)
        assert store.counters(series, list(counts)).sum() == sum(counts.values()) * weight


# -- what the document says ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployment(tmp_path_factory.mktemp("fuzzed"), FILE) as made:
        yield made


@pytest.fixture(scope="module")
def schema(fuzzed: Deployment) -> Any:
    return schemathesis.openapi.from_wsgi("/openapi.json", fuzzed.app)


def ask_as_described(deployed: Deployment, schema: Any, endpoint: Endpoint, examples: int) -> None:
    """Send an endpoint what the document allows, and much that it does not, as an admin.

    What comes back must be as the document says: statuses, types, schemas; other methods are
    refused, and keys asked for.
    """
    operation = schema[endpoint.path][endpoint.method.lower()]

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy() | operation.as_strategy(GenerationMode.NEGATIVE))
    def check(case: Any) -> None:
        deployed.clocks.passed += 1  # or guesses would soon be answered with 429
        deployed.aggregator.known()  # as the background thread has each second: keys do not age
        guarded = endpoint.role not in {None, Role.DEVICE}
        headers = {"Authorization": f"Bearer {key()}"} if guarded else {}
        # A definition may be refused for what no schema says, and a body for its second key.
        case.call_and_validate(headers=headers, excluded_checks=[positive_data_acceptance])

    secret = ""

    def key() -> str:
        """Return an admin's key that is good: a new one when the last was taken back."""
        nonlocal secret
        if deployed.aggregator.known().api_keys.find(secret) is None:
            role = endpoint.role if endpoint.role is Role.SHUFFLER else Role.ADMIN
            secret = deployed.key(role)
        return secret

    check()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("examples", [6, pytest.param(1_000, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "endpoint", ENDPOINTS, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}"
)
def test_every_endpoint_conforms_to_the_document(
    fuzzed: Deployment, schema: Any, endpoint: Endpoint, examples: int
) -> None:
    ask_as_described(fuzzed, schema, endpoint, examples)


def test_a_document_that_lies_would_be_noticed(deployed: Deployment) -> None:
    """A type that is not the answer's, and a key that is not asked for."""
    schema = schemathesis.openapi.from_wsgi("/openapi.json", deployed.app)
    alive = next(endpoint for endpoint in ENDPOINTS if endpoint.path == "/healthz")
    schema.raw_schema["components"]["schemas"]["Liveness"]["properties"]["status"]["type"] = (
        "integer"
    )
    schema.raw_schema["paths"]["/openapi.json"]["get"]["security"] = [{"key": []}]
    lying = next(endpoint for endpoint in ENDPOINTS if endpoint.path == "/openapi.json")

    for endpoint in (alive, replace(lying, role=Role.ADMIN)):
        with pytest.raises(BaseExceptionGroup):
            ask_as_described(deployed, schema, endpoint, 12)
