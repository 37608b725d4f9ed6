"""`veilcount release`: dry run, request and journal, at a real server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from veilcount_aggregator.auth.api_keys import Role, create_key
from veilcount_aggregator.store import Store

from .conftest import Type
from .server_fixtures import serving
from .store_fixtures import filled_in_secret

MONTH = ("--from", "2026-01-01", "--to", "2026-01-31")
REQUEST = ("--query", "histogram", "--epsilon", "0.5", *MONTH)


def analyst(store: Store) -> str:
    return create_key(store, Role.ANALYST, "test", datetime.now(UTC))[1]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    folder = tmp_path_factory.mktemp("past")
    url, key = filled_in_secret(folder, analyst)
    with serving(url) as address:
        yield "--url", address, "--key", key


def test_from_dry_run_to_journal(typed: Type, place: tuple[str, ...]) -> None:
    dry = typed("release", "crashed", *REQUEST, "--dry-run", *place)
    first, again = (typed("release", "crashed", *REQUEST, *place, "--json").json for _ in "ab")
    table = typed("release", "crashed", *REQUEST, *place)
    journal = typed("release", "crashed", *place)
    kept = typed("release", "crashed", *place, "--json").json["series"][0]

    assert dry.code == 0
    assert "would cost epsilon 0.5 of each period" in dry.out
    assert "half width" in dry.out
    assert again["charged"] is False
    assert first["figures"] == again["figures"]
    assert all(each["low"] <= each["figure"] <= each["high"] for each in first["figures"])
    assert (first["spent"], first["remaining"]) == ("0.5", "0.5")
    assert "free, paid before" in table.out
    assert "0.5 is spent and 0.5 remains" in table.out
    assert first["figures"] in [each["figures"] for each in kept["releases"]]
    assert '"histogram"' in journal.out


def test_a_budget_that_does_not_pay_is_1_and_says_all_three(
    typed: Type, place: tuple[str, ...]
) -> None:
    typed("release", "crashed", *REQUEST, *place)
    refused = typed("release", "crashed", "--query", "count", "--epsilon", "0.75", *MONTH, *place)

    assert refused.code == 1
    assert "0.75 is requested" in refused.err
    assert "0.5 left" in refused.err
    assert len(refused.err.splitlines()) == 1


def test_a_condition_on_values_may_be_written_in_json(typed: Type, place: tuple[str, ...]) -> None:
    """Of a month in which nobody answered: noise alone, beyond 40 with chance e^-40."""
    february = ("--from", "2026-02-01", "--to", "2026-02-28")
    request = ("--query", '{"count": [true]}', "--epsilon", "1", *february)
    counted = typed("release", "crashed", *request, *place, "--json")

    assert counted.code == 0
    assert counted.json["query"] == {"count": [True]}
    assert abs(counted.json["figures"][0]["figure"]) < 40
