"""Values: how frequent each of a list is; of a boolean, and of private attributes as well."""

from __future__ import annotations

from ..domain import Boolean, Choice, Cross
from ..mechanisms import ProjectiveGeometry, SubsetSelection, select_mechanism
from .kind import DeviceKind, Price

Listed = Boolean | Choice | Cross


class ValueKind(DeviceKind[Listed]):
    """One answer out of a list, by subset selection or a projective geometry."""

    name = "values"

    def randomizer(self, price: Price[Listed]) -> SubsetSelection | ProjectiveGeometry:
        """Select the mechanism by the number of inputs."""
        return select_mechanism(price.inputs, price.epsilon).mechanism
