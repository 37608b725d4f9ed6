"""Counting a table of reports at once gives what judging them one by one gives."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilcount_aggregator.store import (
    CODES,
    COUNTED,
    ROW_BYTES,
    SeriesReports,
    slot_rules,
)
from veilcount_aggregator.store.series_reports import Quota, join_reports
from veilcount_aggregator.store.slot_rules import SeriesState, assign_verdicts
from veilcount_analysis.series.series import Series
from veilcount_shared.verdict import Verdict

from .series_fixtures import ARMS, DAILY, LINKED, SPARING

ROWS = [bytes([number]) * ROW_BYTES for number in range(4)]
PERIODS, SLOTS = 3, 3
OTHERWISE = [COUNTED] * 9 + [CODES[Verdict.STALE]]
small = st.integers(0, 4)


@st.composite
def reports(draw: st.DrawFn, series: Series) -> SeriesReports:
    """Return a few reports of a few devices, most of which have nothing that is refused."""
    one = st.tuples(
        st.sampled_from(ROWS),
        st.integers(0, PERIODS - 1),
        st.integers(0, series.collection.cells - 1),
        st.integers(0, SLOTS - 1),
        st.sampled_from(OTHERWISE),
    )
    rows, periods, segments, slots, otherwise = zip(
        *draw(st.lists(one, min_size=1, max_size=8)), strict=True
    )
    return SeriesReports.of_one(
        series,
        rows=np.frombuffer(b"".join(rows), np.uint8).reshape(-1, ROW_BYTES),
        epochs=np.array([0] * len(rows) if series.linked else periods),
        periods=np.array(periods),
        segments=np.array(segments),
        slots=np.array(slots),
        messages=np.arange(len(rows), dtype=np.uint8)[:, None],
        default_verdicts=np.array(otherwise, np.uint8),
        new_pseudonym_limit=draw(small),
        quota=draw(st.none() | st.builds(Quota, st.just(1), st.sampled_from(["", "a"]), small)),
    )


@st.composite
def groups(draw: st.DrawFn) -> tuple[int, list[SeriesReports]]:
    """Return the first epoch that is not dropped, and some groups."""
    series = draw(st.sampled_from([DAILY, LINKED, SPARING, ARMS]))
    dropped = draw(st.sampled_from([0, 0, 0, 1]))
    return (
        dropped,
        draw(st.lists(reports(series), min_size=1, max_size=4)),
    )


def judged(dropped: int, group: list[SeriesReports]) -> tuple[object, ...]:
    """Return the verdicts of a group, and all that an engine writes of its state."""
    table = join_reports(group)
    most, listed = table.parts[0].series.most, slot_rules.reports_of(table)
    state = SeriesState(most, dropped, defaultdict(int), defaultdict(int), defaultdict(int))
    verdicts = [assign_verdicts(state, part.quota, listed[part.rows]) for part in table.parts]
    return (
        verdicts,
        {row: state.spent[row] for row in state.changed},
        {period: state.new_rows[period] for period in state.grown},
        {quota: state.hourly[quota] for quota in state.charged},
        moved(state.steps),
        {cell: sorted(places) for cell, places in state.counted.items()},
        state.refused,
    )


def moved(steps: Mapping[tuple[int, int, int], int]) -> Counter[tuple[int, int]]:
    """Return how many more rows of each epoch have spent so many slots."""
    change = Counter[tuple[int, int]]()
    for (epoch, had, has), rows in steps.items():
        change[epoch, has] += rows
        change[epoch, had] -= rows
    return change


@given(groups())
def test_a_table_counted_at_once_is_judged_as_its_reports_one_by_one(
    case: tuple[int, list[SeriesReports]],
) -> None:
    dropped, group = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slot_rules, "FEW", 0)
        at_once = judged(dropped, group)
        patch.setattr(slot_rules, "_count_all", lambda *_: False)

        assert judged(dropped, group) == at_once
