"""The planner's form: every entry as it was typed, and what is asked with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

from ...errors import QueryError
from ...queries import PlanQuery
from ...queries.json_encoding import decimal
from ...queries.query_params import Parameters, parse_number

POINTS = 100  # in a share of 1
VALUES, NUMBER = "values", "number"

#: what a question's fields are called in the form
ENTRIES = {"error": "margin", "range": "low", "plan": "devices"}
TWO = "give exactly two of devices, epsilon and margin, and leave empty the one to be found"


@dataclass(frozen=True, slots=True)
class Wrong:
    """Which entry, and what to write instead."""

    entry: str
    fix: str

    @property
    def shown(self) -> bool:
        """Whether the form has this entry, and the refusal stands beside it."""
        return self.entry in {each.name for each in fields(Form)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a page without an address asks is a plan that many begin with."""

    kind: str = VALUES
    values: str = "2"
    low: str = ""
    high: str = ""
    devices: str = ""
    epsilon: str = ""
    margin: str = ""
    unit: str = "month"
    periods: str = ""
    arms: str = "1"
    trust: str = "local"

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Form:
        """Return what was typed."""
        names = {each.name for each in fields(cls)}
        typed = {name: word.strip() for name, word in given.items() if name in names}
        return cls(**typed) if typed else cls(devices="20,000", epsilon="1")

    @property
    def of_number(self) -> bool:
        """Whether a number is asked for, and not one of some values."""
        return self.kind == NUMBER

    def query(self) -> PlanQuery:
        """Return the query, or refuse."""
        return PlanQuery.parse(self._parameters())

    def _parameters(self) -> Parameters:
        words = {
            "devices": self.devices.replace(",", ""),
            "epsilon": self.epsilon,
            "error": self._error(),
            "unit": self.unit,
            "periods": self.periods,
            "arms": self.arms,
            "trust": self.trust,
        }
        if self.of_number:
            words["range"] = f"{self.low}..{self.high}"
        else:
            words["values"] = self.values.replace(",", "")
        return {name: [word] for name, word in words.items()}

    def _error(self) -> str:
        """Return the margin as an error is told: of shares it is typed in points."""
        if not self.margin or self.of_number:
            return self.margin
        return decimal(Fraction(parse_number("margin", self.margin)) / POINTS)


def wrong(error: QueryError) -> Wrong:
    """Return a refusal in the form's words."""
    fix = TWO if error.field == "plan" else error.fix
    return Wrong(ENTRIES.get(error.field, error.field), fix)
