"""`veilcount store unlock`: what a store forgot of central releases is restored."""

from __future__ import annotations

from pathlib import Path

from tests.aggregator.cli.conftest import Type
from tests.aggregator.curator_fixtures import AGE, OVER, curator, wanted
from veilcount_aggregator.central.budget_ledger import load_releases
from veilcount_aggregator.central.store_confirmation import registered_journals
from veilcount_aggregator.store import open_store


def release(url: str, journal: Path, query: str) -> None:
    store = open_store(url)
    curator(store, journal).answer(AGE, wanted(query, "0.5"), OVER, "a key")
    store.close()


def held(url: str) -> int:
    store = open_store(url)
    known = len(load_releases(store))
    store.close()
    return known


def test_a_restored_store_is_unlocked_from_the_journal_next_to_it(
    store: str, typed: Type, tmp_path: Path
) -> None:
    journal, again = tmp_path / "again.db.releases.jsonl", f"sqlite:///{tmp_path}/again.db"
    release(store, journal, "count")
    typed("store", "backup", str(tmp_path / "backup.db"), "--store", store)
    release(store, journal, "sum")
    typed("store", "restore", str(tmp_path / "backup.db"), "--store", again)
    before = typed("store", "check", "--store", again, "--json").json["releases_locked"]
    done = typed("store", "unlock", "--store", again, "--json")
    after = typed("store", "check", "--store", again, "--json").json["releases_locked"]

    assert "journal" in before
    assert (done.code, done.json) == (0, {"entered": 1, "releases_locked": None})
    assert after is None
    assert held(again) == held(store) == 2


def test_a_journal_of_a_host_that_is_gone_is_listed_waited_for_and_retired(
    store: str, typed: Type, tmp_path: Path
) -> None:
    journal = tmp_path / "gone.jsonl"
    release(store, journal, "count")
    opened = open_store(store)
    (id_,) = registered_journals(opened)
    curator(opened, tmp_path / "here.jsonl").filter.tick(OVER)
    opened.close()
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
