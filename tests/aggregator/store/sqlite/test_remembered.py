"""What the intake of a SQLite store remembers between groups: never more than is still so."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.store import Quota, Store
from veilcount_aggregator.store.memory.store import MemoryStore
from veilcount_aggregator.store.sql import intake, remembered
from veilcount_aggregator.store.sql.remembered import NUMBER_BYTES, RememberedSeries
from veilcount_aggregator.store.sqlite.store import SqliteStore
from veilcount_shared.verdict import Verdict

from ..series_fixtures import (
    ARMS,
    DAILY,
    LINKED,
    SPARING,
    decode_verdicts,
    digest,
    drop,
    everything,
    report,
    report_columns,
    row,
    send,
    series,
)
from .sqlite_fixtures import open_at

WHICH = (DAILY, LINKED, SPARING, ARMS, series("wide"), series("hashes"))
STEPS = 60
Step = Callable[[Store], object]


def random_steps(seed: int) -> Iterator[Step]:
    """Groups of new and old rows, within limits and beyond, and what others change meanwhile."""
    chance = random.Random(seed)
    for _ in range(STEPS):
        kind, which = chance.random(), chance.choice(WHICH)
        if kind < 0.05:
            yield _closing_a_row(chance.randrange(40))
        elif kind < 0.1:
            yield _dropping(chance.randrange(1, 4))
        elif kind < 0.15:
            yield lambda store: store.restore_dropped(DAILY)
        else:
            yield _a_group(chance, which)


def _closing_a_row(number: int) -> Step:
    return lambda store: store.close_row(LINKED, [0], row(number))


def _dropping(epochs: int) -> Step:
    return lambda store: drop(store, DAILY, epochs)


def _a_group(chance: random.Random, which: object) -> Step:
    group = []
    for each in chance.sample(WHICH, chance.choice([1, 1, 3])):
        numbers = [chance.randrange(400) for _ in range(chance.choice([1, 3, 12]))]
        reports = [
            report(number, number % 4, segment=number % each.collection.cells) for number in numbers
        ]
        limit = chance.choice([60, 1 << 40])
        quota = Quota(chance.randrange(2), "key/any", chance.choice([20, 500]))
        group.append(report_columns(each, reports, limit, chance.choice([None, quota])))
    return lambda store: [decode_verdicts(codes) for codes in store.commit(group, {})]


def outcomes(seed: int, stores: Sequence[Store]) -> list[object]:
    """Take each step on one of the stores, in a random order."""
    chance = random.Random(seed)
    return [step(chance.choice(stores)) for step in random_steps(seed)]


def differing(folder: Path, seeds: range) -> int:
    """Return after how many walks two processes' stores are not what a store in memory is."""
    wrong = 0
    for seed in seeds:
        path, model = folder / f"{seed}.db", MemoryStore()
        with closing(open_at(path)) as one, closing(open_at(path)) as other:
            same = outcomes(seed, [one, other]) == outcomes(seed, [model])
            wrong += not (same and digest(one) == digest(model))
            assert everything(one) == everything(other)
    return wrong


def test_two_that_write_in_turns_agree_with_the_model(tmp_path: Path) -> None:
    """On verdicts and on all that is stored."""
    assert differing(tmp_path, range(6)) == 0


@pytest.mark.parametrize("planted", ["moment", "presumption"])
def test_memory_that_is_kept_too_long_would_be_noticed(
    planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past what another process writes; or if rows that were there are taken for new."""
    if planted == "moment":
        monkeypatch.setattr(SqliteStore, "moments", lambda *_: (None, None))
    else:
        monkeypatch.setattr(intake, "_SPEND_NEW", intake._SPEND_MANY)

    assert differing(tmp_path, range(6)) > 0


def looked_up(store: SqliteStore, numbers: range) -> list[str]:
    """Return the statements that look up rows, while a group is committed."""
    statements: list[str] = []
    with store.file.writing() as database:
        database.set_trace_callback(statements.append)
    send(store, DAILY, *(report(number) for number in numbers))
    with store.file.writing() as database:
        database.set_trace_callback(None)
    return [each for each in statements if each.startswith("select") and "ledger" in each]


def test_rows_are_looked_up_once_some_were_not_new(tmp_path: Path) -> None:
    """And for some groups from then on."""
    with closing(open_at(tmp_path / "store.db")) as store:
        new = looked_up(store, range(100))
        again = looked_up(store, range(90, 110))
        later = [bool(looked_up(store, range(n, n + 9))) for n in range(200, 400, 10)]

    assert new == []
    assert again
    assert later == [True] * 15 + [False] * 5


def test_a_group_that_fails_leaves_nothing_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had counted is undone in the file, and so in memory."""
    spend = intake._spend

    def failing(*arguments: object, **options: object) -> None:
        spend(*arguments, **options)  # type: ignore[arg-type]
        raise StoreUnavailable("planted")

    with closing(open_at(tmp_path / "store.db")) as store:
        send(store, DAILY, report(1))
        with monkeypatch.context() as patch, suppress(StoreUnavailable):
            patch.setattr(intake, "_spend", failing)
            send(store, DAILY, report(2), report(3))
        verdicts = send(store, DAILY, report(2), report(1))

        assert verdicts == [Verdict.COUNTED, Verdict.DUPLICATE]
        assert store.new_pseudonyms(DAILY) == {0: 2}
        assert store.report_counts(DAILY) == {(0, 0): 2}


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a series with many cells, as of many series."""
    monkeypatch.setattr(remembered, "MOST_BYTES", 20_000)
    with closing(open_at(tmp_path / "store.db")) as store:
        for period in range(60):
            send(store, ARMS, *(report(number, period, segment=number % 2) for number in range(4)))

            assert sum(map(size, store._remembered._series.values())) < 22_000


def size(series: RememberedSeries) -> int:
    """Return the bytes of a series in memory, as the intake counts them."""
    arrays = [*series.spent_rows.values(), *series.tallies.values()]
    numbers = len(series.new_rows) + len(series.hourly) + len(arrays)
    return numbers * NUMBER_BYTES + sum(array.nbytes for array in arrays)
