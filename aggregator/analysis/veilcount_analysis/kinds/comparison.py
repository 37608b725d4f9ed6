"""How the two sides of a comparison are estimated, and which values they have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from veilcount_shared import Collection

from ..estimation import MeanEstimate, ShareEstimates
from ..estimation.confidence_intervals import Counts
from .estimate_query import EstimateQuery
from .labels import Value
from .source import Tally

#: what a side is of, the rarest last
LISTED_VALUES, SEVERAL_VALUES, OPEN_STRINGS, NUMBER = SUBJECTS = (
    *("listed values", "several values of a list", "open strings", "a number"),
)


@dataclass(frozen=True, slots=True, eq=False)
class CommonValues:
    """The places of the values that two sides have in common, and the value of each."""

    first: Counts
    second: Counts
    value: Callable[[int], Value]  # by its index: there may be a million


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a kind's sides are compared, with others of the same subject.

    `common_values` are those that both sides have, of those named; None: each has one mean.
    `estimate` is that of one side, from at least one report.
    """

    subject: str
    common_values: Callable[[Collection, Sequence[str]], CommonValues | None]
    estimate: Callable[[Tally, EstimateQuery, int, Counts | None], ShareEstimates | MeanEstimate]

    def problem(self, other: Comparison) -> str:
        """Return why it is not compared with another side; empty: it is."""
        if self.subject == other.subject:
            return ""
        rarer = max(self.subject, other.subject, key=SUBJECTS.index)
        return f"one side is of {rarer}, the other is not"
