"""`veilcount store`, typed for real: copies, backups, clocks, epochs and central releases."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from veilcount_aggregator.records.api_keys import load_api_keys
from veilcount_aggregator.records.audit_log import AuditEntry, load_audit_log
from veilcount_aggregator.records.definitions import load_catalog
from veilcount_aggregator.releases.budget_ledger import load_releases
from veilcount_aggregator.releases.store_confirmation import registered_journals
from veilcount_aggregator.store import ServiceCounter, open_store
from veilcount_aggregator.store.retention.retention_guard import read_confirmed_day
from veilcount_aggregator.store.sqlite.store import SqliteStore

from ...curator_fixtures import AGE, OVER, curator, wanted
from ...store.series_fixtures import LONG_AGO, drop_and_delete
from .conftest import Type, typed_by_hand


def test_a_store_is_healthy_if_it_keeps_reports_over_a_power_cut(typed: Type, store: str) -> None:
    durable = typed("store", "check", "--store", store, "--json")
    relaxed = typed("store", "check", "--store", f"{store}?durability=relaxed", "--json")

    assert (durable.code, relaxed.code) == (0, 1)
    assert (durable.json["durable"], durable.json["read_only"]) == ("yes", False)
    assert relaxed.json["durable"] == "no"


def test_a_copy_has_everything_and_its_source_is_closed(
    typed: Type, store: str, tmp_path: Path, definitions: Path
) -> None:
    typed("collections", "push", str(definitions), "--store", store)
    target = f"sqlite:///{tmp_path}/target.db"

    copied = typed("store", "copy", store, target, "--json")
    source, there = (typed("store", "check", "--store", url, "--json") for url in (store, target))
    listed = typed("collections", "list", "--store", target, "--json").json
    refused = typed("keys", "create", "--role", "analyst", "--store", store)

    assert copied.code == 0
    assert copied.json["pieces"] >= 3
    assert (source.code, source.json["read_only"], source.json["copied_to"]) == (1, True, target)
    assert (there.code, there.json["read_only"]) == (0, False)
    assert [each["name"] for each in listed] == ["theme"]
    assert refused.code == 3


def test_a_store_stays_read_only_until_somebody_says_that_the_copy_is_gone(
    typed: Type, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = f"sqlite:///{tmp_path}/served.db"
    typed("store", "copy", store, copy)

    words = ("store", "allow-writes", "--store", store)
    unasked = typed(*words)
    refused = typed_by_hand(typed, monkeypatch, "yes\n", *words)
    still = typed("store", "check", "--store", store, "--json").json
    agreed = typed_by_hand(typed, monkeypatch, "destroyed\n", *words)

    assert (unasked.code, refused.code, agreed.code) == (2, 1, 0)
    assert "--yes" in unasked.err
    assert f"copied to {copy}" in unasked.err
    assert "budgets can be spent in both" in refused.err
    assert still["read_only"]
    assert agreed.out == "the store accepts reports again\n"
    assert typed(*words).out == "the store was not read-only\n"
    assert typed("keys", "create", "--role", "analyst", "--store", store).code == 0
    typed("store", "copy", store, f"sqlite:///{tmp_path}/again.db")
    assert typed(*words, "--yes").code == 0


# -- retention -------------------------------------------------------------------------------------


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
    assert (last_act(store).actor, last_act(store).action) == ("cli", "confirm clock")


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
    assert (last_act(store).action, last_act(store).target) == ("restore epochs", "theme")


# -- central releases ------------------------------------------------------------------------------


def release(url: str, journal: Path, query: str) -> None:
    with closing(open_store(url)) as store:
        curator(store, journal).answer(AGE, wanted(query, "0.5"), OVER, "a key")


def held(url: str) -> tuple[int, int]:
    """Return how many keys and how many releases a store has."""
    with closing(open_store(url)) as store:
        return len(load_api_keys(store).keys), len(load_releases(store))


def test_a_backup_comes_back_locked_and_is_unlocked_from_the_journal_next_to_it(
    store: str, typed: Type, tmp_path: Path
) -> None:
    journal, again = tmp_path / "again.db.releases.jsonl", f"sqlite:///{tmp_path}/again.db"
    file = tmp_path / "backup.db"
    release(store, journal, "count")
    saved = typed("store", "backup", str(file), "--store", store, "--json")
    release(store, journal, "sum")
    restored = typed("store", "restore", str(file), "--store", again)
    before = typed("store", "check", "--store", again, "--json").json["releases_locked"]
    done = typed("store", "unlock", "--store", again, "--json")
    after = typed("store", "check", "--store", again, "--json").json["releases_locked"]

    assert saved.json == {"file": str(file), "bytes": file.stat().st_size}
    assert restored.code == 0
    assert "locked" in restored.out
    assert "journal" in before
    assert (done.code, done.json) == (0, {"entered": 1, "releases_locked": None})
    assert after is None
    assert held(again) == held(store) == (1, 2)


def test_a_store_that_went_back_waits_until_a_person_accepts_it(
    store: str, typed: Type, definitions: Path
) -> None:
    """It is checked, refused and named until then; the audit log has the loss."""
    with closing(open_store(store)) as opened:
        assert isinstance(opened, SqliteStore)
        opened.commit([], {ServiceCounter("lost", "", -1, "a/b"): 1})
        with opened.file.writing() as database:
            database.execute("update state set height = height - 1")
    checked = typed("store", "check", "--store", store, "--json")
    examined = typed("doctor", "--deep", "--store", store)
    pushed = typed("collections", "push", str(definitions), "--store", store)
    unasked = typed("store", "accept", "--store", store)
    accepted = typed("store", "accept", "--store", store, "--yes", "--json")

    assert checked.code == 1
    assert checked.json["durable"] == "no"
    assert "lacks commits that were acknowledged" in checked.json["why"]
    assert examined.code == 1
    assert "lacks 1 of" in examined.out
    assert pushed.code == 2
    assert "veilcount store accept" in pushed.err
    assert unasked.code == 2
    assert "give --yes" in unasked.err
    assert accepted.code == 0
    assert "lacks 1 of" in accepted.json["accepted"][0]
    assert typed("store", "check", "--store", store).code == 0
    assert typed("collections", "push", str(definitions), "--store", store).code == 0
    with closing(open_store(store)) as opened:
        actions = [entry.action for entry in load_audit_log(opened)]
    assert "store accept" in actions


def test_a_journal_of_a_host_that_is_gone_is_listed_waited_for_and_retired(
    store: str, typed: Type, tmp_path: Path
) -> None:
    journal = tmp_path / "gone.jsonl"
    release(store, journal, "count")
    with closing(open_store(store)) as opened:
        (id_,) = registered_journals(opened)
        curator(opened, tmp_path / "here.jsonl").filter.tick(OVER)
    waits = typed("store", "check", "--store", store, "--json").json["journals_pending"]
    found = typed("doctor", "--store", store, "--json").out
    unasked = typed("store", "retire-journal", id_, "--store", store)
    done = typed("store", "retire-journal", id_, "--store", store, "--yes", "--json")
    again = typed("store", "retire-journal", id_, "--store", store, "--journal", str(journal))

    assert id_ in waits
    assert f"({id_}) last confirmed it at" in found
    assert (unasked.code, done.code, again.code) == (2, 0, 2)
    assert "are lost" in unasked.err
    assert done.json == {"retired": id_, "entered": 0}
    assert "no such journal" in again.err
