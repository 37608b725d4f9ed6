"""`veilcount collections`, typed for real: into a store, and at a running server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.server import free_port
from veilcount_aggregator.catalog.definitions import load_catalog
from veilcount_aggregator.store import open_store

from .conftest import FILE, Type
from .server_fixtures import serving


@pytest.fixture(params=["store", "server"])
def place(request: pytest.FixtureRequest, typed: Type, store: str) -> Iterator[list[str]]:
    if request.param == "store":
        yield ["--store", store]
        return
    key = typed("init", "--key", "--store", store, "--json").json["key"]
    with serving(store) as url:
        yield ["--url", url, "--key", key]


def test_definitions_are_pushed_listed_and_closed(
    typed: Type, place: list[str], definitions: Path
) -> None:
    pushed = typed("collections", "push", str(definitions), *place, "--json").json
    listed = typed("collections", "list", *place, "--json").json
    closed = typed("collections", "close", "theme", *place, "--json").json
    after = typed("collections", "list", *place, "--json").json

    assert [each["name"] for each in pushed["new"]] == ["theme"]
    fingerprint = pushed["new"][0]["fingerprint"]
    assert listed == [
        {
            "name": "theme",
            "fingerprint": fingerprint,
            "question": "Which theme is active?",
            "unit": "month",
            "from": "2026-11-01",
            "until": "2027-11-01",
            "epsilon": {"event": "1", "day": "1", "user": "12", "adjacency": "substitute"},
            "closed": False,
            "series": 1,
        }
    ]
    assert closed == {"closed": [fingerprint]}
    assert after == [listed[0] | {"closed": True}]


def test_the_output_for_people_has_the_same_facts(
    typed: Type, store: str, definitions: Path
) -> None:
    place = ["--store", store]

    pushed = typed("collections", "push", str(definitions), *place)
    again = typed("collections", "push", str(definitions), *place)
    listed = typed("collections", "list", *place)
    closed = typed("collections", "close", "theme", *place)
    twice = typed("collections", "close", "theme", *place)

    assert "theme" in pushed.out
    assert "nothing new" in again.out
    assert all(word in listed.out for word in ("theme", "month", "2027-11-01", "open"))
    assert closed.out == "theme is closed\n"
    assert twice.out == "theme was closed already\n"
    assert {each.code for each in (pushed, again, listed, closed, twice)} == {0}


def test_value_lists_travel_with_the_file_that_names_them(
    typed: Type, place: list[str], tmp_path: Path
) -> None:
    (tmp_path / "plugins.txt").write_text("one\ntwo\nthree\n")
    file = tmp_path / "listed.toml"
    file.write_text(
        FILE.replace('values = ["light", "dark", "system"]', 'values_file = "plugins.txt"')
    )

    pushed = typed("collections", "push", str(file), *place)

    assert pushed.code == 0
    assert "theme" in pushed.out


def test_a_collection_that_nobody_knows_cannot_be_closed(typed: Type, place: list[str]) -> None:
    refused = typed("collections", "close", "nobody", *place)

    assert refused.code == 2
    assert "no" in refused.err
    assert refused.out == ""


def test_a_file_that_is_wrong_is_refused_before_anything_is_sent(
    typed: Type, store: str, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(FILE.replace("epsilon = 1", "epsilon = 99"))

    refused = typed("collections", "push", str(file), "--store", store)
    opened = open_store(store)
    known = load_catalog(opened).by_name
    opened.close()

    assert refused.code == 2
    assert "epsilon" in refused.err
    assert not known


def test_a_server_that_is_not_there_is_exit_code_3(typed: Type, definitions: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"

    away = typed("collections", "push", str(definitions), "--url", url, "--key", "k")

    assert away.code == 3
    assert url in away.err


def test_a_server_wants_an_admins_key(typed: Type, store: str, definitions: Path) -> None:
    with serving(store) as url:
        place = ["--url", url, "--key"]
        refused = [
            typed("collections", "push", str(definitions), *place, key)
            for key in ("", "veilcount_admin_wrong")
        ]

    assert [each.code for each in refused] == [2, 2]
    assert all("key" in each.err for each in refused)
