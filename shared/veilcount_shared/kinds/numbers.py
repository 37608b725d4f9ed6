"""Numbers: one between two bounds, of which the measure says what is estimated."""

from __future__ import annotations

from ..domain import Number
from ..errors import DefinitionError
from ..mechanisms import DistributionMechanism, MeanMechanism, Randomizer, RangeTree
from .kind import DeviceKind, Price, TableContext
from .toml_values import Table, read_number


class NumberKind(DeviceKind[Number]):
    """A number that a trusted curator sees: what is estimated is asked later, so no measure."""

    name = "number"
    declared_by = ("range",)

    def parse(self, table: Table, context: TableContext) -> Number:  # noqa: ARG002 - of other kinds
        """Return the range."""
        return parse_range("range", table["range"])

    def randomizer(self, price: Price[Number]) -> Randomizer:
        """Refuse: the mechanism of a number depends on its measure."""
        raise TypeError(f"{self.name}: no measure, so no mechanism for {price.domain}")


class MeanKind(NumberKind):
    """The mean."""

    name = "mean"

    def randomizer(self, price: Price[Number]) -> MeanMechanism:
        """Return the window of the least variance."""
        return MeanMechanism.for_epsilon(price.epsilon)


class DistributionKind(NumberKind):
    """The distribution over the range."""

    name = "distribution"

    def randomizer(self, price: Price[Number]) -> DistributionMechanism:
        """Return the window of the square wave."""
        return DistributionMechanism.for_epsilon(price.epsilon)


class RangesKind(NumberKind):
    """The shares of any ranges."""

    name = "ranges"

    def randomizer(self, price: Price[Number]) -> RangeTree:
        """Return the tree of the range's parts."""
        return RangeTree.for_epsilon(price.epsilon)


def parse_range(key: str, value: object) -> Number:  # noqa: ARG001 - one reader of several entries
    """Return the number between two bounds."""
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 - two ends
        raise DefinitionError("range", value, "give two numbers, such as [0, 240]")
    low, high = (read_number("range", end) for end in value)
    return Number(low, high)
