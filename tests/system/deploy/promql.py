"""Evaluator of the part of PromQL that alerts are written in, over scrapes with times of their own.

As Prometheus does it, with two simplifications: nothing is extrapolated to the ends of a range, and
the last scrape at or before an instant counts however old it is. What is not known here is an
error: an alert that is written in more needs more of this.
"""

from __future__ import annotations

import math
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Value = Vector | float

TOKEN = re.compile(r'\s*("[^"]*"|\d+(?:\.\d+)?[smhdw]?|[a-zA-Z_]\w*|=~|!=|==|[-*<>=(){}\[\],])')
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, "<": operator.lt, "==": operator.eq,
}  # fmt: skip
ARITHMETIC: dict[str, Callable[[float, float], float]] = {"-": operator.sub, "*": operator.mul}
#: loosest first
LEVELS = (("or",), ("and", "unless"), tuple(COMPARISONS), ("-",), ("*",))
AGGREGATIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": sum, "max": max, "count": len,
}  # fmt: skip


class Sample(NamedTuple):
    """One line of an exposition."""

    name: str
    labels: dict[str, str]
    value: float


class Scrape(NamedTuple):
    """What was read at one instant."""

    at: float
    samples: Sequence[Sample]


def read(exposition: str) -> Iterator[Sample]:
    for line in exposition.splitlines():
        if match := re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line):
            labels = re.findall(r'(\w+)="([^"]*)"', match[2] or "")
            yield Sample(match[1], dict(labels), float(match[3]))


def evaluate(expression: str, scrapes: Sequence[Scrape], now: float) -> Value:
    parser = _Parser(_tokens(expression), sorted(scrapes), now)
    value = parser.binary(0)
    if parser.tokens:
        raise ValueError(f"not understood: {parser.tokens}")
    return value


def fires(expression: str, scrapes: Sequence[Scrape], now: float) -> bool:
    value = evaluate(expression, scrapes, now)
    return bool(value) if isinstance(value, dict) else True


@dataclass
class _Parser:
    tokens: list[str]
    scrapes: list[Scrape]
    now: float

    def binary(self, level: int) -> Value:
        """Evaluate operators of one precedence, from left to right."""
        if level == len(LEVELS):
            return self.primary()
        left = self.binary(level + 1)
        while self.tokens and self.tokens[0] in LEVELS[level]:
            name = self.tokens.pop(0)
            on = self.labels() if self.take("on") else None
            if self.take("group_left"):
                self.labels()
            left = _combined(name, left, self.binary(level + 1), on)
        return left

    def primary(self) -> Value:  # noqa: PLR0911 - one for each kind
        """Evaluate a number, a group, a function, an aggregation or a selector."""
        token = self.tokens.pop(0)
        if token == "(":
            self.tokens.insert(0, token)
            return self.grouped()
        if token[0].isdigit():
            return float(token)
        if token in AGGREGATIONS:
            return self.aggregation(AGGREGATIONS[token])
        if token in {"rate", "increase"}:
            return self.rate(per_second=token == "rate")
        if token == "time":
            self.expect("(", ")")
            return self.now
        if token == "abs":
            return {labels: abs(number) for labels, number in self.vector().items()}
        if token == "histogram_quantile":
            return self.quantile()
        if self.tokens and self.tokens[0] == "(":
            raise ValueError(f"not understood: {token}()")
        return self.instant(token)

    def grouped(self) -> Value:
        self.expect("(")
        value = self.binary(0)
        self.expect(")")
        return value

    def vector(self) -> Vector:
        value = self.grouped()
        assert isinstance(value, dict)
        return value

    def aggregation(self, together: Callable[[Sequence[float]], float]) -> Vector:
        by = self.labels() if self.take("by") else ()
        groups: defaultdict[Labels, list[float]] = defaultdict(list)
        for labels, number in self.vector().items():
            groups[_only(labels, by)].append(number)
        return {labels: together(numbers) for labels, numbers in groups.items()}

    def rate(self, *, per_second: bool) -> Vector:
        self.expect("(")
        name, chosen = self.tokens.pop(0), self.conditions()
        self.expect("[")
        seconds = _seconds(self.tokens.pop(0))
        self.expect("]")
        end = self.now - self.offset()
        self.expect(")")
        within = [each for each in self.scrapes if end - seconds <= each.at <= end]
        series: defaultdict[Labels, list[float]] = defaultdict(list)
        for scrape in within:
            for labels, number in _chosen(scrape, name, chosen).items():
                series[labels].append(number)
        divisor = seconds if per_second else 1.0
        return {
            labels: _increase(numbers) / divisor
            for labels, numbers in series.items()
            if len(numbers) > 1  # as Prometheus: a series that has just appeared has no rate
        }

    def quantile(self) -> Vector:
        self.expect("(")
        share = float(self.tokens.pop(0))
        self.expect(",")
        value = self.binary(0)
        self.expect(")")
        assert isinstance(value, dict)
        found: defaultdict[Labels, list[tuple[float, float]]] = defaultdict(list)
        for labels, number in value.items():
            end = float(dict(labels)["le"])
            found[frozenset(each for each in labels if each[0] != "le")].append((end, number))
        return {labels: _quantile(share, sorted(ends)) for labels, ends in found.items()}

    def instant(self, name: str) -> Vector:
        chosen = self.conditions()
        at = self.now - self.offset()
        before = [each for each in self.scrapes if each.at <= at]
        return _chosen(before[-1], name, chosen) if before else {}

    def conditions(self) -> list[tuple[str, str, str]]:
        found = []
        while self.take("{") or self.take(","):
            label, how, value = (self.tokens.pop(0) for _ in range(3))
            found.append((label, how, value.strip('"')))
        if found:
            self.expect("}")
        return found

    def offset(self) -> float:
        return _seconds(self.tokens.pop(0)) if self.take("offset") else 0.0

    def labels(self) -> tuple[str, ...]:
        self.expect("(")
        found = []
        while not self.take(")"):
            found.append(self.tokens.pop(0))
            self.take(",")
        return tuple(found)

    def take(self, token: str) -> bool:
        if self.tokens and self.tokens[0] == token:
            self.tokens.pop(0)
            return True
        return False

    def expect(self, *tokens: str) -> None:
        for token in tokens:
            if not self.take(token):
                raise ValueError(f"{token} is missing before {self.tokens}")


def _tokens(expression: str) -> list[str]:
    found, at = [], 0
    while at < len(expression.rstrip()):
        match = TOKEN.match(expression, at)
        if not match:
            raise ValueError(f"not understood: {expression[at:]}")
        found.append(match[1])
        at = match.end()
    return found


def _seconds(text: str) -> float:
    return float(text[:-1]) * SECONDS[text[-1]]


def _only(labels: Labels, names: Sequence[str]) -> Labels:
    return frozenset(each for each in labels if each[0] in names)


def _chosen(scrape: Scrape, name: str, conditions: Sequence[tuple[str, str, str]]) -> Vector:
    return {
        frozenset(each.labels.items()): each.value
        for each in scrape.samples
        if each.name == name and all(meets(each, *condition) for condition in conditions)
    }


def meets(sample: Sample, label: str, how: str, value: str) -> bool:
    held = sample.labels.get(label, "")
    same = bool(re.fullmatch(value, held)) if how == "=~" else held == value
    return same == (how != "!=")


def _increase(numbers: Sequence[float]) -> float:
    """Return by how much a counter grew; one that fell began again at zero."""
    pairs = pairwise(numbers)
    return sum(after - before if after >= before else after for before, after in pairs)


def _quantile(share: float, ends: Sequence[tuple[float, float]]) -> float:
    """Return a quantile of a histogram, within its bucket as on a line."""
    total = ends[-1][1]
    if not total:
        return math.nan
    rank, low, below = share * total, 0.0, 0.0
    for end, number in ends:
        if number >= rank:
            inside = (rank - below) / (number - below) if number > below else 1.0
            return low if math.isinf(end) else low + (end - low) * inside
        low, below = end, number
    raise AssertionError("the last bucket holds all")


def _combined(name: str, left: Value, right: Value, on: tuple[str, ...] | None) -> Value:
    if name in {"or", "and", "unless"}:
        assert isinstance(left, dict)
        assert isinstance(right, dict)
        return _set(name, left, right, on)
    if not isinstance(left, dict) and not isinstance(right, dict):
        if name in COMPARISONS:
            raise ValueError(f"two numbers are compared: {left} {name} {right}")
        return ARITHMETIC[name](left, right)
    found: Vector = {}
    for labels, one, other in _paired(left, right, on):
        if name in COMPARISONS:
            if COMPARISONS[name](one, other):
                found[labels] = one if isinstance(left, dict) else other
        else:
            found[labels] = ARITHMETIC[name](one, other)
    return found


def _paired(
    left: Value, right: Value, on: tuple[str, ...] | None
) -> Iterator[tuple[Labels, float, float]]:
    """Yield what an operator works on: equal labels, or the same number on one side."""
    if not isinstance(left, dict):
        assert isinstance(right, dict)
        yield from ((labels, left, number) for labels, number in right.items())
    elif not isinstance(right, dict):
        yield from ((labels, number, right) for labels, number in left.items())
    else:
        keyed = {_key(labels, on): number for labels, number in right.items()}
        for labels, number in left.items():
            if (key := _key(labels, on)) in keyed:
                yield labels, number, keyed[key]


def _key(labels: Labels, on: tuple[str, ...] | None) -> Labels:
    return labels if on is None else _only(labels, on)


def _set(name: str, left: Vector, right: Vector, on: tuple[str, ...] | None) -> Vector:
    theirs = {_key(labels, on) for labels in right}
    if name == "or":
        ours = {_key(labels, on) for labels in left}
        return left | {each: n for each, n in right.items() if _key(each, on) not in ours}
    wanted = name == "and"
    return {each: n for each, n in left.items() if (_key(each, on) in theirs) == wanted}
