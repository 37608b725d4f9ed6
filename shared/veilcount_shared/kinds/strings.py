"""Strings: any text, found among candidates or letter by letter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ..domain import PREFIX_BITS, PREFIXES, OpenStrings
from ..errors import DefinitionError
from ..mechanisms import HashedStrings
from .kind import DeviceKind, Price, TableContext
from .toml_values import Table

OPEN = "open"  # values = "open": any string


class StringKind(DeviceKind[OpenStrings]):
    """Hashed buckets, one in each part of the devices."""

    name = "strings"
    declared_by = ("values",)
    keys: ClassVar[Mapping[str, str]] = {"discover": 'only for values = "open": remove it'}
    foreign = "open strings are not listed: remove it"

    def parse(self, table: Table, context: TableContext) -> OpenStrings:
        """Return the strings of one definition, whose salt no other has."""
        discover = table.get("discover", False)
        if not isinstance(discover, bool):
            raise DefinitionError("discover", discover, "write discover = true, or remove it")
        salt = f"{context.app}/{context.name}/{context.start}"
        return OpenStrings(salt, PREFIX_BITS, PREFIXES) if discover else OpenStrings(salt)

    def randomizer(self, price: Price[OpenStrings]) -> HashedStrings:
        """Return the geometry of one part's buckets."""
        return HashedStrings.for_epsilon(
            price.epsilon, price.domain.bucket_bits, price.domain.parts
        )
