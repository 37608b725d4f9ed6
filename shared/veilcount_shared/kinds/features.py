"""Features: several numbers of one person, of which moments are estimated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ..domain import Features
from ..enums import Model
from ..mechanisms import Moments
from .kind import DeviceKind, Price, TableContext
from .numbers import parse_range
from .toml_values import Table, read_named


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
