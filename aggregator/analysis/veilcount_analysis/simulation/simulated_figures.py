"""What a simulation takes, as options that a kind declares, and its figures with the truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from ..errors import QueryError
from ..estimation.estimator import IntervalTarget
from ..estimation.results import ESTIMANDS
from ..mechanisms.sampling import Floats
from ..query_params import Level, Parameters, QueryParams, parameter
from ..text import number_format
from ..text.result_columns import spelled
from ..text.view_parts import Table
from .population import MAX_DEVICES

MAX_DRAWN = 10_000_000  # devices that are drawn one by one

Devices = Annotated[int, parameter("Number of devices.", ge=1, le=MAX_DEVICES, metavar="N")]
DrawnDevices = Annotated[int, parameter("Number of devices.", ge=1, le=MAX_DRAWN, metavar="N")]
Top = Annotated[int, parameter("Number of rows to show, 20 by default.", ge=1, metavar="N")]


@dataclass(frozen=True, kw_only=True)
class SimulationQuery(QueryParams):
    """The options of a simulation; a kind adds its own."""

    subject: ClassVar[str] = ""  # whose options these are
    refused: ClassVar[Mapping[str, str]] = {}  # the fix for an option of other kinds

    n: Devices
    level: Level = 0.95

    @classmethod
    def parse(cls, arguments: Parameters) -> Self:
        """Return the options of a command line; those of other kinds are refused."""
        for name in sorted(set(arguments) - set(cls.__dataclass_fields__)):
            fix = cls.refused.get(name, f"{cls.subject} have none: remove it")
            raise QueryError(name, " ".join(arguments[name]), fix)
        return super().parse(arguments)


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedEstimate:
    """Figures in an order, each with its interval; NaN: none is stated."""

    value: Floats
    low: Floats
    high: Floats

    def at(self, place: int) -> dict[str, float] | None:
        """Return one figure with its interval; None: none is stated."""
        columns = {"value": self.value, "low": self.low, "high": self.high}
        row = {name: float(column[place]) for name, column in columns.items()}
        return row if np.isfinite(row["value"]) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFigures:
    """The figures as JSON, and as the rows of a table with closing lines."""

    n: int
    level: float
    facts: Mapping[str, Any]
    table: Table
    closing: Sequence[str]
    target: IntervalTarget = IntervalTarget.COHORT
    errors: Table | None = None  # of many runs

    @property
    def estimand(self) -> str:
        """What the intervals cover."""
        return ESTIMANDS[self.target]


def truth_table(
    rows: Sequence[Mapping[str, Any]],
    heads: Sequence[str],
    *,
    of_shares: bool = True,
    missing: str = "",
) -> Table:
    """Return the truth of each row with its estimates; `missing` stands for one not stated."""
    models = [model for model in ("shuffled", "local", "central") if model in rows[0]]

    def cells(estimate: Mapping[str, float] | None) -> tuple[str, str]:
        if estimate is None:
            return missing, ""
        interval = number_format.interval(estimate["low"], estimate["high"], of_shares=of_shares)
        return number_format.figure(estimate["value"], of_shares=of_shares), interval

    columns = (*heads, "truth", *(name for model in models for name in (model, "interval")))
    lines = [
        (
            *(spelled(row[head]) for head in heads),
            number_format.figure(row["truth"], of_shares=of_shares),
            *(cell for model in models for cell in cells(row[model])),
        )
        for row in rows
    ]
    return Table("", columns, lines)


def covered(rows: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Return how many local intervals hold the truth, and how many are stated."""
    stated = [(row["truth"], row["local"]) for row in rows if row["local"] is not None]
    return sum(local["low"] <= truth <= local["high"] for truth, local in stated), len(stated)
