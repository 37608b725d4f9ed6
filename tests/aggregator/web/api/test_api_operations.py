"""For whoever runs it: health, metrics, the document, and problems of every kind."""

from __future__ import annotations

import re
import threading
from collections import Counter
from unittest.mock import Mock

import pytest
from openapi_spec_validator import validate

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.queries import EstimateQuery
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.store import DurabilityState, StoreHealth, store_probe
from veilcount_aggregator.store.store_probe import StoreProbe
from veilcount_aggregator.web.api import health, problems
from veilcount_aggregator.web.api.collection_metrics import is_tested
from veilcount_aggregator.web.api.routes import ENDPOINTS
from veilcount_analysis.query_params import params
from veilcount_analysis.series.series import Series
from veilcount_shared.oblivious_http.key_config import KEY_PROBLEM
from veilcount_shared.report import Batch
from veilcount_shared.wire import BINARY_TYPE

from ....properties.definition_harness import parse_definition
from .deployment_fixtures import Deployment, open_worker

# -- health ----------------------------------------------------------------------------------------


def test_a_worker_is_alive_whatever_its_store_does_and_ready_while_it_takes_reports(
    deployed: Deployment,
) -> None:
    """It says whether an acknowledgement outlives a power cut."""
    ready = deployed.ask("GET", "/readyz")
    deployed.aggregator.store.set_read_only(on=True)
    read_only = deployed.ask("GET", "/readyz")

    assert (ready.status, ready.json["ready"], ready.json["durable"]) == (200, True, "no")
    assert ready.json["why"]
    assert (read_only.status, read_only.json["ready"]) == (503, False)
    assert "read-only" in read_only.json["why"]
    assert deployed.ask("GET", "/healthz").json == {"status": "ok"}
    assert deployed.aggregator.service_counters.take(now=True) == {}  # a probe writes nothing


def test_a_store_that_cannot_be_used_is_not_ready() -> None:
    """Its words, which may hold an address, are not for everyone."""
    store = Mock(health=Mock(side_effect=StoreUnavailable("redis://secret@host")))
    text = health.readiness(StoreProbe(store))

    assert not text.ready
    assert text.why == "the store cannot be used: it cannot be reached; the log says why"


def test_a_store_that_hangs_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are threads piled up: those who ask share one. Once it answers, so do we."""
    monkeypatch.setattr(store_probe, "SECONDS", 0.2)
    released = threading.Event()

    def hang() -> StoreHealth:
        released.wait(60)
        return StoreHealth("hanging", DurabilityState.YES, "", read_only=False)

    store = Mock(health=Mock(side_effect=hang))
    probe = StoreProbe(store)
    readiness = [health.readiness(probe) for _ in range(5)]
    released.set()

    assert not any(each.ready for each in readiness)
    assert store.health.call_count == 1
    assert probe.health().durable is DurabilityState.YES


# -- metrics ---------------------------------------------------------------------------------------

LINE = re.compile(r'veilcount_(\w+)\{((?:[a-z_]+="[^"\n]*",?)*)\} (\d+(?:\.\d+)?(?:e-?\d+)?)')


def figures(deployed: Deployment, key: str) -> dict[tuple[str, str], float]:
    """Return the metrics by name and labels; every line must be one."""
    answer = deployed.ask("GET", "/metrics", key=key)
    assert answer.status == 200
    found = {}
    for line in answer.body.decode().splitlines():
        if not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match, line
            found[match[1], match[2]] = float(match[3])
    return found


TESTED = {
    'values = ["a", "b"]': True,
    "boolean = true": True,
    'boolean = true\ncross = {plan = ["free", "paid"]}': True,
    'range = [0, 10]\nmeasure = "mean"': False,
    'values = "open"': False,
    'boolean = true\nmodel = "central"': False,
}


@pytest.mark.parametrize("keys", TESTED)
def test_listed_values_alone_have_a_poisoning_metric(keys: str) -> None:
    """Whatever the mechanism: a new one of theirs has it too."""
    assert is_tested(Series(parse_definition(keys))) is TESTED[keys]


def test_metrics_are_right_over_all_workers(deployed: Deployment) -> None:
    """What one counted and its tick wrote, another shows."""
    key = deployed.key(Role.ANALYST)
    report = deployed.report("theme")
    with open_worker(deployed.aggregator.settings.store) as other:
        deployed.verdicts(report, deployed.report("theme"))
        other.verdicts(report)
        other.send(Batch((report,), test=True))
        other.aggregator.flush()
    deployed.aggregator.flush()
    result = figures(deployed, key)
    buckets = [each for (name, _), each in result.items() if name == "request_seconds_bucket"]
    expected = {
        ("verdicts_total", 'collection="theme",verdict="counted"'): 2,
        ("verdicts_total", 'collection="theme",verdict="duplicate"'): 1,
        ("requests_total", 'endpoint="reports",status="2xx"'): 2,
        ("requests_total", 'endpoint="reports",status="4xx"'): 1,
        ("refused_total", 'problem="bad-field"'): 1,
        ("groups_total", 'up_to="1"'): 3,
        ("request_seconds_count", 'endpoint="reports"'): 3,
        ("request_seconds_bucket", 'endpoint="reports",le="+Inf"'): 3,
    }

    assert expected.items() <= result.items()
    assert buckets == sorted(buckets)
    assert buckets[-1] == 3


def test_what_anyone_can_make_up_is_no_label(deployed: Deployment) -> None:
    key = deployed.key(Role.ANALYST)
    for place in range(5):
        deployed.verdicts(deployed.report("theme", fingerprint=f"{place:064x}"))
        deployed.ask("GET", f"/{place}")
    deployed.aggregator.flush()
    result = figures(deployed, key)

    assert result["verdicts_total", 'collection="(unknown)",verdict="unknown_collection"'] == 5
    assert len([labels for metric, labels in result if metric == "verdicts_total"]) == 3 * 9 + 1
    assert result["requests_total", 'endpoint="other",status="4xx"'] == 5
    assert not any("/" in labels for _, labels in result)


# -- the document ----------------------------------------------------------------------------------


def test_the_document_has_exactly_the_served_endpoints(deployed: Deployment) -> None:
    """What Flask routes for programs, and those in front of it; pages are for people."""
    routed = {
        (method, re.sub(r"<(\w+)>", r"{\1}", rule.rule))
        for rule in deployed.app.url_map.iter_rules()
        if not rule.endpoint.startswith("pages.")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }

    assert {(route.method, route.path) for route in ENDPOINTS} == routed | {
        ("POST", "/v1/reports"),
        ("POST", "/v1/ohttp"),
    }


def test_the_document_is_valid_and_of_the_types_that_validate(deployed: Deployment) -> None:
    """OpenAPI 3.1, by its own validator; limits, patterns and parameters included."""
    described = deployed.ask("GET", "/openapi.json").json
    reports, rows = (
        described["paths"][f"/v1/{path}"]["post"] for path in ("reports", "rows/close")
    )
    named = rows["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    row = described["components"]["schemas"][named.rpartition("/")[2]]
    estimate = described["paths"]["/v1/collections/{name}/estimate"]["get"]

    assert described["openapi"].startswith("3.1")
    validate(described)
    assert reports["requestBody"]["content"].keys() == {BINARY_TYPE}
    assert "415" in reports["responses"]
    assert row["properties"]["fingerprint"]["pattern"] == "^[0-9a-f]{64}$"
    assert row["additionalProperties"] is False
    assert [each["name"] for each in estimate["parameters"]] == [
        "name", *(param.name for param in params(EstimateQuery)),
    ]  # fmt: skip
    assert estimate["responses"]["200"]["content"].keys() == {
        "application/json",
        "text/csv",
        "application/vnd.apache.arrow.stream",
        "application/vnd.apache.parquet",
    }


def test_the_page_is_offline_strict_and_linked(deployed: Deployment) -> None:
    """No address elsewhere; its style and scripts are files of this server."""
    answer = deployed.ask("GET", "/docs")
    page = answer.body.decode()
    policy = answer.headers["Content-Security-Policy"]
    names = Counter(re.findall(r'id="([^"]+)"', page))

    addresses = page.replace(KEY_PROBLEM, "")  # the name of a type, and no link
    assert not re.findall(r"https?://|//[a-z]", addresses)
    assert set(re.findall(r'src="(/[a-z]+)', page)) == {"/assets"}
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert all(route.path in page for route in ENDPOINTS)
    assert all(kind.uri in page for kind in problems.PROBLEM_KINDS.values())
    assert set(names.values()) == {1}
    assert set(re.findall(r'href="#([^"]+)"', page)) <= names.keys()


# -- problems --------------------------------------------------------------------------------------


def test_every_error_is_a_problem_document(deployed: Deployment) -> None:
    """Of the closed list. What is too long is refused unread, by its announced length."""
    for method, path, status, name, allowed in (
        ("GET", "/nothing", 404, "not-found", None),
        ("GET", "/docs/", 404, "not-found", None),
        ("GET", "/v1//keys", 404, "not-found", None),
        ("POST", "/v1/reports/", 404, "not-found", None),
        ("GET", "/v1/reports", 405, "wrong-method", "POST"),
        ("PUT", "/v1/keys", 405, "wrong-method", "GET, HEAD, POST"),
        ("OPTIONS", "/healthz", 405, "wrong-method", "GET, HEAD"),
        ("\xff", "/healthz", 405, "wrong-method", "GET, HEAD"),
    ):
        answer = deployed.ask(method, path)
        allow = answer.headers.get("Allow")

        assert (answer.status, answer.problem) == (status, name)
        assert (allow and ", ".join(sorted(allow.split(", ")))) == allowed
    key, long = deployed.key(Role.ADMIN), {"CONTENT_LENGTH": str(1 << 30)}
    assert deployed.ask("POST", "/v1/collections", key=key, environ=long).problem == "too-large"
