"""Any sequence of calls, on every engine, returns what the plainest store would."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from veilcount_aggregator.errors import StoreReadOnly
from veilcount_aggregator.store import Record, ServiceCounter, Store, open_store
from veilcount_aggregator.store.memory.store import MemoryStore
from veilcount_analysis.series.series import Series
from veilcount_shared.verdict import Verdict

from .conftest import OPERATED
from .engines import Empty
from .series_fixtures import (
    ARMS,
    DAILY,
    LINKED,
    LONG_AGO,
    SPARING,
    UNLINKED,
    SlotReport,
    counts,
    decode_verdicts,
    digest,
    drop,
    histograms,
    report_columns,
    row,
    series,
)

PERIODS = 4
BUSY = series("three", "per_day = 9", unit="event")
WIDE = series("wide")
KINDS = (DAILY, LINKED, SPARING, UNLINKED, ARMS, BUSY, WIDE)
ROWS = st.sampled_from([row(n) for n in range(4)])
JUDGED = st.sampled_from([Verdict.COUNTED] * 4 + [Verdict.STALE, Verdict.EARLY, Verdict.CLOSED])


@st.composite
def report_groups(draw: st.DrawFn) -> tuple[Series, list[SlotReport], int]:
    which = draw(st.sampled_from(KINDS))
    report = st.builds(
        SlotReport,
        row=ROWS,
        period=st.integers(0, PERIODS - 1),
        slot=st.integers(0, which.bits - 1) if which is BUSY else st.none(),
        message=st.integers(0, 2),
        segment=st.integers(0, which.collection.cells - 1),
        otherwise=JUDGED,
    )
    return which, draw(st.lists(report, max_size=12)), draw(st.sampled_from([0, 1, 3, 100]))


class Machine(RuleBasedStateMachine):
    empty: Empty

    def __init__(self) -> None:
        super().__init__()
        self.url = self.empty()
        self.store = open_store(self.url, make=True)
        self.model = MemoryStore()

    @rule(
        group=st.lists(report_groups(), min_size=1, max_size=4),
        noted=st.integers(0, 2),
    )
    def commit(self, group: list[tuple[Series, list[SlotReport], int]], noted: int) -> None:
        """A group of several requests is judged as one after the other."""
        columns = [report_columns(*each) for each in group]
        note = ServiceCounter("request", "", -1, "200")
        self._agree(lambda store: list(map(decode_verdicts, store.commit(columns, {note: noted}))))

    @rule(which=st.sampled_from(KINDS), first=st.integers(0, PERIODS - 1), who=ROWS)
    def close_row(self, which: Series, first: int, who: bytes) -> None:
        epochs = sorted({which.epoch(period) for period in range(first, PERIODS)})
        self._agree(lambda store: store.close_row(which, epochs, who))

    @rule(which=st.sampled_from(KINDS), epochs=st.integers(1, 2))
    def drop(self, which: Series, epochs: int) -> None:
        """Epochs are over; a read-only store says so unless they are over already."""
        epochs = min(epochs, which.epoch(PERIODS) or 1)
        if not self.model.content.read_only:
            self._agree(lambda store: drop(store, which, epochs))

    @rule(which=st.sampled_from(KINDS), days=st.sampled_from([0, 0, 1]))
    def finalize_dropped(self, which: Series, days: int) -> None:
        """What was dropped a while ago becomes final: at once, or not yet."""
        if not self.model.content.read_only:
            self._agree(lambda store: store.finalize_dropped(which, timedelta(days), LONG_AGO))

    @rule(which=st.sampled_from(KINDS))
    def delete_rows(self, which: Series) -> None:
        """Nobody notices whether the rows of a final drop are still there."""
        self.store.delete_rows(which)

    @rule(which=st.sampled_from(KINDS))
    def restore_epochs(self, which: Series) -> None:
        """What was dropped and not deleted takes reports again."""
        self._agree(lambda store: store.restore_dropped(which))

    @rule(
        lag=st.sampled_from([0, 0, 0, 1]),
        key=st.sampled_from("ab"),
        value=st.none() | st.binary(max_size=3),
    )
    def change(self, lag: int, key: str, value: bytes | None) -> None:
        generation, records = self.model.generation() - lag, [Record("kind", key, value)]
        self._agree(lambda store: store.change_records(generation, records))

    @rule(on=st.booleans())
    def set_read_only(self, on: bool) -> None:  # noqa: FBT001 - hypothesis names it
        self._agree(lambda store: store.set_read_only(on=on))

    @rule()
    def open_again(self) -> None:
        """The process ends, and another begins."""
        self.store.close()
        self.store = open_store(self.url)

    @invariant()
    def everything_agrees(self) -> None:
        model, store = self.model, self.store
        for which in KINDS:
            cells = list(model.report_counts(which))
            assert store.report_counts(which) == model.report_counts(which)
            assert counts(store, which, *cells) == counts(model, which, *cells)
            assert histograms(store, which) == histograms(model, which)
            assert store.new_pseudonyms(which) == model.new_pseudonyms(which)
        assert store.service_counts() == model.service_counts()
        assert store.generation() == model.generation()
        assert store.generations() == model.generations()
        assert store.records("kind") == model.records("kind")
        assert store.health().read_only == model.content.read_only
        assert digest(store) == digest(model)

    def teardown(self) -> None:
        self.store.close()

    def _agree(self, act: Callable[[Store], object]) -> None:
        """Both do the same, or both are read-only and change nothing."""
        before = digest(self.store)
        try:
            expected = act(self.model)
        except StoreReadOnly:
            with pytest.raises(StoreReadOnly):
                act(self.store)
            assert digest(self.store) == before
        else:
            assert act(self.store) == expected


@pytest.mark.parametrize("empty", OPERATED, indirect=True)
def test_a_store_does_what_its_model_does(empty: Empty) -> None:
    machine = type("Machine", (Machine,), {"empty": staticmethod(empty)})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=20, stateful_step_count=10, deadline=None)
    )
