"""What `veilcount simulate` is asked, and what it prints, whatever the collection's values are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from veilcount_analysis.estimation import IntervalTarget
from veilcount_analysis.estimation.results import ESTIMANDS


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """The options of a run."""

    n: int
    truth: tuple[str, ...]
    top: int
    level: float
    strings: int
    candidates: int
    correlation: float
    regress: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationTable:
    """The figures as JSON, and as the rows of a table with closing lines."""

    facts: dict[str, Any]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    closing: Sequence[str]
    target: IntervalTarget = IntervalTarget.COHORT

    @property
    def estimand(self) -> str:
        """What the intervals cover."""
        return ESTIMANDS[self.target]
