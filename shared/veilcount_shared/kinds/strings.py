"""Strings: any text, found among candidates or letter by letter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ..definition_record import Definition
from ..domain import PREFIX_BITS, PREFIXES, OpenStrings
from ..errors import DefinitionError
from ..mechanisms import HashedStrings
from .kind import Z95, DeviceKind, Price, TableContext, share_margin
from .toml_values import Table
from .true_cells import Hashed

DETECTED = 5  # standard errors from which one string of a million candidates is found
OPEN = "open"  # values = "open": any string


class StringKind(DeviceKind[OpenStrings]):
    """Hashed buckets, one in each part of the devices."""

    name = "strings"
    declared_by = ("values",)
    keys: ClassVar[Mapping[str, str]] = {"discover": 'only for values = "open": remove it'}
    canonical_keys: ClassVar[tuple[str, ...]] = ("noise",)
    absent_fix = "open strings have no cell for absent: list the values"
    foreign = "open strings are not listed: remove it"

    def parse(self, table: Table, context: TableContext) -> OpenStrings:
        """Return the strings of one definition, whose salt no other has."""
        discover = table.get("discover", False)
        if not isinstance(discover, bool):
            raise DefinitionError("discover", discover, "write discover = true, or remove it")
        salt = f"{context.app}/{context.name}/{context.start}"
        return OpenStrings(salt, PREFIX_BITS, PREFIXES) if discover else OpenStrings(salt)

    def check_true_cells(self, definition: Definition, domain: OpenStrings) -> None:
        """Refuse what a curator cannot release: strings above a threshold, which needs a delta."""
        if domain.prefixes:
            fix = "a curator's open strings are found by candidates: remove it"
            raise DefinitionError("discover", True, fix)
        if definition.delta is None:
            fix = "a curator releases open strings above a threshold, which needs it: 0.000001"
            raise DefinitionError("delta", None, fix)

    def true_cells(self, domain: OpenStrings) -> Hashed:
        """Return a counter for each hash, of both halves together."""
        return Hashed(domain)

    def randomizer(self, price: Price[OpenStrings]) -> HashedStrings:
        """Return the geometry of one part's buckets."""
        return HashedStrings.for_epsilon(
            price.epsilon, price.domain.bucket_bits, price.domain.parts
        )

    def precision_advice(self, price: Price[OpenStrings], answers: int) -> str:
        """Return the share from which a string is found, if it is large."""
        share = DETECTED * share_margin(self.randomizer(price), answers) / Z95
        if share <= 1 / 100:
            return ""
        return (
            f"a string is found from a share of about {share:.2%} on: more answers or a larger"
            " epsilon"
        )
