"""The figures of a result as columns: the same for a notebook, for CSV and for Arrow.

One row a figure. Empty cells (None) have no meaning for the row's kind.

| column | what |
|---|---|
| collection, series, question | the question, and the fingerprint of its definition |
| from, to, open_period | first and last UTC day of the periods; whether one is still open |
| first_period, last_period, segments | their numbers; the only segments covered, if not all |
| unit, epsilon_event, epsilon_day, epsilon_user | what the answers protect (substitution) |
| n, counts, contributions | how many reports, what n counts, how many may be one person's |
| usable | whether n reports are enough for the figures to be read |
| estimand, level, view | what the interval estimates, and its level for each value on its own |
| looks | whether it is valid at one planned look or at every look |
| kind | share, absent, mean, bucket, curve, quantile; of several numbers mean, deviation, |
|      | covariance, correlation, coefficient, intercept |
| value | the value, as it is spelled in a parameter |
| value.PART | of crossed values: each part by its name |
| number | of a mean its figure; of a curve the edge, of a quantile the number, of a bucket |
| frequency | the share; of a curve that below its edge, of a quantile the requested one |
| answers | the share of n |
| low, high | the interval of the figure on its own; of a quantile in the units of the number |
| simultaneous_low, simultaneous_high | the interval of a share, those of all values at once |
| count, P, Q | reports that support the value: (count / n - Q) / (P - Q) is the raw share |
| fake_low, fake_high | the range of the genuine figure if the share `fakes` of reports is fake |

A comparison has a row a value: `a` and `b` (the sides), a_n, a_figure, a_low, a_high, the same of
b, difference, low, high, p, holm (p in the family of so many values), detectable, differs,
sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]
Row = dict[str, Any]

PART = "value."  # in front of the names of a crossed value's parts
TEXTS = (
    "collection", "series", "question", "from", "to", "unit", "epsilon_event", "epsilon_day",
    "epsilon_user", "counts", "estimand", "view", "looks", "kind", "value", "a", "b", "sentence",
    "segments",
)  # fmt: skip
WHOLES = ("n", "contributions", "a_n", "b_n", "family", "first_period", "last_period", "count")
FLAGS = ("open_period", "usable", "differs")
ESTIMATE = (
    "collection", "series", "question", "from", "to", "first_period", "last_period", "open_period",
    "segments", "unit", "epsilon_event", "epsilon_day", "epsilon_user", "n", "usable", "counts",
    "contributions", "estimand", "level", "view", "looks", "kind", "value", "number", "frequency",
    "answers", "low", "high", "simultaneous_low", "simultaneous_high", "count", "P", "Q", "fakes",
    "fake_low", "fake_high",
)  # fmt: skip
COMPARISON = (
    "collection", "unit", "epsilon_event", "epsilon_day", "epsilon_user", "estimand", "level",
    "looks", "family", "value", "a", "a_n", "a_figure", "a_low", "a_high", "b", "b_n", "b_figure",
    "b_low", "b_high", "difference", "low", "high", "p", "holm", "detectable", "differs",
    "sentence",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Columns:
    """Names in order, and as many values under each."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]

    def __getitem__(self, name: str) -> list[Any]:
        """Return one column."""
        return [row.get(name) for row in self.rows]

    def as_dict(self) -> dict[str, list[Any]]:
        """Return all columns by name."""
        return {name: self[name] for name in self.names}


def columns_of(answer: Document) -> Columns:
    """Return the columns of an answer to an estimate or a comparison, as JSON has it."""
    estimate = "series" in answer
    rows = tuple(_estimate(answer) if estimate else _comparison(answer))
    parts = dict.fromkeys(name for row in rows for name in row if name.startswith(PART))
    names = ESTIMATE if estimate else COMPARISON
    after = names.index("value") + 1
    return Columns((*names[:after], *parts, *names[after:]), rows)


def kind_of(name: str) -> type:
    """Return the type of a column."""
    if name in TEXTS or name.startswith(PART):
        return str
    return int if name in WHOLES else bool if name in FLAGS else float


def spelled(value: object) -> str:
    """Return a value as it is spelled in a parameter: text as it is, the rest as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == {"from", "below"}:
        return f"{value['from']:.15g}..{value['below']:.15g}"
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _valued(value: object) -> Row:
    """Return the cells of a value: as a whole, and by its parts."""
    if not isinstance(value, dict) or set(value) == {"from", "below"}:
        return {"value": spelled(value) or None}
    parts = {PART + name: spelled(part) for name, part in value.items()}
    return {"value": spelled(value)} | parts


def value_name(value: object) -> str:
    """Return a value as people read it: of a crossed one its parts, of a range its ends."""
    if not isinstance(value, dict):
        return spelled(value)
    if set(value) == {"from", "below"}:
        return f"{value['from']:.6g} to {value['below']:.6g}"
    return " · ".join(spelled(part) for part in value.values())


def row_name(value: object) -> str:
    """Return what a row of a result is about: a value, or the mean."""
    return "the mean" if value is None else value_name(value)


# -- estimates -------------------------------------------------------------------------------------


def _estimate(answer: Document) -> Iterator[Row]:
    common = {name: answer[name] for name in ("collection", "level", "view", "looks", "fakes")}
    segments = answer.get("segments", {}).items()
    common["segments"] = ", ".join(f"{name}:{value}" for name, value in segments) or None
    for series in answer["series"]:
        of_series = common | _of_series(series)
        for time_range in series["time_ranges"]:
            of_range = of_series | {
                name: time_range[name]
                for name in (
                    "from",
                    "to",
                    "first_period",
                    "last_period",
                    "open_period",
                    "n",
                    "usable",
                    "contributions",
                    "estimand",
                )
            }
            for row in _figures(time_range):
                yield of_range | row


def _of_series(series: Document) -> Row:
    return {
        "series": series["fingerprint"],
        "question": series["question"],
        "unit": series["unit"],
        "counts": series["counts"],
        "P": series["P"],
        "Q": series["Q"],
    } | _epsilons(series["epsilon"])


def _epsilons(epsilon: Document) -> Row:
    return {f"epsilon_{name}": epsilon[name] for name in ("event", "day", "user")}


def _figures(time_range: Document) -> Iterator[Row]:
    for row in time_range["values"]:
        yield {"kind": "share", **row, **_valued(row["value"])}
    if time_range["absent"]:
        yield {"kind": "absent", **time_range["absent"]}
    if time_range["mean"]:
        mean = dict(time_range["mean"])
        yield {"kind": "mean", "number": mean.pop("mean"), **mean}
    for row in time_range.get("moments", []):
        yield {"kind": row["kind"], "value": ", ".join(row["of"]), "number": row["figure"]} | {
            name: row[name] for name in ("low", "high", "fake_low", "fake_high")
        }
    if time_range["spread"]:
        yield from _spread(time_range["spread"])


def _spread(spread: Document) -> Iterator[Row]:
    for bucket in spread["buckets"]:
        yield {"kind": "bucket", "number": bucket["from"], "frequency": bucket["frequency"]}
    for point in spread["curve"]:
        ends = {"low": point["low"], "high": point["high"]}
        yield {"kind": "curve", "number": point["at"], "frequency": point["share"], **ends}
    for each in spread["quantiles"]:
        ends = {"low": each["low"], "high": each["high"]}
        yield {"kind": "quantile", "number": each["value"], "frequency": each["share"], **ends}


# -- comparisons -----------------------------------------------------------------------------------


def _comparison(answer: Document) -> Iterator[Row]:
    common = {name: answer[name] for name in ("collection", "level", "looks", "estimand", "family")}
    common |= {"unit": answer["a"]["unit"]} | _epsilons(answer["a"]["epsilon"])
    for side in ("a", "b"):
        common |= {side: answer[side]["label"], f"{side}_n": answer[side]["n"]}
    for row in answer["rows"]:
        yield (
            common
            | {**row, **_valued(row["value"]), **_side("a", row), **_side("b", row)}
            | {side: common[side] for side in ("a", "b")}
        )


def _side(side: str, row: Document) -> Row:
    return {f"{side}_{name}": row[side][name] for name in ("figure", "low", "high")}
