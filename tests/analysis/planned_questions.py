"""Questions of many kinds to plan, and the definition that a plan gives."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

from veilcount_analysis.planning import PlanResult, QuestionShape
from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection import Measure
from veilcount_shared.periods import Unit

ONE = Fraction(1)
START = date(2026, 12, 1)


def yes_or_no(**more: object) -> QuestionShape:
    """A yes or no in each of 12 months."""
    return QuestionShape(**{"start": START, "values": 2, **more})  # type: ignore[arg-type] # by name


QUESTIONS = [
    yes_or_no(),
    yes_or_no(arms=2),
    yes_or_no(values=10, unit=Unit.EVENT, periods=7),
    yes_or_no(values=1000, level=0.99),
    yes_or_no(values=None, range=(Fraction(0), Fraction(240))),
    yes_or_no(values=None, range=(Fraction(-1), Fraction(1)), arms=2, unit=Unit.USER),
    yes_or_no(values=None, range=(Fraction(0), Fraction(9)), measure=Measure.DISTRIBUTION),
    yes_or_no(values=None, range=(Fraction(0), Fraction(9)), measure=Measure.RANGES),
]
STRINGS = yes_or_no(values=None, candidates=10**6)
FEATURES = yes_or_no(values=None, features=3)
TABLES = yes_or_no(values=None, questions=(2, 3, 4))


def pasted(question: QuestionShape, planned: PlanResult) -> Collection:
    lines = [f"label {number}" for number in range(question.values or 0)]
    return parse_collections(planned.toml, lambda _: lines)["planned"]
