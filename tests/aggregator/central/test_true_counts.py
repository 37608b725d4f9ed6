"""True counts leave a curator in a release alone: in no dry run, no error and no journal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest

import veilcount_aggregator.central.curator as curating
from tests.aggregator.curator_fixtures import AGE, OVER, curator, fill, series, wanted
from veilcount_aggregator.central.budget_ledger import load_releases, release_records
from veilcount_aggregator.central.curator import Curator, DrawFailed
from veilcount_aggregator.central.privacy_filter import PrivacyFilter
from veilcount_aggregator.store import Store

TRUTH = (4241, 2203, 1009, 466)  # 7919 answers
MARKED = re.compile(rf"(?<![\w.])({'|'.join(map(str, (*TRUTH, sum(TRUTH))))})(?!\w)")


RECORDS_ONLY = {
    "records",
    "record_count",
    "generation",
    "generations",
    "change_records",
    "incarnation",
}


class Unreadable:
    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        assert name in RECORDS_ONLY, f"{name} reads answers"
        return getattr(self._store, name)


def test_a_dry_run_reads_no_answer_and_costs_nothing(asker: Curator, store: Store) -> None:
    asker.answer(AGE, wanted("count", "0.25"), OVER, "")
    blind = Curator(PrivacyFilter(Unreadable(store), asker.filter.journal))
    before = store.generation()
    dry = blind.dry_run(AGE, wanted("mean", "0.5", 0, 4))

    assert dry.question.charges == dict.fromkeys(range(5), 500_000)
    assert [part.name for part in dry.noise] == ["centred sum", "count"]
    assert [account.remaining for account in dry.accounts] == [Fraction(3, 4), 1, 1, 1, 1]
    assert store.generation() == before
    with pytest.raises(DrawFailed, match="AssertionError"):
        blind.answer(AGE, wanted("mean", "0.5"), OVER, "")


def test_a_dry_run_shows_the_noise_of_the_release(asker: Curator) -> None:
    dry = asker.dry_run(AGE, wanted("histogram", "0.5"))
    result = asker.answer(AGE, wanted("histogram", "0.5"), OVER, "")

    assert dry.noise == result.release.noise
    assert dry.question.canonical == result.release.canonical


def test_a_period_of_no_answers_is_released_like_any(asker: Curator) -> None:
    result = asker.answer(AGE, wanted("histogram", 1, 5), OVER, "")

    assert len(result.release.values) == 4
    assert result.release.n is None


@pytest.mark.parametrize(("adjacency", "n"), [('"add-remove"', None), ('"substitute"', 7919)])
def test_n_is_released_only_where_all_neighbours_have_the_same(
    store: Store, journal: Path, adjacency: str, n: int | None
) -> None:
    which = series(adjacency=adjacency)
    fill(store, which, TRUTH)
    asker = curator(store, journal)
    result = asker.answer(which, wanted("mean", "0.00001"), OVER, "")
    sinks = repr((result, asker)) + journal.read_text() + repr(release_records(store))

    assert result.release.n == n
    assert [int(found) for found in MARKED.findall(sinks)] == [n] * sinks.count("7919")


def test_a_fault_between_counts_and_noise_carries_no_count(
    store: Store, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object, counters: np.ndarray[Any, Any]) -> None:
        raise ValueError(f"cannot add noise to {counters.tolist()}")

    fill(store, AGE, TRUTH)
    monkeypatch.setattr(curating, "draw_release", fail)
    with pytest.raises(DrawFailed) as failed:
        curator(store, journal).answer(AGE, wanted("histogram", 1), OVER, "")

    assert str(failed.value).startswith("ValueError at ")
    assert failed.value.__context__ is failed.value.__cause__ is None
    assert not MARKED.search(str(failed.value) + "".join(seen(failed.value.__traceback__)))
    assert load_releases(store) == []


def seen(trace: TracebackType | None) -> Iterator[str]:
    while trace is not None:
        if "veilcount_aggregator" in trace.tb_frame.f_code.co_filename:
            yield repr(trace.tb_frame.f_locals)
        trace = trace.tb_next
