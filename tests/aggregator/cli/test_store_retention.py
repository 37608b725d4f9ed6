"""`veilcount store confirm-clock` and `restore-epochs`: what an operator does about retention."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.aggregator.cli.conftest import Type
from tests.aggregator.cli.test_store import typed_by_hand
from tests.aggregator.store.series_fixtures import LONG_AGO, drop_and_delete
from veilcount_aggregator.auth.audit_log import AuditEntry, load_audit_log
from veilcount_aggregator.catalog.definitions import load_catalog
from veilcount_aggregator.retention.retention_guard import read_confirmed_day
from veilcount_aggregator.store import open_store


def day_of(url: str) -> str | None:
    with closing(open_store(url)) as store:
        found = read_confirmed_day(store)
    return None if found is None else str(found.day)


def last_act(url: str) -> AuditEntry:
    with closing(open_store(url)) as store:
        return load_audit_log(store)[-1]


def drop_all(url: str, *, sweep: bool = False) -> None:
    with closing(open_store(url)) as store:
        for series in load_catalog(store).series.values():
            if sweep:
                drop_and_delete(store, series, 1)
            else:
                store.mark_dropped(series, 1, LONG_AGO, datetime.now(UTC))


def test_a_day_is_confirmed_at_once_with_yes(typed: Type, store: str) -> None:
    before = day_of(store)
    result = typed("store", "confirm-clock", "--yes", "--store", store, "--json")

    assert (before, result.code) == (None, 0)
    assert result.json["day"] == day_of(store)
    assert abs(datetime.fromisoformat(result.json["at"]) - datetime.now(UTC)) < timedelta(hours=1)
    assert (last_act(store).who, last_act(store).act) == ("cli", "confirm clock")


def test_the_time_is_confirmed_by_a_person(
    typed: Type, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("store", "confirm-clock", "--store", store)
    unasked = typed(*words)
    refused = typed_by_hand(typed, monkeypatch, "n\n", *words)
    still = day_of(store)
    agreed = typed_by_hand(typed, monkeypatch, "y\n", *words)

    assert (unasked.code, refused.code, agreed.code) == (2, 1, 0)
    assert "--yes" in unasked.err
    assert "no day was confirmed before" in refused.err
    assert still is None
    assert f"{day_of(store)} is confirmed" in agreed.out


def test_drops_of_all_collections_are_taken_back(
    typed: Type, store: str, definitions: Path
) -> None:
    typed("collections", "push", str(definitions), "--store", store)
    drop_all(store)
    first = typed("store", "restore-epochs", "--store", store, "--json")
    again = typed("store", "restore-epochs", "theme", "--store", store, "--json")
    drop_all(store, sweep=True)
    swept = typed("store", "restore-epochs", "--store", store)

    assert [first.json, again.json] == [{"restored": {"theme": 1}}, {"restored": {"theme": 0}}]
    assert swept.out.split() == ["collection", "restored", "epochs", "theme", "0"]
    assert (last_act(store).act, last_act(store).of) == ("restore epochs", "theme")
