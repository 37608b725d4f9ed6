"""PopulationMargins: how the population is spread over the public segments of a definition."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class PopulationMargins:
    """The shares of the categories of some segments, in their order; together 1 or 100.

    Who consents differs from who does not: figures are reweighted to these margins. That is done to
    figures alone, so a change begins no new series and reweights the reports of the old one.
    """

    shares: tuple[tuple[str, tuple[Fraction, ...]], ...]
    source: str
    as_of: date

    @property
    def normalized(self) -> dict[str, tuple[Fraction, ...]]:
        """The shares by segment; of each together exactly 1."""
        return {
            name: tuple(share / sum(shares) for share in shares) for name, shares in self.shares
        }
