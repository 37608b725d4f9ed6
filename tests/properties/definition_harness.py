"""Definition files for tests: short texts of one collection [q], and complete ones."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any, NoReturn

import pytest

from veilcount_shared.collection import Collection, parse_collections
from veilcount_shared.domain import Boolean
from veilcount_shared.errors import DefinitionError
from veilcount_shared.periods import Unit

#: every kind of domain, as the lines of a definition
KINDS = {
    "boolean": "boolean = true",
    "choice": 'values = ["a", "b", "c"]',
    "integers": "values = [1, 2, 30]",
    "other": 'values = ["a", "b"]\nother = "else"',
    "plane": f"values = {list(range(400))}",
    "cross": 'boolean = true\ncross = {plan = ["free", "paid"], tier = [1, 2, 3]}',
    "mean": 'range = [-1.5, 240]\nmeasure = "mean"',
    "distribution": 'range = [0, 1]\nmeasure = "distribution"',
}

COHORT = "cohort = {{draw = {}, of = {}, number = {}}}"
CUT = '"' + "x" * 76 + "..."  # as a value of 200 x is quoted


def definition_file(lines: str) -> str:
    """Return a file with one collection [q]: these lines, and defaults for the required keys."""
    present = {line.split("=")[0].strip() for line in lines.splitlines()}
    defaults = {
        "question": '"What is it?"',
        "unit": '"month"',
        "from": "2026-12-01",
        "until": "2027-12-01",
        "budget" if "central" in lines else "epsilon": "1",
    }
    rest = [f"{key} = {value}" for key, value in defaults.items() if key not in present]
    return "\n".join(['app = "acme"', "[q]", lines, *rest])


def no_values_file(_: str) -> NoReturn:
    """Stand in for the reader of value lists where none is named."""
    raise AssertionError("no values_file is named")


def parse_definition(lines: str) -> Collection:
    """Return the collection [q] of these lines."""
    return parse_collections(definition_file(lines), no_values_file)["q"]


def epsilons(collection: Collection) -> tuple[Fraction | int, ...]:
    """Return epsilon per event, per day, per user."""
    return (collection.epsilon_event, collection.epsilon_day, collection.epsilon_user)


FULL = """
app = "acme"
[q]
question = "Which?"
values = ["a", "b", "c"]
other = "else"
cross = {plan = ["free", "paid"]}
epsilon = 1
unit = "week"
takes = "first"
from = 2026-12-01
until = 2027-12-01
answers = 10
late = 30
linkage = "collection"
presence = "public"
segments = {arm = ["A", "B"]}
cohort = {draw = "spring", of = 3, number = 0}
model = "local"
owner = "Ada"
purpose = "to decide"
replaces = "old"
"""
EVENTS = """
app = "acme"
[q]
question = "How long?"
range = [0, 240]
measure = "mean"
epsilon = 1
unit = "event"
per_day = 2
from = 2026-12-01
until = 2026-12-31
"""
CENTRAL = """
app = "acme"
[q]
question = "Is it?"
boolean = true
model = "central"
budget = 1
adjacency = "add-remove"
unit = "month"
from = 2026-12-01
until = 2027-12-01
"""


_PAIRED = """
question = "Is it used?"
boolean = true
unit = "month"
from = 2026-12-01
until = 2027-12-01
"""
TWINS = {
    "near": f'[near]{_PAIRED}epsilon = 1\ntwin = "far"\n',
    "far": f'[far]{_PAIRED}model = "central"\nbudget = 1\n',
}


def calendar_of(unit: Unit, start: str, until: str, **more: Any) -> Collection:
    """Return a collection with these periods."""
    return Collection(
        **{
            "app": "acme",
            "name": "q",
            "question": "Is it?",
            "domain": Boolean(),
            "epsilon": Fraction(1),
            "unit": unit,
            "start": date.fromisoformat(start),
            "until": date.fromisoformat(until),
            **more,
        }
    )


def refused(text: str, values: list[str] | None = None) -> DefinitionError:
    """Return the error that refuses a text, whose value file holds these values."""
    with pytest.raises(DefinitionError) as caught:
        parse_collections(text, lambda _: ["a", "b"] if values is None else values, "bad.toml")
    return caught.value
