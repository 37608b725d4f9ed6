"""The journal: what it holds is believed or refused, and what a store forgot is entered again."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from veilcount_aggregator.errors import (
    InsufficientBudget,
    ReleasesLocked,
    StoreUnavailable,
    StoreUnfit,
)
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.audit_log import load_audit_log
from veilcount_aggregator.releases import release_journal
from veilcount_aggregator.releases.budget_ledger import load_releases, period_accounts
from veilcount_aggregator.releases.curator import Curator
from veilcount_aggregator.releases.release_journal import ENDING, DigestCache, ReleaseJournal
from veilcount_aggregator.releases.store_confirmation import FORGOTTEN
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import Store, open_store
from veilcount_aggregator.store.backup import backup, restore
from veilcount_aggregator.store.restore_lock import release_lock_reason
from veilcount_serving.errors import SettingsError
from veilcount_shared.verdict import Verdict

from ..curator_fixtures import AGE, OVER, TEXT, curator, fill, series, wanted
from ..web.api.deployment_fixtures import deployment, open_worker

ONE, TWO = {"day": "2027-01-01", "low": 0.1}, {"day": "2027-01-02", "low": -2.5e-17}


@pytest.fixture
def journal(tmp_path: Path) -> ReleaseJournal:
    return ReleaseJournal(tmp_path / "beside" / "releases.jsonl")


# -- the file --------------------------------------------------------------------------------------


def test_lines_are_appended_once_in_a_file_for_its_owner(journal: ReleaseJournal) -> None:
    journal.keep([ONE])
    before = journal.path.read_bytes()
    journal.keep([ONE, TWO])

    assert ReleaseJournal(journal.path).lines() == journal.lines() == [ONE, TWO]
    assert journal.path.read_bytes().startswith(before)
    assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("kept", range(1, 60, 7))
def test_a_torn_line_is_ignored_and_replaced(journal: ReleaseJournal, kept: int) -> None:
    journal.keep([ONE])
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole + whole[:kept])
    torn = journal.lines()
    journal.keep([TWO])

    assert torn == [ONE]
    assert journal.lines() == [ONE, TWO]


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("0.1", "0.2"),
        lambda text: text.replace("2027-01-01", "2027-01-03"),
        lambda text: text.replace(', "low": 0.1', ""),
        lambda text: text.replace(" ", "", 1),
        lambda text: "\n" + text,
        lambda text: text.replace('"release"', '"released"'),
        lambda text: "[]\n" + text,
        lambda text: "\0\n" + text,
    ],
)
def test_a_line_that_was_edited_is_not_believed(
    journal: ReleaseJournal, edit: Callable[[str], str]
) -> None:
    journal.keep([ONE])
    journal.path.write_text(edit(journal.path.read_text()))

    with pytest.raises(StoreUnfit, match=r"releases\.jsonl, line 1: damaged, edited"):
        journal.lines()
    journal.keep([TWO])
    with pytest.raises(StoreUnfit, match="line 1"):
        journal.lines()


def test_many_writers_lose_no_line(journal: ReleaseJournal) -> None:
    lines = [{"day": str(number)} for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: journal.keep(lines[number - 1 : number + 1]), range(1, 40)))

    assert sorted(journal.lines(), key=str) == sorted(lines, key=str)


def test_no_file_is_no_lines_and_no_reading_is_an_error(journal: ReleaseJournal) -> None:
    assert journal.lines() == []

    journal.path.mkdir(parents=True)
    with pytest.raises(StoreUnavailable):
        journal.lines()


@pytest.mark.parametrize(
    ("store", "journal", "path"),
    [
        ("sqlite:////srv/veil%20count.db?durability=relaxed", None, f"/srv/veil count.db{ENDING}"),
        ("sqlite:////srv/a.db", Path("/else/where"), "/else/where"),
        ("redis://localhost:1/0", Path("/else/where"), "/else/where"),
        ("redis://localhost:1/0", None, None),
        ("redis-cluster://localhost:1", None, None),
    ],
)
def test_a_journal_is_next_to_the_store_s_file_or_where_it_is_set(
    store: str, journal: Path | None, path: str | None
) -> None:
    found = ReleaseJournal.from_settings(Settings(store, journal=journal))

    assert (found and str(found.path)) == path


# -- a store that forgot ---------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/store.db", make=True)
    for period in (0, 1):
        fill(opened, AGE, [3, 2, 1, 0], period)
    yield opened
    opened.close()


@pytest.fixture
def asker(store: Store, journal: ReleaseJournal) -> Curator:
    return curator(store, journal.path)


@pytest.fixture
def again(tmp_path: Path, asker: Curator) -> Iterator[Store]:
    """A store that was restored from a backup, which lacks the last two of three releases."""
    asker.answer(AGE, wanted("count", "0.25"), OVER, "")
    backup(f"sqlite:///{tmp_path}/store.db", tmp_path / "backup.db")
    asker.answer(AGE, wanted("histogram", "0.5"), OVER, "")
    asker.answer(AGE, wanted("mean", "0.75", 1), OVER, "")
    restore(tmp_path / "backup.db", f"sqlite:///{tmp_path}/again.db")
    with closing(open_store(f"sqlite:///{tmp_path}/again.db")) as store:
        yield store


def spent(store: Store, period: int = 0) -> Fraction:
    return period_accounts(AGE, load_releases(store), [period])[0].spent


def test_a_restored_store_releases_nothing_until_what_was_spent_is_entered_again(
    again: Store, store: Store, journal: ReleaseJournal
) -> None:
    mine = curator(again, journal.path)

    with pytest.raises(ReleasesLocked, match="store unlock"):
        mine.answer(AGE, wanted("count", "0.25"), OVER, "")
    entered = mine.filter.restore_missing(OVER, "cli")
    assert [kept.canonical for kept in entered] == [
        kept.canonical for kept in load_releases(store)[1:]
    ]
    assert load_releases(again) == load_releases(store)
    assert release_lock_reason(again) is None
    assert [spent(again), spent(again, 1)] == [Fraction(3, 4), Fraction(3, 4)]
    with pytest.raises(InsufficientBudget):
        mine.answer(AGE, wanted("sum", "0.5"), OVER, "")
    assert not mine.answer(AGE, wanted("histogram", "0.5"), OVER, "").charged
    assert [act.target for act in load_audit_log(again) if act.action == "store unlock"] == [
        "2 releases"
    ]
    assert mine.filter.restore_missing(OVER, "cli") == []  # nothing is charged twice
    assert spent(again) == Fraction(3, 4)


def test_without_its_journal_a_lock_stays(again: Store, tmp_path: Path) -> None:
    mine = curator(again, tmp_path / "never").filter

    with pytest.raises(SettingsError, match="no such file"):
        mine.restore_missing(OVER, "cli")
    assert release_lock_reason(again)
    (tmp_path / "never").touch()
    assert mine.restore_missing(OVER, "cli") == []
    assert release_lock_reason(again) is None


def test_a_damaged_journal_locks_releases_and_opens_no_lock(
    asker: Curator, store: Store, journal: ReleaseJournal
) -> None:
    asker.answer(AGE, wanted("count", "0.25"), OVER, "")
    whole = journal.path.read_text()
    journal.path.write_text(whole.replace("250000", "25"))

    with pytest.raises(ReleasesLocked):
        asker.answer(AGE, wanted("sum", "0.25"), OVER, "")
    with pytest.raises(StoreUnfit, match="line 1"):
        asker.filter.restore_missing(OVER, "cli")
    assert "line 1" in (release_lock_reason(store) or "")
    journal.path.write_text(whole)
    asker.filter.restore_missing(OVER, "cli")
    assert asker.answer(AGE, wanted("sum", "0.25"), OVER, "").charged


def test_lines_of_other_hosts_are_as_good_as_ones_own(
    asker: Curator, store: Store, journal: ReleaseJournal, tmp_path: Path
) -> None:
    there = curator(store, tmp_path / "there.jsonl")
    for host in (asker, there, asker):  # as their tickers do
        host.filter.tick(OVER)
    asker.answer(AGE, wanted("count", "0.25"), OVER, "")
    there.answer(AGE, wanted("sum", "0.25"), OVER, "")
    asker.answer(AGE, wanted("mean", "0.25"), OVER, "")
    both = ReleaseJournal(tmp_path / "both.jsonl")
    both.path.write_bytes((tmp_path / "there.jsonl").read_bytes() + journal.path.read_bytes())

    new = open_store(f"sqlite:///{tmp_path}/new.db", make=True)
    entered = curator(new, both.path).filter.restore_missing(OVER, "cli")

    assert len(ReleaseJournal(tmp_path / "there.jsonl").lines()) == 2
    assert len(journal.lines()) == 3
    assert curator(store, both.path).filter.forgotten() == []
    assert len(entered) == 3  # what stands there twice is charged once
    assert spent(new) == spent(store) == Fraction(3, 4)
    new.close()


def test_a_store_that_forgets_while_it_is_served_is_noticed_by_the_next_release(
    asker: Curator, store: Store
) -> None:
    asker.answer(AGE, wanted("count", "0.25"), OVER, "")
    (record,) = (kept.record(0) for kept in load_releases(store))
    store.change_records(store.generation(), [record._replace(value=None)])

    with pytest.raises(ReleasesLocked):
        asker.answer(AGE, wanted("count", "0.25"), OVER, "")
    assert FORGOTTEN in (release_lock_reason(store) or "")
    assert len(asker.filter.restore_missing(OVER, "cli")) == 1
    assert not asker.answer(AGE, wanted("count", "0.25"), OVER, "").charged


def test_a_release_of_another_version_is_not_guessed_at(
    store: Store, journal: ReleaseJournal
) -> None:
    journal.keep([{"fingerprint": AGE.fingerprint, "price": 1}])

    with pytest.raises(StoreUnfit, match="another version"):
        curator(store, journal.path).filter.forgotten()


# -- at the start ----------------------------------------------------------------------------------


def test_a_start_locks_releases_if_the_store_forgot_and_the_intake_goes_on(tmp_path: Path) -> None:
    forgotten = {"fingerprint": series().fingerprint, "canonical": "{}", "charges": {"0": 1}}
    url = f"sqlite:///{tmp_path}/store.db?durability=relaxed"
    with deployment(tmp_path, TEXT):
        pass
    lost = forgotten | {"answer": {}, "day": "2027-01-01", "actor": ""}
    ReleaseJournal(tmp_path / f"store.db{ENDING}").keep([lost])
    with open_worker(url) as deployed:
        why = release_lock_reason(deployed.aggregator.store)
        verdicts = deployed.verdicts(deployed.report("age"))
        body = json.dumps(wanted("count", 1)).encode()
        key = deployed.key(Role.ANALYST)
        refused = deployed.ask("POST", "/v1/collections/age/releases", body, key=key)

    assert FORGOTTEN in (why or "")
    assert verdicts == [Verdict.COUNTED]
    assert refused.problem == "releases-locked"


def test_a_journal_that_cannot_be_read_stops_no_start(tmp_path: Path) -> None:
    (tmp_path / f"store.db{ENDING}").mkdir()
    with deployment(tmp_path, TEXT) as deployed:
        verdicts = deployed.verdicts(deployed.report("age"))

    assert verdicts == [Verdict.COUNTED]


# -- digests of lines are computed once ------------------------------------------------------------


def test_a_digest_is_computed_once_and_errors_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is cleared when there is too much of it."""
    monkeypatch.setattr(release_journal, "MAX_ENTRIES", 3)
    called: list[bytes] = []

    def length(argument: bytes) -> int:
        called.append(argument)
        if not argument:
            raise ValueError("nothing")
        return len(argument)

    cached = DigestCache(length)
    for _ in range(2):
        with pytest.raises(ValueError, match="nothing"):
            cached(b"")

    assert [cached(each) for each in (b"x", b"y", b"y", b"xxx", b"xxxx", b"x")] == [
        1,
        1,
        1,
        3,
        4,
        1,
    ]
    assert called == [b"", b"", b"x", b"y", b"xxx", b"xxxx", b"x"]
