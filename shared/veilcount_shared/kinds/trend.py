"""A trend: how many people's state is true at the end of each period."""

from __future__ import annotations

from ..mechanisms import TrendMechanism
from .kind import Price
from .values import BooleanKind, Listed


class TrendKind(BooleanKind):
    """A boolean that changes rarely, reported under signs that are drawn once."""

    name = "trend"

    def randomizer(self, price: Price[Listed]) -> TrendMechanism:
        """Return the mechanism of so many periods and changes."""
        assert price.changes is not None, "validation requires it"  # noqa: S101 - narrows the type
        return TrendMechanism.for_epsilon(price.epsilon, price.periods, price.changes)
