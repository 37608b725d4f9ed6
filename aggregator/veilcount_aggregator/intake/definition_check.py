"""Reports against the definitions of their series, as one table for many series.

The reports of a device are few, and touching a column of them costs as much as one of a thousand.
So reports of all series that have one mechanism are checked together, series by series in one
table: what differs from series to series is a column too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.mechanisms.handler import MechanismHandler
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import counts_are_public
from veilcount_shared.mechanisms import Mechanism
from veilcount_shared.verdict import Verdict

from ..store import CODES, COUNTED, ROW_BYTES, Codes, Flags, Numbers
from .decode import SeriesColumns
from .decode.columns import join_columns

#: the key of reports that are checked as one table: handler, widths; no handler: all malformed
Shape = tuple[MechanismHandler[Any] | None, int, int]


@lru_cache(maxsize=1024)
def _shared_handler(mechanism: Mechanism) -> MechanismHandler[Any]:
    """Return one handler for all equal mechanisms."""
    return handler_of(mechanism)


class SeriesRules(NamedTuple):
    """What the reports of a series are checked against on one day."""

    series: Series
    day: date
    oldest: int
    newest: int
    handler: MechanismHandler[Any] | None  # None: no report counts
    width: int  # of a message
    has_tokens: bool
    has_secret_limits: bool
    limits: tuple[int, ...]

    @classmethod
    def of(cls, series: Series, day: date) -> SeriesRules:
        """Look up what does not depend on a report."""
        collection = series.collection
        width = collection.per_day
        oldest, newest = series.open_periods(day)
        limits = (
            *(collection.periods, collection.cells, oldest, newest),
            width if series.linked else 0,  # how far the slots of two periods are apart
            width if collection.slots >= width else 1,  # how many slots a period has
            0 if series.linked else 1,  # how far the epochs of two periods are apart
        )
        # What travels by shuffler is counted there alone: by two routes a report would count twice.
        handler = None if collection.batch is not None else _shared_handler(collection.mechanism)
        width, has_tokens = collection.message_bytes, series.has_tokens
        secret = not counts_are_public(collection)
        return cls(series, day, oldest, newest, handler, width, has_tokens, secret, limits)

    def shape(self, columns: SeriesColumns) -> Shape:
        """Return the key of these reports: reports of one shape are checked together."""
        width, token = columns.widths
        fits = width == self.width and bool(token) == self.has_tokens
        return self.handler if fits else None, width, token


class RulesOfDay:
    """The rules of each series, derived again when the series or the day is another."""

    def __init__(self) -> None:
        self._rules: dict[str, SeriesRules] = {}

    def of(self, series: Series, day: date) -> SeriesRules:
        """Return the rules of a series on a day."""
        rules = self._rules.get(series.fingerprint)
        if rules is None or rules.series is not series or rules.day != day:
            rules = self._rules[series.fingerprint] = SeriesRules.of(series, day)
        return rules


@dataclass(frozen=True, slots=True)
class CheckedReports:
    """A table of reports of several series, one series after the other, with their verdicts."""

    table: SeriesColumns
    parts: Sequence[tuple[SeriesRules, slice]]
    codes: Codes  # by the definition
    columns: Sequence[np.ndarray[Any, Any]]  # in the form that the store commits

    def select(self, chosen: Flags) -> CheckedReports:
        """Return some of the reports."""
        ends = [0, *chosen.cumsum().tolist()]
        parts = [(rules, slice(ends[rows.start], ends[rows.stop])) for rules, rows in self.parts]
        return CheckedReports(
            self.table.select(chosen),
            [(rules, rows) for rules, rows in parts if rows.start < rows.stop],
            self.codes[chosen],
            [column[chosen] for column in self.columns],
        )


def check_reports(
    shape: Shape, parts: Sequence[tuple[SeriesRules, SeriesColumns]]
) -> CheckedReports:
    """Give reports of one shape their verdicts by definition and age, without the store."""
    sizes = [len(columns) for _, columns in parts]
    ends = pairwise(accumulate(sizes, initial=0))
    table = join_columns([columns for _, columns in parts])
    limits = np.array([rules.limits for rules, _ in parts]).T
    if len(parts) > 1:
        limits = limits.repeat(sizes, axis=1)
    *_, apart = limits
    rules_of = [(rules, slice(*end)) for (rules, _), end in zip(parts, ends, strict=True)]
    columns = (
        *(table.pseudonyms[:, :ROW_BYTES], table.periods * apart),
        *(table.periods, table.segments, table.slots, table.messages),
        _by_age(table, limits, rules_of),
    )
    return CheckedReports(table, rules_of, _by_definition(shape, table, limits), columns)


def _by_definition(shape: Shape, table: SeriesColumns, limits: Numbers) -> Codes:
    periods, cells, _, _, apart, size, _ = limits
    first = table.periods * apart
    sound = (table.periods < periods) & (table.segments < cells)
    granted = (table.slots >= first) & (table.slots < first + size)
    handler, _, _ = shape
    messages = np.zeros_like(sound) if handler is None else handler.valid_rows(table.messages)
    codes = np.full(len(table), COUNTED)
    if (sound & granted & messages).all():  # nearly always
        return codes
    codes[~messages] = CODES[Verdict.MALFORMED]
    codes[~granted] = CODES[Verdict.OVER_BUDGET]
    codes[~sound] = CODES[Verdict.MALFORMED]
    return codes


def _by_age(
    table: SeriesColumns, limits: Numbers, parts: Iterable[tuple[SeriesRules, slice]]
) -> Codes:
    """Return each report's verdict if its slot is free."""
    _, _, oldest, newest, *_ = limits
    codes = np.full(len(table), COUNTED)
    codes[table.periods > newest] = CODES[Verdict.EARLY]
    codes[table.periods < oldest] = CODES[Verdict.STALE]
    for rules, rows in parts:
        if rules.series.closed:
            codes[rows] = CODES[Verdict.CLOSED]
    return codes
