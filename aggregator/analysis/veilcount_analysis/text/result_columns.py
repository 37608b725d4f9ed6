"""The figures of a result as columns: the same for a notebook, for CSV and for Arrow.

One row a figure. Empty cells (None) have no meaning for the row's kind.

| column | what |
|---|---|
| collection, series, question | the question, and the fingerprint of its definition |
| from, to, open_period | first and last UTC day of the periods; whether one is still open |
| first_period, last_period | their numbers |
| segments, segments.NAME | the only segments covered, if not all; each by its name |
| unit, epsilon_event, epsilon_day, epsilon_user | what the answers protect (substitution) |
| n, counts, contributions | how many reports, what n counts, how many may be one person's |
| usable | whether n reports are enough for the figures to be read |
| estimand, level, view | what the interval estimates, and its level for each value on its own |
| looks | whether it is valid at one planned look or at every look |
| kind | share, absent, raked (a share in the population of the margins), mean, bucket, curve, |
|      | quantile; of several numbers mean, deviation, covariance, correlation, coefficient, |
|      | intercept; of two questions cell, within, odds_ratio, independence |
| of | the value, as it is spelled in a parameter; a range; the numbers |
| of.PART | of crossed values: each part by its name |
| at | where a bucket begins, the edge of a curve, the requested share of a quantile |
| figure, low, high | what is estimated, in its own unit, and its interval on its own |
| fake_low, fake_high | the range of the genuine figure if the share `fakes` of reports is fake |
| answers | how many of the n persons have the value, estimated: the share times n |
| count, P, Q | reports that support the value: (count / n - Q) / (P - Q) is the raw share |
| simultaneous_low, simultaneous_high | the interval of a share, those of all values at once |

A comparison has a row a value: `a` and `b` (the sides), a_n, a_figure, a_low, a_high, the same of
b, value, value.PART, difference, low, high, p, holm (p in the family of so many values),
detectable, differs, sentence; and in all rows overall_p, of one test of all values at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any

Document = Mapping[str, Any]
Row = dict[str, Any]

ANSWER = "answer"  # the first part of a crossed value
TAKEN = "(answer)"  # an attribute may have the other name, and none can have this one
CROSSED = frozenset({ANSWER, TAKEN})
BOUNDS = frozenset({"from", "below"})  # of a range of numbers
TEXTS = (
    "collection", "series", "question", "unit", "epsilon_event", "epsilon_day",
    "epsilon_user", "counts", "estimand", "view", "looks", "kind", "of", "value", "a", "b",
    "sentence", "segments",
)  # fmt: skip
DAYS = ("from", "to")
WHOLES = ("n", "contributions", "a_n", "b_n", "family", "first_period", "last_period", "count")
FLAGS = ("open_period", "usable", "differs")
QUERY = ("collection", "level", "view", "looks", "fakes")
SERIES = ("question", "unit", "counts")
RANGE = (
    "from", "to", "first_period", "last_period", "open_period", "n", "usable", "contributions",
    "estimand",
)  # fmt: skip
#: the columns of a figure by itself
FIGURE = (
    "kind", "of", "at", "figure", "low", "high", "fake_low", "fake_high", "answers", "count",
    "simultaneous_low", "simultaneous_high",
)  # fmt: skip
ESTIMATE = (
    "collection", "series", "question", "from", "to", "first_period", "last_period", "open_period",
    "segments", "unit", "epsilon_event", "epsilon_day", "epsilon_user", "n", "usable", "counts",
    "contributions", "estimand", "level", "view", "looks", "fakes", *FIGURE, "P", "Q",
)  # fmt: skip
COMPARISON = (
    "collection", "unit", "epsilon_event", "epsilon_day", "epsilon_user", "estimand", "level",
    "looks", "family", "overall_p", "value", "a", "a_n", "a_figure", "a_low", "a_high", "b", "b_n",
    "b_figure", "b_low", "b_high", "difference", "low", "high", "p", "holm", "detectable",
    "differs", "sentence",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Columns:
    """Names in order, and as many values under each."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]

    def __getitem__(self, name: str) -> list[Any]:
        """Return one column."""
        return [row.get(name) for row in self.rows]


def columns_of(answer: Document) -> Columns:
    """Return the columns of an answer to an estimate or a comparison, as JSON has it."""
    if "series" in answer:
        rows = tuple(table(answer))
        names = with_parts(ESTIMATE, "segments", rows)
        return Columns(with_parts(names, "of", rows), rows)
    rows = tuple(comparison_table(answer))
    return Columns(with_parts(COMPARISON, "value", rows), rows)


def with_parts(names: tuple[str, ...], column: str, rows: Iterable[Row]) -> tuple[str, ...]:
    """Return names of columns; crossed values have one for each of their parts."""
    parts = dict.fromkeys(name for row in rows for name in row if name.startswith(f"{column}."))
    after = names.index(column) + 1
    return (*names[:after], *parts, *names[after:])


def kind_of(name: str) -> type:
    """Return the type of a column."""
    if name in DAYS:
        return date
    if name in TEXTS or "." in name:
        return str
    return int if name in WHOLES else bool if name in FLAGS else float


def typed_cells(name: str, rows: Iterable[Row]) -> list[Any]:
    """Return the cells of a column, days as dates: JSON and CSV have them as text."""
    texts = [row.get(name) for row in rows]
    if name not in DAYS:
        return texts
    return [None if text is None else date.fromisoformat(text) for text in texts]


def spelled(value: object) -> str:
    """Return a value as it is spelled in a parameter: text as it is, the rest as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == BOUNDS:
        return f"{value['from']:.15g}..{value['below']:.15g}"
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def value_name(value: object) -> str:
    """Return a value as people read it: of a crossed one its parts, of a range its ends."""
    if not isinstance(value, dict):
        return spelled(value)
    if set(value) == BOUNDS:
        return f"{value['from']:.6g} to {value['below']:.6g}"
    if CROSSED.isdisjoint(value):  # the answers to one or two of several questions
        return ", ".join(f"{name}: {spelled(answer)}" for name, answer in value.items())
    return " · ".join(spelled(part) for part in value.values())


def named(column: str, value: object) -> Row:
    """Return the cells of a value: as a whole, and by its parts."""
    if not isinstance(value, dict) or set(value) == BOUNDS:
        return {column: spelled(value) or None}
    parts = {f"{column}.{name}": spelled(part) for name, part in value.items()}
    return {column: spelled(value)} | parts


def row_name(value: object) -> str:
    """Return what a row of a result is about: a value, or the mean."""
    return "the mean" if value is None else value_name(value)


def table(answer: Document) -> Iterator[Row]:
    """Yield a row for each figure of an estimate."""
    return (shared | row for shared, rows in estimate_parts(answer) for row in rows)


def estimate_parts(answer: Document) -> Iterator[tuple[Row, list[Row]]]:
    """Yield the cells that figures of an estimate have in common, and the cells of each by itself.

    The former are two thirds of all columns, and the same for thousands of rows.
    """
    for of_range, raked, time_range in range_cells(answer):
        for is_raked, figures in groupby(time_range["figures"], _is_raked):
            rows = [figure | named("of", figure["of"]) for figure in figures]
            yield of_range | (raked if is_raked else {}), rows


def range_cells(answer: Document) -> Iterator[tuple[Row, Row, Document]]:
    """Yield the cells of all figures of a time range, those of raked ones alone, and the range."""
    common = {name: answer[name] for name in QUERY} | segment_cells(answer["segments"])
    for series in answer["series"]:
        facts = {name: series["facts"].get(name) for name in ("P", "Q")}
        head = common | {name: series[name] for name in SERIES} | facts
        head |= {"series": series["fingerprint"]} | _epsilons(series["epsilon"])
        for time_range in series["ranges"]:
            of_range = head | {name: time_range[name] for name in RANGE}
            raked = {"estimand": (time_range.get("weighting") or {}).get("estimand")}
            yield of_range, raked, time_range


def _is_raked(figure: Document) -> bool:
    return bool(figure["kind"] == "raked")


def segment_cells(segments: Mapping[str, object]) -> Row:
    """Return the cells of the segments covered: together, and each by its name."""
    together = ", ".join(f"{name}:{value}" for name, value in segments.items())
    cells = {f"segments.{name}": spelled(value) for name, value in segments.items()}
    return {"segments": together or None} | cells


def comparison_table(answer: Document) -> Iterator[Row]:
    """Yield a row for each value of a comparison."""
    common = {name: answer[name] for name in ("collection", "level", "looks", "estimand", "family")}
    common |= {"unit": answer["a"]["unit"]} | _epsilons(answer["a"]["epsilon"])
    common |= {"overall_p": answer["overall"]["p"] if answer["overall"] else None}
    for side in ("a", "b"):
        common |= {side: answer[side]["label"], f"{side}_n": answer[side]["n"]}
    for row in answer["rows"]:
        sides = {f"{side}_{name}": cell for side in ("a", "b") for name, cell in row[side].items()}
        yield row | common | named("value", row["value"]) | sides


def _epsilons(epsilon: Document) -> Row:
    return {f"epsilon_{name}": epsilon[name] for name in ("event", "day", "user")}
