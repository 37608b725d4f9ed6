"""Alerts: is the whole interval of an estimate past a bound?

A point estimate crosses a bound by chance, so it fires no alert by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from veilcount_analysis.errors import QueryError
from veilcount_analysis.query_params import parse_number
from veilcount_analysis.text.result_columns import spelled

from .estimate_schema import EstimateResult, RangeResult

MEAN = "mean"
FIX = "give a value, > or <, and a bound, such as 'dark > 0.6' or 'mean < 30'"
_WRITTEN = re.compile(r"\s*(.+?)\s*([<>])\s*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class AlertOutcome:
    """Whether the alert fires, and a sentence for people."""

    fires: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Alert:
    """A value (or `mean`) and the bound that it should not cross."""

    value: str
    above: bool
    bound: Fraction

    @classmethod
    def parse(cls, text: str) -> Alert:
        """Return an alert that is written VALUE > BOUND or VALUE < BOUND."""
        match = _WRITTEN.fullmatch(text)
        if match is None:
            raise QueryError("alert", text, FIX)
        return cls(match[1], match[2] == ">", parse_number("alert", match[3]))

    def evaluate(self, result: EstimateResult) -> AlertOutcome:
        """Evaluate the alert on the last time range of the newest series."""
        if not result.series:
            raise QueryError("alert", self.value, "the result has no series")
        last = result.series[0].ranges[-1]
        low, high = self._interval(last)
        fires = low > self.bound if self.above else high < self.bound
        return AlertOutcome(fires, self._sentence(last, low, high, result.level, fires=fires))

    def _interval(self, time_range: RangeResult) -> tuple[float, float]:
        rows = {
            MEAN if row.kind == MEAN else spelled(row.of): row
            for row in time_range.figures
            if row.kind in {MEAN, "share"}
        }
        if row := rows.get(self.value):
            return row.interval
        names = ", ".join(list(rows)[:5])
        raise QueryError("alert", self.value, f"the result has no such value: give one of {names}")

    def _sentence(
        self, time_range: RangeResult, low: float, high: float, level: float, *, fires: bool
    ) -> str:
        side, bound = ("above", "below")[not self.above], f"{float(self.bound):g}"
        interval = f"{low:.4g} to {high:.4g} ({100 * level:.4g} % interval, n = {time_range.n:,})"
        days = f"{time_range.first} to {time_range.last}"
        if fires:
            return f"ALARM: {self.value} is {side} {bound}: all of {interval} is; {days}."
        return f"No alarm: {self.value} need not be {side} {bound}: {interval}; {days}."
