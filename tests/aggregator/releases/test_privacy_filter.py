"""The filter and the curator: charged before a release leaves, once a query, never too much."""

from __future__ import annotations

import errno
import fcntl
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilcount_aggregator.errors import (
    InsufficientBudget,
    JournalMissing,
    PeriodStillOpen,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from veilcount_aggregator.records.audit_log import load_audit_log
from veilcount_aggregator.releases.budget_ledger import load_releases, period_accounts
from veilcount_aggregator.releases.curator import Curator
from veilcount_aggregator.releases.privacy_filter import PrivacyFilter
from veilcount_aggregator.releases.release_journal import ReleaseJournal
from veilcount_aggregator.store import Record, Store, open_store
from veilcount_analysis.errors import QueryError
from veilcount_analysis.releases import Release, price_query

from ...system.server import wait_until
from ..curator_fixtures import AGE, OVER, PERIODS, QueryProcess, curator, series, stored, wanted
from ..record_reads import CountedReads


def spent(store: Store, period: int = 0) -> Fraction:
    return period_accounts(AGE, load_releases(store), [period])[0].spent


# -- one question, one price, one answer -----------------------------------------------------------


def test_an_answer_is_charged_kept_and_in_the_journal(
    asker: Curator, store: Store, journal: Path
) -> None:
    result = asker.answer(AGE, wanted("histogram", "0.25", 0, 2), OVER, "key1")
    (kept,) = load_releases(store)

    assert result.charged
    assert Release.from_json(kept.answer) == result.release
    assert kept.charges == {"0": 250_000, "1": 250_000, "2": 250_000}
    assert [spent(store, period) for period in range(4)] == [Fraction(1, 4)] * 3 + [0]
    assert json.loads(journal.read_text())["release"] == kept.line()
    assert [(act.actor, act.action, act.target) for act in load_audit_log(store)] == [
        ("key1", "release", "age")
    ]


def test_what_is_refused_is_not_charged_and_leaves_no_trace(asker: Curator, store: Store) -> None:
    asker.filter.tick(OVER)  # registers the journal, which is a change
    before = store.generation()
    with pytest.raises(QueryError):
        asker.answer(AGE, wanted("histogram", 2), OVER, "")
    with pytest.raises(PeriodStillOpen):
        asker.answer(AGE, wanted("histogram", 1), datetime(2026, 12, 1, tzinfo=UTC), "")

    assert store.generation() == before
    assert asker.filter.journal is not None
    assert asker.filter.journal.lines() == []


def test_series_have_budgets_of_their_own(asker: Curator, store: Store) -> None:
    other = series(range="[0, 4]")
    assert asker.answer(other, wanted("count", 1), OVER, "").charged
    reads = CountedReads(store)
    dry = curator(reads, asker.filter.journal.path).dry_run(AGE, wanted("sum", 1))  # type: ignore[union-attr]

    assert dry.accounts[0].remaining == 1
    assert reads.reads == {}
    assert asker.answer(AGE, wanted("count", 1), OVER, "").charged


# -- closed periods only ---------------------------------------------------------------------------


@pytest.mark.parametrize(("hour", "may"), [("2026-12-05T23:59:59", False), ("2026-12-06", True)])
def test_a_period_is_released_once_it_takes_no_more_reports(
    asker: Curator, hour: str, *, may: bool
) -> None:
    """December 4 takes reports a day late: until the 5th is over."""
    now = datetime.fromisoformat(hour).replace(tzinfo=UTC)
    if may:
        assert asker.answer(AGE, wanted("count", 1, 3), now, "").charged
        return

    says = "open until 2026-12-06: ask for it from that day on, or up to 2026-12-03"
    with pytest.raises(PeriodStillOpen, match=says):
        asker.answer(AGE, wanted("count", 1, 0, 3), now, "")
    assert asker.answer(AGE, wanted("count", 1, 2), now, "").charged


# -- who races, draws again ------------------------------------------------------------------------


def test_who_loses_a_race_draws_again_and_pays_once(store: Store, journal: Path) -> None:
    question = price_query(wanted("count", "0.5"), AGE.collection)
    draws: list[int] = []

    def draw() -> Mapping[str, Any]:
        draws.append(len(draws))
        if len(draws) == 1:  # somebody else is faster
            store.change_records(store.generation(), [Record("audit", "1", b"{}")])
        return {"draw": draws[-1]}

    paid = PrivacyFilter(store, ReleaseJournal(journal)).release(AGE, question, draw, OVER, "")

    assert draws == [0, 1]
    assert paid.release.answer == {"draw": 1}
    assert [kept.answer for kept in load_releases(store)] == [{"draw": 1}]
    assert spent(store) == Fraction(1, 2)


def test_who_loses_the_last_budget_while_drawing_is_refused(
    asker: Curator, store: Store, journal: Path
) -> None:
    question = price_query(wanted("count", "0.5"), AGE.collection)
    draws: list[bool] = []

    def draw() -> Mapping[str, Any]:
        draws.append(asker.answer(AGE, wanted("sum", "0.75"), OVER, "faster").charged)
        return {"draw": "never seen"}

    with pytest.raises(InsufficientBudget) as refused:
        PrivacyFilter(store, ReleaseJournal(journal)).release(AGE, question, draw, OVER, "")
    assert draws == [True]
    assert refused.value.remaining == Fraction(1, 4)
    assert [kept.actor for kept in load_releases(store)] == ["faster"]
    assert "never seen" not in journal.read_text()


@pytest.mark.full  # by default: who loses the last budget, and concurrent writers in the battery
@pytest.mark.parametrize("engine", ["sqlite", "redis"])
def test_of_two_processes_that_race_for_the_last_budget_one_gets_it(
    engine: str, tmp_path: Path
) -> None:
    with stored(engine, tmp_path) as url:
        processes = [
            QueryProcess(url, tmp_path / f"{query}.jsonl", query) for query in ("sum", "mean")
        ]
        won = []
        for period in range(PERIODS):
            for asker in processes:
                asker.go(period)
            won.append([asker.won() for asker in processes])
        for asker in processes:
            asker.stop()
        store = open_store(url)
        charged = [
            account.spent for account in period_accounts(AGE, load_releases(store), range(PERIODS))
        ]
        store.close()

    assert [each.count(True) for each in won] == [1] * PERIODS
    assert charged == [1] * PERIODS


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("redis", marks=pytest.mark.full)])
def test_killed_between_commit_and_journal_the_answer_never_left_and_is_free(
    engine: str, tmp_path: Path
) -> None:
    path = tmp_path / "releases.jsonl"
    with stored(engine, tmp_path) as url, path.open("ab") as held:
        store = open_store(url)
        fcntl.flock(held, fcntl.LOCK_EX)
        asker = QueryProcess(url, path, "histogram")
        asker.go(0)
        wait_until(lambda: load_releases(store))
        asker.stop()
        fcntl.flock(held, fcntl.LOCK_UN)
        (kept,) = load_releases(store)
        lines = path.read_text()
        again = curator(store, path).answer(AGE, wanted("histogram", 1), OVER, "another")
        store.close()

    assert lines == ""
    assert kept.charges == {"0": 1_000_000}
    assert not again.charged
    assert again.release == Release.from_json(kept.answer)
    assert json.loads(path.read_text())["release"] == kept.line()


def unwritable(asker: Curator, patch: pytest.MonkeyPatch) -> None:
    def full(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "no space left", str(folder))

    del asker
    patch.setattr("veilcount_aggregator.releases.release_journal.sync_path", full)


def unreadable(asker: Curator, patch: pytest.MonkeyPatch) -> None:
    del patch
    assert asker.filter.journal is not None
    asker.filter.journal.path.mkdir()


def missing(asker: Curator, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(asker.filter, "journal", None)


def read_only(asker: Curator, patch: pytest.MonkeyPatch) -> None:
    del patch
    asker.filter.store.set_read_only(on=True)


@pytest.mark.parametrize(
    ("fault", "error", "reason"),
    [
        (missing, JournalMissing, "--journal FILE"),
        (unwritable, StoreFull, "journal cannot be written"),
        (unreadable, StoreUnavailable, "journal cannot be read"),
        (read_only, StoreReadOnly, "read-only"),
    ],
)
def test_nothing_is_charged_or_released_where_it_could_not_be_remembered(
    fault: Callable[[Curator, pytest.MonkeyPatch], None],
    error: type[Exception],
    reason: str,
    asker: Curator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A dry run needs no journal; the query is charged once the fault is over."""
    fault(asker, monkeypatch)

    with pytest.raises(error, match=reason):
        asker.answer(AGE, wanted("count", 1), OVER, "")
    assert asker.dry_run(AGE, wanted("count", 1)).question.micro_epsilon == 1_000_000
    assert load_releases(asker.filter.store) == []
    monkeypatch.undo()
    if fault in {missing, unwritable}:
        assert asker.answer(AGE, wanted("count", 1), OVER, "").charged
        assert spent(asker.filter.store) == 1


# -- no sequence of requests overspends ------------------------------------------------------------

ASKS = st.tuples(
    st.sampled_from(["count", "sum", "mean", "histogram", "age >= 2"]),
    st.sampled_from(["0.000001", "0.1", "0.25", "0.333333", "0.5", "0.75", "1"]),
    st.integers(0, 3),
    st.integers(0, 2),
)


@settings(max_examples=20)
@given(asks=st.lists(ASKS, max_size=14))
def test_no_sequence_of_requests_overspends_any_period(
    memory: Path, asks: list[tuple[str, str, int, int]]
) -> None:
    folder = Path(mkdtemp(dir=memory))
    store = open_store(f"sqlite:///{folder}/store.db?durability=relaxed", make=True)
    asker = curator(store, folder / "releases.jsonl")
    model: defaultdict[int, Fraction] = defaultdict(Fraction)
    answered: dict[tuple[str, str, int, int], Release] = {}
    for ask in asks:
        query, epsilon, first, more = ask
        request = wanted(query, epsilon, first, first + more)
        periods, price = range(first, first + more + 1), Fraction(epsilon)
        fits = all(model[period] + price <= 1 for period in periods)
        if ask in answered or fits:
            result = asker.answer(AGE, request, OVER, "")
            assert result.charged == (ask not in answered)
            assert result.release == answered.setdefault(ask, result.release)
            for period in periods if result.charged else ():
                model[period] += price
        else:
            with pytest.raises(InsufficientBudget) as refused:
                asker.answer(AGE, request, OVER, "")
            most = max(model[period] for period in periods)
            assert model[refused.value.period] == refused.value.spent == most
            assert (refused.value.requested, refused.value.remaining) == (price, 1 - most)
            assert str(refused.value).startswith(f"epsilon: {epsilon} is requested")
    standing = period_accounts(AGE, load_releases(store), range(PERIODS))
    store.close()

    assert [account.spent for account in standing] == [model[period] for period in range(PERIODS)]
    assert all(account.spent <= 1 for account in standing)
