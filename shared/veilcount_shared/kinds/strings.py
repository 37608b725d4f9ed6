"""Strings: any text, found among candidates or letter by letter."""

from __future__ import annotations

from ..domain import OpenStrings
from ..mechanisms import HashedStrings
from .kind import DeviceKind, Price


class StringKind(DeviceKind[OpenStrings]):
    """Hashed buckets, one in each part of the devices."""

    name = "strings"

    def randomizer(self, price: Price[OpenStrings]) -> HashedStrings:
        """Return the geometry of one part's buckets."""
        return HashedStrings.for_epsilon(
            price.epsilon, price.domain.bucket_bits, price.domain.parts
        )
