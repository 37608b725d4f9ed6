"""`veilcount release`: dry run, request and journal, at a real server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions, load_catalog
from veilcount_aggregator.store import open_store

from ...curator_fixtures import OPEN, TEXT, fill, fill_strings
from .conftest import Type, typed_by_hand
from .server_fixtures import serving

PAST = TEXT.replace("2026-12", "2026-01")
SMOOTH = PAST.replace("[age]", "[smooth]").replace("budget = 1", "budget = 1\ndelta = 0.000001")
WORDS = OPEN.replace("2026-12", "2026-01")
DAY = ("--from", "2026-01-01", "--to", "2026-01-01")
REQUEST = ("--query", "histogram", "--epsilon", "0.5", *DAY)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """A server of a campaign that is over; its first day has a thousand answers."""
    url, now = f"sqlite:///{tmp_path_factory.mktemp('past')}/past.db", datetime.now(UTC)
    with closing(open_store(url, make=True)) as store:
        add_definitions(store, DefinitionSource(PAST), now, "test")
        add_definitions(store, DefinitionSource(SMOOTH), now, "test")
        (past,) = load_catalog(store).by_name["age"]
        fill(store, past, (400, 300, 200, 100))
        add_definitions(store, DefinitionSource(WORDS), now, "test")
        fill_strings(store, load_catalog(store).by_name["word"][0], {"otter": 600, "rare": 2})
        _, key = create_key(store, Role.ANALYST, "test", now)
    with serving(url) as address:
        yield "--url", address, "--key", key


def test_from_dry_run_to_journal(typed: Type, place: tuple[str, ...]) -> None:
    dry = typed("release", "age", *REQUEST, "--dry-run", *place)
    first, again = (typed("release", "age", *REQUEST, "--yes", *place, "--json").json for _ in "ab")
    table = typed("release", "age", *REQUEST, "--yes", *place)
    journal = typed("release", "age", *place)
    kept = typed("release", "age", *place, "--json").json["series"][0]

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


def test_a_gaussian_release_is_paid_in_rho(typed: Type, place: tuple[str, ...]) -> None:
    request = ("--query", "histogram", "--rho", "0.01", *DAY)
    dry = typed("release", "smooth", *request, "--dry-run", *place)
    made = typed("release", "smooth", *request, "--yes", *place, "--json").json
    past = typed("release", "smooth", *place)
    pure = typed("release", "age", *request, "--yes", *place)

    assert "would cost rho 0.01 of each period" in dry.out
    assert (made["unit"], made["epsilon"], made["rho"]) == ("rho", None, "0.01")
    assert made["noise"][0]["distribution"] == "gaussian"
    assert "rho by add-remove, delta 0.000001" in past.out
    assert (pure.code, "declare delta in a new definition" in pure.err) == (2, True)


def test_open_strings_are_released_from_a_threshold_on_and_named_for_free(
    typed: Type, place: tuple[str, ...], tmp_path: Path
) -> None:
    (named := tmp_path / "words.txt").write_text("rare\notter\nunseen\n", encoding="utf-8")
    (wrong := tmp_path / "wrong.txt").write_text("otter\n\x07\n", encoding="utf-8")
    request = ("release", "word", "--query", "strings", "--rho", "0.01", *DAY, *place, "--yes")
    dry = typed(*request, "--dry-run")
    refused = typed(*request, "--candidates", str(wrong))
    first = typed(*request)
    table = typed(*request, "--candidates", str(named))
    found = typed(*request, "--candidates", str(named), "--json").json
    past = typed("release", "word", *place)

    assert "released from" in dry.out
    assert (refused.code, "1 to 200 visible characters" in refused.err) == (2, True)
    assert "1 hashed strings passed the threshold" in first.out
    assert "cost rho 0.01" in first.out
    assert "1 of 3 candidates found" in table.out
    assert "free, paid before" in table.out
    (otter,) = found["strings"]["found"]
    assert otter["text"] == "otter"
    assert abs(otter["figure"] - 600) <= 2 * (otter["high"] - otter["low"]), "4 half widths"
    assert found["noise"][0]["threshold"] > 2
    assert "1 strings" in past.out


def test_a_budget_that_does_not_pay_is_1_and_says_all_three(
    typed: Type, place: tuple[str, ...]
) -> None:
    typed("release", "age", *REQUEST, "--yes", *place)
    refused = typed(
        "release", "age", "--query", "count", "--epsilon", "0.75", "--yes", *DAY, *place
    )

    assert refused.code == 1
    assert "0.75 is requested" in refused.err
    assert "0.5 left" in refused.err
    assert len(refused.err.splitlines()) == 1


def test_budget_is_spent_by_consent(
    typed: Type, place: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not asked, or declined: nothing is spent."""
    third = ("--from", "2026-01-03", "--to", "2026-01-03")
    words = ("release", "age", "--query", "histogram", "--epsilon", "0.25", *third, *place)
    spent = "spends epsilon 0.25 of each period of 2026-01-03 to 2026-01-03 for good"
    unasked = typed(*words)
    declined = typed_by_hand(typed, monkeypatch, "n\n", *words)
    dry = typed(*words, "--dry-run", "--json").json
    agreed = typed_by_hand(typed, monkeypatch, "y\n", *words, "--json")

    assert (unasked.code, declined.code, agreed.code) == (2, 1, 0)
    assert spent in unasked.err
    assert "0 is spent and 1 remains" in unasked.err
    assert "give --yes" in unasked.err
    assert (dry["spent"], dry["remaining"]) == ("0", "1")


def test_a_condition_on_values_may_be_written_in_json(typed: Type, place: tuple[str, ...]) -> None:
    """Of a day on which nobody answered: noise alone, beyond 40 with chance e^-40."""
    second = ("--from", "2026-01-02", "--to", "2026-01-02")
    request = ("--query", '{"count": [2, 3]}', "--epsilon", "1", *second)
    counted = typed("release", "age", *request, "--yes", *place, "--json")

    assert counted.code == 0
    assert counted.json["query"] == {"count": [2, 3]}
    assert abs(counted.json["figures"][0]["figure"]) < 40
