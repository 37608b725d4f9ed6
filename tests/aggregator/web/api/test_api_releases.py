"""The endpoints of a trusted curator, from a request to a stored release."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from veilcount_aggregator.queries import releases
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.clock_confirmation import confirm_day
from veilcount_aggregator.store.retention.clock_guard import SETTLING_SECONDS
from veilcount_aggregator.web.api import schemas

from ...curator_fixtures import TEXT, fill
from .deployment_fixtures import FILE, Deployment, Response, deployment

OVER = datetime(2027, 1, 1, tzinfo=UTC)
TRUTH = (30, 20, 10, 0)
ENDPOINT = "/v1/collections/age/releases"
THIRD = {"from": "2026-12-03", "to": "2026-12-03"}


@pytest.fixture
def curated(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment with sixty answers on the third day, long ago."""
    with deployment(tmp_path, FILE, TEXT) as made:
        fill(made.aggregator.store, made.series("age"), TRUTH, 2)
        made.clocks.now = OVER
        yield made


@pytest.fixture
def analyst(curated: Deployment) -> str:
    return curated.key(Role.ANALYST)


def ask(curated: Deployment, key: str, raw: str = "", **wanted: Any) -> Response:
    body = raw.encode() or json.dumps(THIRD | wanted).encode()
    return curated.ask("POST", ENDPOINT, body, key=key)


def fits(reply: Response, kind: type[Struct]) -> bool:
    """Check that a response has the type that the OpenAPI document states."""
    return isinstance(msgspec.json.decode(reply.body, type=kind), kind)


# -- asking ----------------------------------------------------------------------------------------


def test_a_release_says_what_it_is_of_what_it_costs_and_how_far_it_is_off(
    curated: Deployment, analyst: str
) -> None:
    """And no exact count. A dry run states the cost and the noise alone, and costs nothing."""
    dry = ask(curated, analyst, query="histogram", epsilon="0.5", dry_run=True)
    reply = ask(curated, analyst, query="histogram", epsilon="0.5")
    free: dict[str, object] = {"dry_run": True, "charged": False, "figures": [], "spent": "0"}
    expected = THIRD | {
        "collection": "age",
        "query": "histogram",
        "epsilon": "0.5",
        "n": None,
        "requested": "0.5",
        "spent": "0.5",
        "remaining": "0.5",
        "adjacency": "add-remove",
        "charged": True,
        "day": "2027-01-01",
    }

    assert expected.items() <= reply.json.items()
    assert [figure["value"] for figure in reply.json["figures"]] == [0, 1, 2, 3]
    assert [part["sensitivity"] for part in reply.json["noise"]] == [1]
    assert [each["share"] for each in reply.json["quantiles"]] == [0.05, 0.25, 0.5, 0.75, 0.95]
    assert (
        free | {"day": None, "remaining": "1", "noise": reply.json["noise"]}
    ).items() <= dry.json.items()
    assert fits(dry, releases.ReleaseResponse)
    assert fits(reply, releases.ReleaseResponse)


def test_nothing_is_released_by_a_clock_in_doubt(curated: Deployment, analyst: str) -> None:
    """By a wrong day a period that takes reports would be over; its budget would be spent."""
    curated.aggregator.look_at_clock()
    curated.clocks.now += timedelta(days=40)
    curated.aggregator.look_at_clock()
    jumped = ask(curated, analyst, query="histogram", epsilon="0.5")
    confirm_day(curated.aggregator.store, curated.clocks.now - timedelta(days=40), "test")
    curated.clocks.passed += SETTLING_SECONDS
    curated.clocks.now += timedelta(seconds=SETTLING_SECONDS)
    curated.aggregator.look_at_clock()
    unconfirmed = ask(curated, analyst, query="histogram", epsilon="0.5")
    confirm_day(curated.aggregator.store, curated.clocks.now, "test")
    curated.aggregator.look_at_clock()

    assert [(each.status, each.problem) for each in (jumped, unconfirmed)] == [(503, "clock")] * 2
    assert ask(curated, analyst, query="histogram", epsilon="0.5").json["charged"]


def test_a_number_is_read_exactly_as_it_is_written(curated: Deployment, analyst: str) -> None:
    """0.1 is a tenth, and the same question as "0.1"; what no float holds is held too."""
    days = json.dumps(THIRD)[1:]
    one, two, three = (
        ask(curated, analyst, f'{{"query": "count", "epsilon": {epsilon}, {days}')
        for epsilon in ("0.1", '"0.1"', "0.10000000000000000001")
    )

    assert (one.json["charged"], two.json["charged"]) == (True, False)
    assert one.json["figures"] == two.json["figures"]
    assert (three.status, three.json["place"]) == (400, "epsilon")
    assert "six decimals" in three.json["detail"]


def test_a_redefined_series_is_queried_by_its_fingerprint(
    curated: Deployment, analyst: str
) -> None:
    old = curated.series("age").fingerprint
    curated.push(TEXT.replace("[0, 3]", "[0, 5]"))
    newest, older = (
        ask(curated, analyst, query="histogram", epsilon="0.5", **which).json
        for which in ({}, {"series": old})
    )
    unknown = ask(curated, analyst, query="histogram", epsilon="0.5", series="0" * 64)
    listed = curated.ask("GET", ENDPOINT, key=analyst).json["series"]

    assert (len(newest["figures"]), len(older["figures"])) == (6, 4)
    assert older["fingerprint"] == old != newest["fingerprint"]
    assert unknown.json["place"] == "series"
    assert [each["fingerprint"] for each in listed] == [newest["fingerprint"], old]
    assert [len(each["releases"]) for each in listed] == [1, 1]


# -- what is refused -------------------------------------------------------------------------------


def test_what_no_budget_pays_for_and_an_open_period_are_refused_with_what_helps(
    curated: Deployment, analyst: str
) -> None:
    """In fields, exactly, what is left; the day from which on a period may be asked for."""
    ask(curated, analyst, query="count", epsilon="0.7")
    unpaid = ask(curated, analyst, query="sum", epsilon="0.300001")
    left = {"requested": "0.300001", "spent": "0.7", "remaining": "0.3"}
    curated.clocks.now = datetime(2026, 12, 4, tzinfo=UTC)
    early = ask(curated, analyst, query="sum", epsilon="0.3")

    assert (unpaid.status, unpaid.problem) == (409, "insufficient-budget")
    assert left.items() <= unpaid.json.items()
    assert fits(unpaid, schemas.ProblemDocument)
    assert (early.status, early.problem) == (409, "open-period")
    assert "open until 2026-12-05" in early.json["detail"]


def test_a_server_without_a_journal_releases_nothing_and_says_so(
    curated: Deployment, analyst: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curated.aggregator.curator.filter, "journal", None)
    refused = ask(curated, analyst, query="count", epsilon="0.5")

    assert (refused.status, refused.problem) == (501, "journal-missing")
    assert "--journal FILE" in refused.json["detail"]


HUGE = ("1e999999999", '"1e999999999"', "1e-999999999")  # a gigabyte of digits


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('{"query": "mode", "epsilon": 1}', "query"),
        ('{"query": {"count": [9]}, "epsilon": 1}', "query.count"),
        ('{"query": "count", "epsilon": 2}', "epsilon"),
        *((f'{{"query": "count", "epsilon": {each}}}', "epsilon") for each in ('"NaN"', *HUGE)),
        ('{"query": "count", "epsilon": 1, "from": "2025-12-03"}', "from"),
        ('{"query": "count", "epsilon": 1, "to": "2026-02-30"}', "body"),
        ('{"query": {"count": []}, "epsilon": 1}', "body"),
        ('{"query": {"count": [1.5]}, "epsilon": 1}', "body"),
        ('{"query": "count", "epsilon": 1, "by": "day"}', "body"),
        ('{"query": "count", "epsilon": true}', "body"),
        ('{"query": "count"}', "epsilon"),
        ('{"query": "count", "rho": "0.01"}', "rho"),
    ],
)
def test_a_bad_request_is_refused_with_its_place(
    curated: Deployment, analyst: str, body: str, place: str
) -> None:
    refused = ask(curated, analyst, body)

    assert (refused.status, refused.problem, refused.json["place"]) == (400, "bad-field", place)
    assert fits(refused, schemas.ProblemDocument)


def test_a_collection_without_a_curator_has_no_releases(curated: Deployment, analyst: str) -> None:
    """A local one has an estimate; an unknown one has nothing."""
    body = json.dumps({"query": "count", "epsilon": 1}).encode()
    for method in ("GET", "POST"):
        local, unknown = (
            curated.ask(method, f"/v1/collections/{name}/releases", body, key=analyst)
            for name in ("theme", "nothing")
        )

        assert (local.problem, unknown.problem) == ("bad-field", "not-found")
        assert "read its estimate" in local.json["detail"]


# -- what was released -----------------------------------------------------------------------------


def test_all_releases_are_listed_with_what_each_period_has_left(
    curated: Deployment, analyst: str
) -> None:
    """Word for word what was answered; the audit log names the key that asked, not what came."""
    first = ask(curated, analyst, query="histogram", epsilon="0.25").json
    ask(curated, analyst, query="sum", epsilon="0.5", to="2026-12-04")
    reply = curated.ask("GET", ENDPOINT, key=analyst)
    (series,) = reply.json["series"]
    entries = curated.ask("GET", "/v1/audit", key=curated.key(Role.ADMIN)).json["entries"]
    acts = [entry for entry in entries if entry["action"] == "release"]

    assert fits(reply, schemas.CollectionReleases)
    assert [each["query"] for each in series["releases"]] == ["histogram", "sum"]
    assert series["releases"][0].items() <= first.items()
    assert [each["spent"] for each in series["periods"][:5]] == ["0", "0", "0.75", "0.5", "0"]
    assert [each["remaining"] for each in series["periods"][2:4]] == ["0.25", "0.5"]
    assert (series["periods"][2]["from"], series["periods"][2]["to"]) == tuple(THIRD.values())
    assert (reply.json["locked"], series["budget"]) == (False, "1")
    assert [act["target"] for act in acts] == ["age", "age"]
    assert acts[0]["actor"] in str(curated.aggregator.store.records("key"))
