"""A store that came back from older files, or a replica without them, pays for no release twice."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.errors import ReleasesWaiting
from veilcount_aggregator.records.audit_log import load_audit_log
from veilcount_aggregator.releases.budget_ledger import load_releases, period_accounts
from veilcount_aggregator.releases.privacy_filter import PrivacyFilter
from veilcount_aggregator.releases.release_journal import ReleaseJournal
from veilcount_aggregator.releases.store_confirmation import (
    SETTLING_SECONDS,
    registered_journals,
    unconfirmed_journals,
)
from veilcount_aggregator.store import Store, open_store
from veilcount_aggregator.store.restore_lock import release_lock_reason
from veilcount_serving.errors import SettingsError

from ...processes import free_port
from ...redis_server import RedisServer
from ..curator_fixtures import AGE, OVER
from ..rewinding_store import REWINDABLE, Host, Rewindable, hosts, make, redis, sqlite, start, tick


@pytest.fixture(params=["sqlite", "redis", pytest.param("redis-cluster", marks=pytest.mark.full)])
def rewindable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rewindable]:
    with REWINDABLE[request.param](tmp_path) as made:
        make(made)
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Rewindable]:
    with sqlite(tmp_path) as made:
        make(made)
        yield made


def spent(store: Store, period: int = 0) -> float:
    return float(period_accounts(AGE, load_releases(store), [period])[0].spent)


# -- the attack ------------------------------------------------------------------------------------


def test_after_a_rollback_no_host_releases_until_what_was_lost_is_entered_again(
    rewindable: Rewindable, tmp_path: Path
) -> None:
    """The budget of the day is 1, and A's release spent it; B has never seen that release."""
    a, b = hosts(rewindable, tmp_path, "a", "b")
    rewindable.save()
    start(a, b)
    tick(a, b)
    made = a.ask("count")
    rewindable.rewind()
    start(a, b)
    before_a_confirms = [b.refusal("sum"), b.refusal("count"), b.refusal("mean", 1, 1)]
    a.tick()
    after = [a.refusal("count"), b.refusal("sum")]
    why = release_lock_reason(b.store) or ""
    entered = b.unlock(a)
    tick(a, b)

    assert before_a_confirms == ["ReleasesWaiting"] * 3
    assert after == ["ReleasesLocked"] * 2
    assert f"({a.state.id})" in why
    assert [kept.canonical for kept in entered] == [made.release.canonical]
    assert [a.refusal("sum"), b.refusal("sum")] == ["InsufficientBudget"] * 2
    assert b.ask("count").release == made.release
    assert b.ask("sum", 1, 1).charged


@pytest.mark.parametrize("engine", ["sqlite", "redis"])
def test_after_a_restart_that_lost_nothing_releases_go_on_by_themselves(
    engine: str, tmp_path: Path
) -> None:
    with REWINDABLE[engine](tmp_path) as store:
        make(store)
        a, b = hosts(store, tmp_path, "a", "b")
        a.ask("count")
        store.restart()
        start(a, b)
        waits = b.refusal("sum", 1, 1)
        tick(a, b)

        assert waits == ("" if engine == "sqlite" else "ReleasesWaiting")  # the file is the same
        assert release_lock_reason(b.store) is None
        assert b.ask("mean", 1, 2).charged
        assert not b.ask("count").charged


# -- hosts that are gone ---------------------------------------------------------------------------


def test_releases_wait_for_a_host_that_is_down_and_go_on_once_its_journal_is_retired(
    tmp_path: Path,
) -> None:
    with redis(tmp_path) as store:
        make(store)
        a, b = hosts(store, tmp_path, "a", "b")
        store.save()
        start(a, b)
        tick(a, b)
        a.ask("count")
        store.rewind()
        b.start()
        tick(b, b)
        waits = b.refusal("sum")
        with pytest.raises(SettingsError, match="retire that one"):
            b.retire(a, b.state.id)
        with pytest.raises(SettingsError, match=a.state.id):
            PrivacyFilter(b.store, None).retire("unknown", OVER, "cli")
        entered = b.retire(a, a.state.id)
        b.tick()

        assert waits == "ReleasesWaiting"
        assert len(entered) == 1
        assert b.refusal("sum") == "InsufficientBudget"
        assert b.ask("sum", 1, 1).charged
        assert [
            act.target for act in load_audit_log(b.store) if act.action == "journal retired"
        ] == [f"{a.state.label} ({a.state.id})"]
        a.start()  # it was not gone after all: it is a journal like any new one
        tick(a, b)
        assert set(registered_journals(b.store)) == {a.state.id, b.state.id}
        assert b.ask("sum", 1, 2).charged


def test_a_journal_s_first_release_waits_until_running_hosts_had_time_to_object(
    file: Rewindable, tmp_path: Path
) -> None:
    file.save()
    (a,) = hosts(file, tmp_path, "a")
    a.ask("count")
    file.rewind()
    new = Host(tmp_path / "new.jsonl", file, SETTLING_SECONDS)
    with pytest.raises(ReleasesWaiting, match="first registered"):
        new.ask("sum")
    a.start()
    a.tick()

    assert new.refusal("sum") == "ReleasesLocked"


def test_an_older_file_written_over_the_store_in_place_is_noticed_before_a_release(
    file: Rewindable, tmp_path: Path
) -> None:
    (a,) = hosts(file, tmp_path, "a")
    file.close()
    older = (tmp_path / "s.db").read_bytes()
    a.start()
    a.ask("count")
    file.close()
    with (tmp_path / "s.db").open("r+b") as place:
        place.write(older)
        place.truncate()
    a.start()

    assert a.held() == 0
    assert a.refusal("sum") == "ReleasesLocked"


def test_of_a_period_that_was_charged_too_much_nothing_is_repeated(
    file: Rewindable, tmp_path: Path
) -> None:
    file.save()
    (a,) = hosts(file, tmp_path, "a")
    a.ask("count")
    file.rewind()
    (b,) = hosts(file, tmp_path, "b")
    b.ask("sum")
    b.unlock(a)
    a.start()
    tick(a, b)

    assert spent(b.store) == 2
    assert [b.refusal("sum"), b.refusal("count")] == ["InsufficientBudget"] * 2


def test_a_master_that_was_demoted_and_promoted_again_has_another_incarnation(
    tmp_path: Path,
) -> None:
    """As a replica that takes over has: so what it lacks is noticed before a release."""
    server = RedisServer(tmp_path)
    try:
        with (
            closing(open_store(server.url, make=True)) as store,
            closing(open_store(server.url)) as other,
        ):
            first = [store.incarnation(), other.incarnation()]
            server.ask("REPLICAOF", "127.0.0.1", str(free_port()))
            server.ask("REPLICAOF", "NO", "ONE")
            again = store.incarnation()
    finally:
        server.kill()

    assert first[0] == first[1] != again
    assert again.split("-")[0] == first[0].split("-")[0]


def test_a_store_from_before_a_journal_was_registered_is_noticed_by_those_that_know_it(
    file: Rewindable, tmp_path: Path
) -> None:
    (b,) = hosts(file, tmp_path, "b")
    file.save()
    b.start()
    a = Host(tmp_path / "a.jsonl", file)
    tick(a, b, a)
    a.ask("count")
    file.rewind()
    b.start()
    b.tick()
    journals = unconfirmed_journals(b.store)

    assert ReleaseJournal(b.journal).lines() == []
    assert [journal.id for journal in journals] == [a.state.id]
    assert b.refusal("sum") == "ReleasesWaiting"
    a.start()
    a.tick()
    assert b.refusal("sum") == "ReleasesLocked"  # A remembers more than the operator gave


@pytest.mark.parametrize("loses", [True, False])
def test_an_answer_whose_store_restarts_before_it_leaves_stays_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, loses: bool
) -> None:
    writes, add = threading.Event(), ReleaseJournal.add

    def announced(*arguments: Any) -> None:
        writes.set()
        add(*arguments)

    monkeypatch.setattr(ReleaseJournal, "add", announced)
    with redis(tmp_path) as store:
        make(store)
        (a,) = hosts(store, tmp_path, "a")
        store.save()
        a.start()
        a.tick()
        refused: list[str] = []
        a.journal.touch()
        with a.journal.open("ab") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            writes.clear()
            request = threading.Thread(target=lambda: refused.append(a.refusal("count")))
            request.start()
            assert writes.wait(60)
            if loses:
                store.rewind()
            else:
                store.restart()
            fcntl.flock(held, fcntl.LOCK_UN)
        request.join(60)
        a.start()
        a.tick()

        assert refused in (["ReleasesWaiting"], ["StoreUnavailable"])
        assert a.refusal("sum") == ("ReleasesLocked" if loses else "InsufficientBudget")
        assert loses or not a.ask("count").charged  # it was paid for, and is free now
