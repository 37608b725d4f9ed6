"""The planner's form: every field as typed, and the query it stands for."""

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

#: the form's names of the query's fields
ENTRIES = {"error": "margin", "range": "low", "plan": "devices"}
TWO = "give exactly two of devices, epsilon and margin; leave the one to compute empty"


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error beside a field: which, and how to correct it."""

    field: str
    fix: str

    @property
    def has_field(self) -> bool:
        """Whether the form has this field, so that the message stands beside it."""
        return self.field in {each.name for each in fields(PlanForm)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanForm:
    """The fields as typed; the page period_start with a common plan."""

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
    def parse(cls, given: Mapping[str, str]) -> PlanForm:
        """Read the query string."""
        names = {each.name for each in fields(cls)}
        typed = {name: word.strip() for name, word in given.items() if name in names}
        return cls(**typed) if typed else cls(devices="20,000", epsilon="1")

    @property
    def of_number(self) -> bool:
        """Whether the question asks for a number."""
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
        """Return the margin as the query has it: margins of shares are typed in points."""
        if not self.margin or self.of_number:
            return self.margin
        return decimal(Fraction(parse_number("margin", self.margin)) / POINTS)


def form_error(error: QueryError) -> FieldError:
    """Return a query error under the form's field names."""
    fix = TWO if error.field == "plan" else error.fix
    return FieldError(ENTRIES.get(error.field, error.field), fix)
