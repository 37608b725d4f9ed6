"""One number of decimals for all figures of a result, from the width of its intervals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, isfinite, log10

from ..text.number_format import POINTS

HUNDRED = 100
MOST = 6  # decimals


@dataclass(frozen=True, slots=True)
class FigureFormat:
    """Formats shares in percent, their differences in points, and numbers in their own units."""

    of_shares: bool
    decimals: int

    @classmethod
    def for_widths(cls, widths: Iterable[float], *, of_shares: bool) -> FigureFormat:
        """Return the format that shows two digits of the narrowest width."""
        scale = HUNDRED if of_shares else 1
        some = [scale * width for width in widths if isfinite(width) and width > 0]
        places = 1 - floor(log10(min(some))) if some else 1
        return cls(of_shares, min(max(places, 0), MOST))

    def bare(self, number: float) -> str:
        """Return a number without its unit."""
        scaled = round(number * HUNDRED if self.of_shares else number, self.decimals)
        return f"{scaled + 0.0:,.{self.decimals}f}"  # + 0.0: a zero has no sign

    def figure(self, number: float) -> str:
        """Return a share or a number."""
        return self.bare(number) + ("%" if self.of_shares else "")

    def size(self, number: float) -> str:
        """Return the size of a difference."""
        return self.bare(number) + (POINTS if self.of_shares else "")

    def signed(self, number: float) -> str:
        """Return a difference, with its sign."""
        bare = self.bare(number)
        return bare if bare.startswith("-") or float(bare.replace(",", "")) == 0 else f"+{bare}"

    def ends(self, low: float, high: float) -> str:
        """Return the two ends of an interval, without a unit."""
        return f"{self.bare(low)} to {self.bare(high)}"
