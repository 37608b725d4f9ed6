"""For whoever runs it: health, metrics, the document, and problems of every kind."""

from __future__ import annotations

import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from tests.aggregator.api.deployment_fixtures import FILE, Deployment, deployment, open_worker
from veilcount_aggregator.api import health, problems, store_probe
from veilcount_aggregator.api.routes import ENDPOINTS
from veilcount_aggregator.api.store_probe import StoreProbe
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.errors import StoreUnavailable, StoreUnfit
from veilcount_aggregator.store import DurabilityState, StoreHealth
from veilcount_shared.report import Batch

# -- health ----------------------------------------------------------------------------------------


def test_a_worker_that_answers_is_alive(deployed: Deployment) -> None:
    """Whatever the store does."""
    deployed.aggregator.store.set_read_only(on=True)

    assert deployed.ask("GET", "/healthz").json == {"status": "ok"}


def test_a_worker_is_ready_while_its_store_is(tmp_path: Path) -> None:
    """And says whether an acknowledgement outlives a power cut."""
    with deployment(tmp_path, FILE) as relaxed:
        answer = relaxed.ask("GET", "/readyz")

    assert (answer.status, answer.json["ready"], answer.json["durable"]) == (200, True, "no")
    assert answer.json["why"]


def test_a_read_only_store_is_not_ready(deployed: Deployment) -> None:
    """Its reports belong elsewhere."""
    deployed.aggregator.store.set_read_only(on=True)
    answer = deployed.ask("GET", "/readyz")

    assert (answer.status, answer.json["ready"]) == (503, False)
    assert "read-only" in answer.json["why"]


class Hanging:
    """A store that blocks until released, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.released = threading.Event()
        self.requested = 0
        self._error = error

    def health(self) -> StoreHealth:
        self.requested += 1
        if self._error is not None:
            raise self._error
        self.released.wait(20)
        return StoreHealth("hanging", DurabilityState.YES, "", read_only=False)


@pytest.mark.parametrize("error", [StoreUnavailable("redis://secret@host"), StoreUnfit("/path")])
def test_a_store_that_cannot_be_used_is_not_ready(error: Exception) -> None:
    """Its words, which may hold an address, are not for everyone."""
    text = health.readiness(StoreProbe(Hanging(error)))  # type: ignore[arg-type] # asked for health alone

    assert not text.ready
    assert text.why == f"the store cannot be used: {type(error).__name__}"


def test_a_store_that_hangs_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are threads piled up: those who ask share one. Once it answers, so do we."""
    monkeypatch.setattr(store_probe, "SECONDS", 0.2)
    store = Hanging()
    probe = StoreProbe(store)  # type: ignore[arg-type] # asked for health alone
    readiness = [health.readiness(probe) for _ in range(5)]
    store.released.set()

    assert not any(each.ready for each in readiness)
    assert store.requested == 1
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


def test_metrics_are_right_over_all_workers(deployed: Deployment) -> None:
    """What one counted, another tells; what is still in memory is written first."""
    key = deployed.key(Role.ANALYST)
    report = deployed.report("theme")
    with open_worker(deployed.aggregator.settings.store) as other:
        deployed.verdicts(report, deployed.report("theme"))
        other.verdicts(report)
        other.send(Batch((report,), test=True))
        other.aggregator.flush()
    result = figures(deployed, key)

    assert result["verdicts_total", 'collection="theme",verdict="counted"'] == 2
    assert result["verdicts_total", 'collection="theme",verdict="duplicate"'] == 1
    assert result["requests_total", 'endpoint="reports",status="2xx"'] == 2
    assert result["requests_total", 'endpoint="reports",status="4xx"'] == 1
    assert result["refused_total", 'problem="bad-field"'] == 1
    assert result["groups_total", 'up_to="1"'] == 2
    assert result["request_seconds_count", 'endpoint="reports"'] == 3
    assert result["request_seconds_bucket", 'endpoint="reports",le="+Inf"'] == 3


def test_unknown_fingerprints_share_one_label(deployed: Deployment) -> None:
    """Or anyone could make as many as he likes."""
    key = deployed.key(Role.ANALYST)
    for place in range(5):
        deployed.verdicts(deployed.report("theme", fingerprint=f"{place:064x}"))
    result = figures(deployed, key)
    name = 'collection="(unknown)",verdict="unknown_collection"'

    assert result["verdicts_total", name] == 5
    assert len([labels for metric, labels in result if metric == "verdicts_total"]) == 3 * 9 + 1


def test_a_path_is_no_label(deployed: Deployment) -> None:
    """A request for an unknown path is counted as such."""
    key = deployed.key(Role.ANALYST)
    for place in range(5):
        deployed.ask("GET", f"/{place}")
    result = figures(deployed, key)

    assert result["requests_total", 'endpoint="other",status="4xx"'] == 5
    assert not any("/" in labels for _, labels in result)


def test_buckets_hold_all_below_them(tmp_path: Path) -> None:
    """As Prometheus wants them: ascending, the last holds all."""
    with deployment(tmp_path, FILE) as deployed:
        key = deployed.key(Role.ANALYST)
        deployed.verdicts(deployed.report("theme"))
        result = figures(deployed, key)
        held = [
            number for (metric, _), number in result.items() if metric == "request_seconds_bucket"
        ]

        assert held == sorted(held)
        assert held[-1] == result["request_seconds_count", 'endpoint="reports"']


def test_probes_write_nothing(deployed: Deployment) -> None:
    """A probe every second leaves no note for the store."""
    for path in ("/healthz", "/readyz"):
        deployed.ask("GET", path)

    assert deployed.aggregator.service_counters.take(now=True) == {}


# -- the document ----------------------------------------------------------------------------------


def test_the_document_is_valid(deployed: Deployment) -> None:
    """OpenAPI 3.1, by its own validator."""
    described = deployed.ask("GET", "/openapi.json").json

    assert described["openapi"].startswith("3.1")
    validate(described)


def test_the_document_has_exactly_the_served_endpoints(deployed: Deployment) -> None:
    """What Flask routes for programs, and the one in front of it; pages are for people."""
    routed = {
        (method, re.sub(r"<(\w+)>", r"{\1}", rule.rule))
        for rule in deployed.app.url_map.iter_rules()
        if not rule.endpoint.startswith("pages.")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }

    assert {(route.method, route.path) for route in ENDPOINTS} == routed | {("POST", "/v1/reports")}


def test_the_document_is_of_the_types_that_validate(deployed: Deployment) -> None:
    """Limits and patterns included."""
    schemas = deployed.ask("GET", "/openapi.json").json["components"]["schemas"]
    reports = schemas["JsonBatch"]["properties"]["reports"]
    report = schemas[reports["items"]["$ref"].rpartition("/")[2]]["properties"]

    assert reports["maxItems"] == 1000
    assert report["slot"]["exclusiveMaximum"] == 1024
    assert report["fingerprint"]["pattern"] == "^[0-9a-f]{64}$"
    assert schemas["JsonBatch"]["additionalProperties"] is False


def test_the_page_is_offline_and_strict(deployed: Deployment) -> None:
    """No script, no address elsewhere; its one style is named by its hash."""
    answer = deployed.ask("GET", "/docs")
    page = answer.body.decode()
    policy = answer.headers["Content-Security-Policy"]

    assert "<script" not in page
    assert not re.findall(r"https?://|//[a-z]", page)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert all(route.path in page for route in ENDPOINTS)
    assert all(kind.urn in page for kind in problems.PROBLEM_KINDS.values())


def test_the_pages_links_lead_somewhere(deployed: Deployment) -> None:
    """Within it, and to the document."""
    page = deployed.ask("GET", "/docs").body.decode()
    names = Counter(re.findall(r'id="([^"]+)"', page))

    assert set(names.values()) == {1}
    assert set(re.findall(r'href="#([^"]+)"', page)) <= names.keys()


# -- problems --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status", "name"),
    [
        ("GET", "/nothing", 404, "not-found"),
        ("GET", "/docs/", 404, "not-found"),
        ("GET", "/v1//keys", 404, "not-found"),
        ("GET", "/v1/keys/x/y", 404, "not-found"),
        ("PUT", "/v1/keys", 405, "wrong-method"),
        ("OPTIONS", "/v1/keys", 405, "wrong-method"),
        ("POST", "/healthz", 405, "wrong-method"),
        ("\xff", "/healthz", 405, "wrong-method"),
        ("GET", "/v1/collections", 401, "no-key"),
    ],
)
def test_every_error_is_a_problem_document(
    deployed: Deployment, method: str, path: str, status: int, name: str
) -> None:
    """Of the closed list."""
    answer = deployed.ask(method, path)

    assert (answer.status, answer.problem) == (status, name)
    assert ("Allow" in answer.headers) == (status == 405)


def test_a_push_that_is_too_long_is_refused_unread(deployed: Deployment) -> None:
    """By its announced length."""
    key = deployed.key(Role.ADMIN)
    answer = deployed.ask(
        "POST", "/v1/collections", key=key, environ={"CONTENT_LENGTH": str(1 << 30)}
    )

    assert (answer.status, answer.problem) == (413, "too-large")


def test_a_fault_below_flask_reveals_nothing(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A problem, and a line in the log."""
    key = deployed.key(Role.ADMIN)

    def fail(*_: Any) -> None:
        raise RuntimeError("MARKED-WORDS")

    monkeypatch.setattr(type(deployed.aggregator.store), "records", fail)
    answer = deployed.ask("GET", "/v1/audit", key=key)

    assert (answer.status, answer.problem) == (500, "failed")
    assert b"MARKED" not in answer.body


def test_no_kind_that_makes_a_device_drop_is_of_our_own_faults() -> None:
    """A device drops on four statuses; faults of ours have others."""
    ours = ("failed", "unavailable", "busy", "incomplete", "too-many", "no-key", "wrong-role")

    assert not {problems.PROBLEM_KINDS[name].status.value for name in ours} & {400, 413, 415, 422}


def test_every_answer_has_the_headers_that_keep_it_here(deployed: Deployment) -> None:
    """Not cached, not guessed at, not framed, not referred to."""
    for route in ("/docs", "/openapi.json", "/healthz", "/nothing"):
        headers = deployed.ask("GET", route).headers

        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "Server" not in headers
        assert "Set-Cookie" not in headers
