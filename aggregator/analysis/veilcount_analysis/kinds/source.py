"""What a kind reads of one series, and through what: a store, or the arrays of a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..estimation.confidence_intervals import Counts
from ..mechanisms.candidate_search import Candidates
from .labels import Value


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The counters of some reports, and how many of these are cover reports of a shuffler."""

    counters: Counts
    covers: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class SelectedValues:
    """The shown values, decided over the whole range; `facts` are what a series states of it."""

    labels: tuple[Value, ...] = ()
    places: Counts = field(default_factory=lambda: np.zeros(0, np.int64))
    groups: tuple[Counts, ...] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class CandidateSearch:
    """One test of candidates: those found, the most frequent first, and what a test costs now."""

    texts: tuple[str, ...]
    places: Counts
    candidates: int
    tested: int
    alpha: float
    named: tuple[str, ...] = ()
    discovers: bool = False


class Searches(Protocol):
    """The searches of one series: who tests many candidates finds some by chance.

    `about` identifies the tested reports: the same test of the same reports counts once.
    """

    def known(self) -> CandidateSearch:
        """Return the strings that were found in any test, and what a further test would cost."""

    def test(
        self, whole: Tally, candidates: Candidates, about: Sequence[object]
    ) -> CandidateSearch:
        """Count a test of each candidate, and return those found."""

    def discover(
        self, whole: Tally, dictionary: Sequence[str], about: Sequence[object]
    ) -> CandidateSearch:
        """Count a search letter by letter, and return the strings found."""


class Source(Protocol):
    """Where a kind reads one series: a store, or a notebook's arrays."""

    def tally(self, periods: range, cells: Sequence[int]) -> Tally:
        """Return the tally of periods and cells together."""

    def counters_by_period(self, periods: range, cells: Sequence[int]) -> Counts:
        """Return the counters of cells together, a row for each period: of kinds with few."""

    def is_over(self, period: int) -> bool:
        """Whether a period has ended."""

    @property
    def searches(self) -> Searches:
        """The searches among open strings, which are counted."""
