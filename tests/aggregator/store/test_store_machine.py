"""Any sequence of calls, on every engine, returns what the plainest store would."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from veilcount_aggregator.store import BatchChange, Record, ServiceCounter
from veilcount_aggregator.store.sql.store import SqlStore
from veilcount_analysis.series.series import Series
from veilcount_shared.verdict import Verdict

from .conftest import OPERATED
from .engines import Empty
from .series_fixtures import (
    ARMS,
    DAILY,
    HASHES,
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
from .shuffled_batch_machine import BatchMachine
from .store_machine import StoreMachine

PERIODS = 4
BUSY = series("three", "per_day = 9", unit="event")
WIDE = series("wide")
HASHED = series("hashes")
KINDS = (DAILY, LINKED, SPARING, UNLINKED, ARMS, BUSY, WIDE, HASHED)
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
        message=st.sampled_from(HASHES) if which is HASHED else st.integers(0, 2),
        segment=st.integers(0, which.collection.cells - 1),
        otherwise=JUDGED,
    )
    return which, draw(st.lists(report, max_size=12)), draw(st.sampled_from([0, 1, 3, 100]))


class Machine(BatchMachine):
    @rule(
        group=st.lists(report_groups(), min_size=1, max_size=4),
        noted=st.integers(0, 2),
    )
    def commit(self, group: list[tuple[Series, list[SlotReport], int]], noted: int) -> None:
        """A group of several requests is judged as one after the other."""
        columns = [report_columns(*each) for each in group]
        note = ServiceCounter("request", "", -1, "200")
        self.agree(lambda store: list(map(decode_verdicts, store.commit(columns, {note: noted}))))

    @rule(which=st.sampled_from(KINDS), first=st.integers(0, PERIODS - 1), who=ROWS)
    def close_row(self, which: Series, first: int, who: bytes) -> None:
        epochs = sorted({which.epoch(period) for period in range(first, PERIODS)})
        self.agree(lambda store: store.close_row(which, epochs, who))

    @rule(which=st.sampled_from(KINDS), epochs=st.integers(1, 2))
    def drop(self, which: Series, epochs: int) -> None:
        """Epochs are over; a read-only store says so unless they are over already."""
        epochs = min(epochs, which.epoch(PERIODS) or 1)
        if not self.model.content.read_only:
            self.agree(lambda store: drop(store, which, epochs))

    @rule(which=st.sampled_from(KINDS), days=st.sampled_from([0, 0, 1]))
    def finalize_dropped(self, which: Series, days: int) -> None:
        """What was dropped a while ago becomes final: at once, or not yet."""
        if not self.model.content.read_only:
            self.agree(lambda store: store.finalize_dropped(which, timedelta(days), LONG_AGO))

    @rule(which=st.sampled_from(KINDS))
    def delete_rows(self, which: Series) -> None:
        """Nobody notices whether the rows of a final drop are still there."""
        self.store.delete_rows(which)

    @rule(which=st.sampled_from(KINDS))
    def restore_epochs(self, which: Series) -> None:
        """What was dropped and not deleted takes reports again."""
        self.agree(lambda store: store.restore_dropped(which))

    @rule(
        lag=st.sampled_from([0, 0, 0, 1]),
        key=st.sampled_from("ab"),
        value=st.none() | st.binary(max_size=3),
    )
    def change(self, lag: int, key: str, value: bytes | None) -> None:
        generation, records = self.model.generation() - lag, [Record("kind", key, value)]
        self.agree(lambda store: store.change_records(generation, records))

    @rule(on=st.booleans())
    def set_read_only(self, on: bool) -> None:  # noqa: FBT001 - hypothesis names it
        self.agree(lambda store: store.set_read_only(on=on))

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


@pytest.mark.parametrize("kind", [Machine, BatchMachine])
@pytest.mark.parametrize("empty", OPERATED, indirect=True)
def test_a_store_does_what_its_model_does(empty: Empty, kind: type[StoreMachine]) -> None:
    """In any order of all rules; and in more of what is done to batches."""
    machine = type("Machine", (kind,), {"empty": staticmethod(empty)})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=20, stateful_step_count=10, deadline=None)
    )


# -- planted faults: an engine that has one is told from its model ---------------------------------


def grows_whatever_was_read(store: SqlStore, series: Series, change: BatchChange) -> bool:
    """Change an entry whatever it is."""
    return CHANGE_BATCH(store, series, change._replace(expected=store.batch(series, change.key)))


def spends_nothing(store: SqlStore, series: Series, change: BatchChange) -> bool:
    """Leave out the tokens."""
    return CHANGE_BATCH(store, series, change._replace(spent=change.spent[:0]))


def adds_no_counters(store: SqlStore, series: Series, change: BatchChange) -> bool:
    """Leave out what the last part adds to the tally."""
    return CHANGE_BATCH(store, series, change._replace(reports=0, counters=None))


CHANGE_BATCH = SqlStore.change_batch
PLANTED = {
    "expected": ("change_batch", grows_whatever_was_read),
    "spent": ("change_batch", spends_nothing),
    "counters": ("change_batch", adds_no_counters),
    "forgotten": ("forget_tokens", lambda *_: None),
}


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("empty", ["sqlite"], indirect=True)
def test_planted_a_store_with_a_fault_does_not(
    empty: Empty, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Also by the rules of batches alone, and without a search for the least example."""
    monkeypatch.setattr(SqlStore, *PLANTED[name])
    machine = type("Machine", (BatchMachine,), {"empty": staticmethod(empty)})
    once = settings(
        max_examples=60,
        stateful_step_count=12,
        deadline=None,
        phases=[Phase.generate],
        derandomize=True,
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=once)
