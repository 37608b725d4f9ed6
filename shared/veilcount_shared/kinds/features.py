"""Features: several numbers of one person, of which moments are estimated."""

from __future__ import annotations

from ..domain import Features
from ..mechanisms import Moments
from .kind import DeviceKind, Price


class FeatureKind(DeviceKind[Features]):
    """One drawn moment of the numbers."""

    name = "features"

    def randomizer(self, price: Price[Features]) -> Moments:
        """Return the mean mechanism of one moment."""
        return Moments.for_epsilon(price.epsilon, len(price.domain.features))
