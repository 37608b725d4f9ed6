"""`veilcount collections`, typed for real: into a store, and at a running server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
    typed: Type, place: list[str], tmp_path: Path
) -> None:
    """Lists of values travel with the file that names them."""
    (tmp_path / "themes.txt").write_text("light\ndark\nsystem\n")
    file = tmp_path / "listed.toml"
    listed_values = 'values_file = "themes.txt"'
    file.write_text(FILE.replace('values = ["light", "dark", "system"]', listed_values))
    pushed = typed("collections", "push", str(file), *place, "--json").json
    listed = typed("collections", "list", *place, "--json").json
    closed = typed("collections", "close", "theme", *place, "--json").json
    after = typed("collections", "list", *place, "--json").json

    assert [each["name"] for each in pushed["new"]] == ["theme"]
    fingerprint = pushed["new"][0]["fingerprint"]
    assert listed == [
        {
            "name": "theme",
            "fingerprint": fingerprint,
            "app": "acme-editor",
            "question": "Which theme is active?",
            "model": "local",
            "unit": "month",
            "from": "2026-11-01",
            "until": "2027-11-01",
            "epsilon": {"event": "1", "day": "1", "user": "12", "adjacency": "substitute"},
            "closed": False,
            "series": 1,
            "reports": 0,
        }
    ]
    assert closed == {"closed": [fingerprint]}
    assert after == [listed[0] | {"closed": True}]


def test_the_output_for_people_has_the_same_facts(
    typed: Type, store: str, definitions: Path
) -> None:
    file = str(definitions)
    lines = (("push", file), ("push", file), ("list",), ("close", "theme"), ("close", "theme"))
    pushed, again, listed, closed, twice = (
        typed("collections", *words, "--store", store) for words in lines
    )

    assert "theme" in pushed.out
    assert "nothing new" in again.out
    assert all(word in listed.out for word in ("theme", "month", "2027-11-01", "open"))
    assert closed.out == "theme is closed\n"
    assert twice.out == "theme was closed already\n"
    assert {each.code for each in (pushed, again, listed, closed, twice)} == {0}


def test_definitions_whose_counters_do_not_fit_are_refused(
    typed: Type, store: str, definitions: Path
) -> None:
    push = ("collections", "push", str(definitions), "--store", store, "--max-counter-memory")
    refused, pushed = typed(*push, "1KB"), typed(*push, "10KB")

    assert (refused.code, pushed.code) == (2, 0)
    assert "theme: its counters can need 4.03 KB" in refused.err
    assert "4.03 KB" in pushed.out
