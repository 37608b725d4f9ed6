"""The query endpoints: access, refusals, and media types."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module

import pytest

from veilcount_aggregator.records.api_keys import Role

from ...queries.simulated_reports import FILE, LISTS, WORDS, counted, send
from .deployment_fixtures import CENTRAL, Deployment, Response, deployment

ESTIMATE = "/v1/collections/theme/estimate"


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    now = datetime(2026, 11, 5, tzinfo=UTC)
    with deployment(tmp_path_factory.mktemp("answered"), now=now) as made:
        made.push(FILE, **LISTS)
        made.push(CENTRAL)
        counted(send(made, "theme", [100, 200, 100], period=1))
        counted(send(made, "theme", [200, 100, 100], period=1, segment=2))
        yield made


def ask(deployed: Deployment, path: str, role: Role = Role.ANALYST, accept: str = "") -> Response:
    headers = {"HTTP_ACCEPT": accept} if accept else {}
    return deployed.ask("GET", path, key=deployed.key(role), environ=headers)


def test_the_other_methods_are_as_they_should_be(answered: Deployment) -> None:
    """HEAD says what GET would, without a body; the rest names what is allowed."""
    key = answered.key(Role.ANALYST)
    got, head = (answered.ask(method, ESTIMATE, key=key) for method in ("GET", "HEAD"))

    assert (head.status, head.body) == (200, b"")
    assert head.headers["Content-Length"] == str(len(got.body))
    for method in ("PUT", "OPTIONS"):
        reply = answered.ask(method, ESTIMATE, key=key)
        assert (reply.status, reply.problem) == (405, "wrong-method")
        assert {"GET", "HEAD"} <= set(reply.headers["Allow"].split(", "))


@pytest.mark.parametrize(
    ("path", "place", "detail"),
    [
        (f"{ESTIMATE}?by=year", "by", 'by = "year": give one of day, week, month, all'),
        (f"{ESTIMATE}?start=", "start", "give a value, or leave the parameter out"),
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


def test_an_admin_sees_how_many_spent_how_much(answered: Deployment) -> None:
    path, roles = "/v1/collections/theme/budget", (Role.ANALYST, Role.ADMIN)
    analyst, admin = (ask(answered, path, role).json["series"][0] for role in roles)

    assert analyst["budget"]["spent"]["bars"] == []
    assert admin["budget"]["spent"]["bars"] == [
        {"least": 1, "most": 1, "epsilon": "2", "pseudonyms": 800}
    ]
    assert analyst["budget"]["spent"]["mean"] == admin["budget"]["spent"]["mean"] == "2"


# -- types -----------------------------------------------------------------------------------------


JSON, CSV, PARQUET = "application/json", "text/csv", "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"
BUDGET = "/v1/collections/theme/budget"
COMPARED = "/v1/collections/theme/compare?a=arm:A&b=arm:B"


@pytest.mark.parametrize(
    ("path", "accept", "kind"),
    [
        (ESTIMATE, "", JSON),
        (ESTIMATE, "text/html, */*;q=0.1", JSON),
        (ESTIMATE, "text/csv;q=0.5, application/json", JSON),
        (ESTIMATE, CSV, CSV),
        (ESTIMATE, ARROW, ARROW),
        (ESTIMATE, PARQUET, PARQUET),
        (COMPARED, "*/*", JSON),
        (COMPARED, CSV, CSV),
        (ESTIMATE, "text/html", None),
        (BUDGET, CSV, None),
    ],
)
def test_the_type_is_the_one_that_is_preferred(
    answered: Deployment, path: str, accept: str, kind: str | None
) -> None:
    """Where there is none, those that there are are named."""
    reply = ask(answered, path, accept=accept)

    if kind is None:
        assert (reply.status, reply.problem) == (406, "not-acceptable")
        assert JSON in reply.json["detail"]
    else:
        assert (reply.status, reply.headers["Vary"]) == (200, "Accept")
        assert reply.headers["Content-Type"].partition(";")[0] == kind


def test_a_table_has_all_values_by_default(
    answered: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON states its page; a table cannot, and is refused where not all fit."""
    path = "/v1/collections/word/estimate"

    def rows(query: str) -> int:
        return len(ask(answered, f"{path}{query}", accept=CSV).body.splitlines()) - 1

    assert [rows(query) for query in ("", "?page=2", "?size=3", "?top=5")] == [WORDS, 100, 3, 5]
    assert len(ask(answered, path).json["series"][0]["ranges"][0]["figures"]) == 100
    monkeypatch.setattr(import_module("veilcount_aggregator.queries.estimate"), "MOST_ROWS", 300)
    refused = ask(answered, path, accept=CSV)
    assert (refused.status, refused.json["place"]) == (400, "size")
    assert "700 values, at most 300 in a table: give size and page" in refused.json["detail"]
