"""Numbers: one between two bounds, or several of one person; the measure is what is estimated."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import ClassVar

from ..definition_record import Definition
from ..domain import Features, Number
from ..enums import Model, Takes
from ..errors import DefinitionError
from ..mechanisms import DistributionMechanism, MeanMechanism, Moments, Randomizer, RangeTree
from ..mechanisms.selection import MAX_INPUTS
from .kind import Z95, DeviceKind, Price, TableContext, share_margin
from .toml_values import Table, read_named, read_number
from .true_cells import Grid


class NumberKind(DeviceKind[Number]):
    """A number that a trusted curator sees: what is estimated is asked later, so no measure."""

    name = "number"
    declared_by = ("range",)
    takes = frozenset({Takes.FIRST, Takes.LAST, Takes.MAX, Takes.SUM})
    absent_fix = "a range has no cell for absent: use values"
    unsupported_models: ClassVar[Mapping[Model, tuple[str, str]]] = dict.fromkeys(
        (Model.LOCAL, Model.SHUFFLED),
        ("measure", 'give measure = "mean", "distribution" or "ranges"'),
    )

    def parse(self, table: Table, context: TableContext) -> Number:  # noqa: ARG002 - of other kinds
        """Return the range."""
        return parse_range("range", table["range"])

    def check_true_cells(self, definition: Definition, domain: Number) -> None:  # noqa: ARG002 - by kind
        """Refuse what a curator cannot sum."""
        bounds = [domain.low, domain.high]
        if any(bound.denominator != 1 for bound in bounds):
            raise DefinitionError("range", bounds, "a curator sums integers: give integer bounds")
        if domain.high - domain.low >= MAX_INPUTS:
            fix = f"at most {MAX_INPUTS:,} integers: scale it"
            raise DefinitionError("range", bounds, fix)

    def inputs(self, domain: Number) -> int:
        """Return the number of integers, which a curator's counters are compared by."""
        return Grid(domain).size

    def true_cells(self, domain: Number) -> Grid | None:
        """Return a counter for each integer."""
        return Grid(domain)

    def randomizer(self, price: Price[Number]) -> Randomizer:
        """Refuse: the mechanism of a number depends on its measure."""
        raise TypeError(f"{self.name}: no measure, so no mechanism for {price.domain}")


class MeasuredKind(NumberKind):
    """A number of which devices know what is estimated."""

    measure_fix = "only for a range under the local model: remove it"
    unsupported_models: ClassVar[Mapping[Model, tuple[str, str]]] = {
        Model.CENTRAL: ("measure", measure_fix)
    }

    def true_cells(self, domain: Number) -> None:
        """Return none: a curator is asked for a measure later."""


class MeanKind(MeasuredKind):
    """The mean."""

    name = "mean"

    def randomizer(self, price: Price[Number]) -> MeanMechanism:
        """Return the window of the least variance."""
        return MeanMechanism.for_epsilon(price.epsilon)

    def precision_advice(self, price: Price[Number], answers: int) -> str:
        """Compare the margin with the range."""
        margin = Z95 * sqrt(self.randomizer(price).variance / answers) / 2
        if margin <= 1 / 10:
            return ""
        return (
            f"the mean is known to +/- {margin:.0%} of the range: a narrower range, more answers"
            " or a larger epsilon"
        )


class DistributionKind(MeasuredKind):
    """The distribution over the range."""

    name = "distribution"

    def randomizer(self, price: Price[Number]) -> DistributionMechanism:
        """Return the window of the square wave."""
        return DistributionMechanism.for_epsilon(price.epsilon)


class RangesKind(MeasuredKind):
    """The shares of any ranges."""

    name = "ranges"

    def randomizer(self, price: Price[Number]) -> RangeTree:
        """Return the tree of the range's parts."""
        return RangeTree.for_epsilon(price.epsilon)

    def precision_advice(self, price: Price[Number], answers: int) -> str:
        """Return the margin of a quarter, a node of the top level, if it is large."""
        levels = self.randomizer(price).levels  # each has its share of the answers
        margin = share_margin(levels[0], answers / len(levels))
        if margin <= 1 / 10:
            return ""
        return (
            f"the share of a quarter of the range is known to +/- {margin:.0%}: more answers or a"
            " larger epsilon"
        )


class FeatureKind(DeviceKind[Features]):
    """One drawn moment of the numbers."""

    name = "features"
    declared_by = ("features",)
    absent_fix = "features have no cell for absent: use values"
    unsupported_models: ClassVar[Mapping[Model, tuple[str, str]]] = {
        Model.CENTRAL: ("model", "a curator has no query of features: give a range")
    }
    measure_fix = "only for features: give them, or a range"
    domain_fix = 'features need measure = "moments"'

    def parse(self, table: Table, context: TableContext) -> Features:  # noqa: ARG002 - of other kinds
        """Return the numbers, each between bounds of its own."""
        fix = "give a table: features = {age = [0, 120], hours = [0, 60]}"
        return Features(tuple(read_named("features", table["features"], parse_range, fix)))

    def randomizer(self, price: Price[Features]) -> Moments:
        """Return the mean mechanism of one moment."""
        return Moments.for_epsilon(price.epsilon, len(price.domain.features))


def parse_range(key: str, value: object) -> Number:  # noqa: ARG001 - one reader of several entries
    """Return the number between two bounds."""
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 - two ends
        raise DefinitionError("range", value, "give two numbers, such as [0, 240]")
    low, high = (read_number("range", end) for end in value)
    return Number(low, high)
