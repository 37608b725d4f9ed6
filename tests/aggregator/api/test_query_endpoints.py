"""The query endpoints: access, refusals, and media types."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from openapi_spec_validator import validate

from tests.aggregator.api.deployment_fixtures import CENTRAL, Deployment, Response, deployment
from tests.aggregator.queries.simulated_reports import FILE, LISTS, counted, send
from veilcount_aggregator import queries
from veilcount_aggregator.api.openapi import document
from veilcount_aggregator.api.routes import ENDPOINTS
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.queries.query_params import params

NAMED = ("estimate", "compare?a=arm:A&b=arm:B", "budget", "contrast")
PATHS = (*(f"/v1/collections/theme/{each}" for each in NAMED), "/v1/plan?devices=1000&epsilon=1")
ESTIMATE = "/v1/collections/theme/estimate"


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment with reports of one question."""
    now = datetime(2026, 11, 5, tzinfo=UTC)
    with deployment(tmp_path_factory.mktemp("answered"), now=now) as made:
        made.push(FILE, **LISTS)
        made.push(CENTRAL)
        counted(send(made, "theme", [100, 200, 100], period=1))
        counted(send(made, "theme", [200, 100, 100], period=1, segment=2))
        yield made


def ask(deployed: Deployment, path: str, role: Role = Role.ANALYST, accept: str = "") -> Response:
    """Ask with a key."""
    headers = {"HTTP_ACCEPT": accept} if accept else {}
    return deployed.ask("GET", path, key=deployed.key(role), environ=headers)


@pytest.mark.parametrize("path", PATHS)
def test_analysts_and_admins_are_answered_and_nobody_else(answered: Deployment, path: str) -> None:
    replies = {role: ask(answered, path, role) for role in Role}
    without = answered.ask("GET", path)

    assert replies[Role.ANALYST].status == replies[Role.ADMIN].status == 200
    assert (replies[Role.DEVICE].status, replies[Role.DEVICE].problem) == (403, "wrong-role")
    assert (without.status, without.problem) == (401, "no-key")


@pytest.mark.parametrize("path", PATHS)
def test_the_other_methods_are_as_they_should_be(answered: Deployment, path: str) -> None:
    """HEAD says what GET would, without a body; the rest names what is allowed."""
    key = answered.key(Role.ANALYST)
    got, head = (answered.ask(method, path, key=key) for method in ("GET", "HEAD"))
    refused = {method: answered.ask(method, path, key=key) for method in ("POST", "OPTIONS")}

    assert head.status == 200
    assert head.body == b""
    assert head.headers["Content-Length"] == str(len(got.body))
    assert got.headers["Cache-Control"] == "no-store"
    for reply in refused.values():
        assert (reply.status, reply.problem) == (405, "wrong-method")
        assert {"GET", "HEAD"} <= set(reply.headers["Allow"].split(", "))


def test_the_endpoint_states_the_type_of_its_response(answered: Deployment) -> None:
    """Nothing is added or lost between them."""
    aggregator = answered.aggregator
    snapshot = queries.Snapshot(aggregator.known().catalog, aggregator.store, aggregator.today())
    expected = queries.estimate(snapshot, "theme", queries.EstimateQuery.parse({"by": ["month"]}))

    assert ask(answered, f"{ESTIMATE}?by=month").json == queries.plain(expected)
    assert ask(answered, ESTIMATE).json["series"][0]["time_ranges"][0]["n"] == 800


@pytest.mark.parametrize(
    ("path", "place", "detail"),
    [
        (f"{ESTIMATE}?by=year", "by", 'by = "year": give one of day, week, month, all'),
        (f"{ESTIMATE}?level=95", "level", "give a number between 0 and 1, such as 0.95"),
        (f"{ESTIMATE}?segmet=arm:A", "segmet", "did you mean segment?"),
        ("/v1/collections/theme/compare?a=arm:A", "b", "give a segment (arm:A), a range"),
        ("/v1/collections/theme/budget?n=-1", "n", "give a whole number"),
        ("/v1/plan?devices=10", "plan", "give exactly two of devices, epsilon and error"),
        ("/v1/collections/visits/estimate", "collection", "/v1/collections/visits/releases"),
    ],
)
def test_a_refusal_names_the_field_the_value_and_the_fix(
    answered: Deployment, path: str, place: str, detail: str
) -> None:
    reply = ask(answered, path)

    assert (reply.status, reply.problem) == (400, "bad-field")
    assert reply.json["place"] == place
    assert detail in reply.json["detail"]


@pytest.mark.parametrize("what", ["estimate", "compare?a=x:y&b=x:z", "budget", "contrast"])
def test_a_similar_name_is_suggested(answered: Deployment, what: str) -> None:
    reply = ask(answered, f"/v1/collections/thme/{what}")

    assert (reply.status, reply.problem) == (404, "not-found")
    assert "did you mean theme" in reply.json["detail"]


def test_an_admin_sees_how_many_spent_how_much(answered: Deployment) -> None:
    path, roles = "/v1/collections/theme/budget", (Role.ANALYST, Role.ADMIN)
    analyst, admin = (ask(answered, path, role).json["series"][0] for role in roles)

    assert analyst["budget"]["spent"]["bars"] == []
    assert admin["budget"]["spent"]["bars"] == [
        {"least": 1, "most": 1, "epsilon": "2", "pseudonyms": 800}
    ]
    assert analyst["budget"]["spent"]["mean"] == admin["budget"]["spent"]["mean"] == "2"


def test_no_endpoint_discloses_a_curators_n(tmp_path: Path) -> None:
    """What each says is the same before and after the reports."""
    endpoints = ("estimate", "budget", "contrast", "compare?a=2026-12-03..&b=..2026-12-02")
    before, after = list[Response](), list[Response]()
    with deployment(tmp_path, CENTRAL) as made:
        for result in (before, after):
            result += [
                ask(made, f"/v1/collections/visits/{endpoint}", Role.ADMIN)
                for endpoint in endpoints
            ]
            made.verdicts(*(made.report("visits") for _ in range(37)))

    assert [reply.status for reply in before] == [400, 200, 200, 400]
    assert [reply.body for reply in before] == [reply.body for reply in after]


def test_a_read_only_store_is_read_still(tmp_path: Path) -> None:
    """Its reports belong elsewhere; what it holds can be looked at."""
    with deployment(tmp_path, FILE.replace('values_file = "word.txt"', "values = [1, 2]")) as made:
        key = made.key(Role.ANALYST)
        made.aggregator.store.set_read_only(on=True)

        assert made.ask("GET", ESTIMATE, key=key).status == 200


# -- types -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/html, */*;q=0.1", "application/json"),
        ("text/csv", "text/csv"),
        ("text/csv;q=0.5, application/json", "application/json"),
        ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.stream"),
        ("application/vnd.apache.parquet", "application/vnd.apache.parquet"),
    ],
)
@pytest.mark.parametrize("what", ["estimate", "compare?a=arm:A&b=arm:B"])
def test_the_type_is_the_one_that_is_preferred(
    answered: Deployment, what: str, accept: str, kind: str
) -> None:
    reply = ask(answered, f"/v1/collections/theme/{what}", accept=accept)

    assert reply.status == 200
    assert reply.headers["Content-Type"].partition(";")[0] == kind
    assert reply.headers["Vary"] == "Accept"


@pytest.mark.parametrize(
    ("path", "accept"), [(ESTIMATE, "text/html"), ("/v1/collections/theme/budget", "text/csv")]
)
def test_an_unavailable_media_type_is_refused(answered: Deployment, path: str, accept: str) -> None:
    reply = ask(answered, path, accept=accept)

    assert (reply.status, reply.problem) == (406, "not-acceptable")
    assert "application/json" in reply.json["detail"]


def test_tables_say_what_json_says(answered: Deployment) -> None:
    rows: list[dict[str, Any]] = ask(answered, ESTIMATE).json["series"][0]["time_ranges"][0][
        "values"
    ]
    read = csv.DictReader(io.StringIO(ask(answered, ESTIMATE, accept="text/csv").body.decode()))
    arrow = ask(answered, ESTIMATE, accept="application/vnd.apache.arrow.stream").body
    figures = [(row["value"], row["frequency"], row["low"], row["high"]) for row in rows]

    assert [
        (row["value"], float(row["frequency"]), float(row["low"]), float(row["high"]))
        for row in read
    ] == figures
    assert [
        (row["value"], row["frequency"], row["low"], row["high"])
        for row in pa.ipc.open_stream(arrow).read_all().to_pylist()
    ] == figures


def test_the_document_has_all_endpoints_with_their_parameters() -> None:
    described = document("1", ENDPOINTS)
    validate(described)
    requested = described["paths"]["/v1/collections/{name}/estimate"]["get"]
    names = [each["name"] for each in requested["parameters"]]

    assert names == ["name", *(param.name for param in params(queries.EstimateQuery))]
    assert set(requested["responses"]["200"]["content"]) == {
        "application/json",
        "text/csv",
        "application/vnd.apache.arrow.stream",
        "application/vnd.apache.parquet",
    }
    for endpoint in ("compare", "budget", "contrast"):
        assert f"/v1/collections/{{name}}/{endpoint}" in described["paths"]
    assert "/v1/plan" in described["paths"]
