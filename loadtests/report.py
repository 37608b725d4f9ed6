"""What is told of a run: its figures, and whether it is sound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from veilcount_shared.verdict import Verdict

from .errand import Diary
from .told import Told

FAIR = 0.5  # of the server's CPU: a generator that costs more measures itself


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds of one run."""

    server: float
    store: float  # of processes of the store's own
    generator: float

    @property
    def share(self) -> float:
        """The generator's, as a part of what it was to load."""
        return self.generator / (self.server + self.store)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: what was sent and told, what it cost, what is wrong."""

    told: Told
    diary: Diary
    costs: Costs
    failures: tuple[str, ...]

    def milliseconds(self, percent: float) -> float:
        """Return the time within which so many of the answered sends were answered."""
        answered = self.diary.answered
        return float(np.percentile(answered, percent)) * 1000 if answered else inf

    def __str__(self) -> str:
        """A table, then what is wrong."""
        rows = list(self._rows())
        width = max(len(name) for name, _ in rows)
        table = [f"{name:<{width}}  {value}" for name, value in rows]
        wrong = [f"FAILED: {problem}" for problem in self.failures]
        return "\n".join([*table, *(wrong or ["sound: every figure is what the devices sent"])])

    def _rows(self) -> Iterator[tuple[str, str]]:
        sends, lasted, given = len(self.diary.bodies), self.diary.lasted, self.told.verdicts
        yield "seconds", f"{lasted:.1f}"
        yield "requests/s", f"{len(self.diary.answered) / lasted:,.0f}"
        yield "reports/s", f"{given.total() / lasted:,.0f}"
        yield "p50, ms", f"{self.milliseconds(50):.1f}"
        yield "p99, ms", f"{self.milliseconds(99):.1f}"
        yield "server CPU, us a request", f"{self.costs.server / sends * 1e6:,.0f}"
        if self.costs.store:
            yield "store CPU, us a request", f"{self.costs.store / sends * 1e6:,.0f}"
        yield "generator CPU, us a request", f"{self.costs.generator / sends * 1e6:,.0f}"
        unfair = "" if self.costs.share <= FAIR else f"  (above {FAIR}: the times are its own too)"
        yield "generator / server", f"{self.costs.share:.2f}{unfair}"
        yield "sends without a reply", f"{self.told.silences.total():,}"
        for verdict in Verdict:
            if given[verdict] or verdict.delivered:
                yield verdict.value, f"{given[verdict]:,}"
