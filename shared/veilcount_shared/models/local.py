"""The local model: each device adds the noise."""

from __future__ import annotations

from typing import Any, ClassVar

from ..definition_record import BatchRules, Definition
from ..domain import Domain
from ..errors import DefinitionError
from ..kinds import DeviceKind, Price
from ..mechanisms import Mechanism
from .model import BatchSizes, TrustModel


class Local(TrustModel):
    """Devices randomize, and pay epsilon for each answer."""

    price_key = "epsilon"
    reveals = releases = False
    batch_sizes: ClassVar[BatchSizes | None] = BatchSizes(least=2, default=50)

    def inputs(self, kind: DeviceKind[Any], domain: Domain) -> int:
        """Return the number of inputs of the randomizer."""
        return kind.inputs(domain)

    def mechanism(self, kind: DeviceKind[Any], price: Price[Any]) -> Mechanism:
        """Return the kind's randomizer."""
        return kind.randomizer(price)

    def check(self, definition: Definition) -> None:
        """Refuse what only a curator has."""
        if definition.delta is not None:
            fix = "a local collection is pure epsilon-DP: remove delta"
            raise DefinitionError("delta", definition.delta, fix)
        if definition.adjacency is not None:
            fix = 'only for model = "central": remove it'
            raise DefinitionError("adjacency", str(definition.adjacency), fix)

    def check_batch(self, rules: BatchRules) -> None:
        """Refuse what makes a promise: here a shuffler hides the time alone."""
        for key in ("epsilon", "delta", "covers", "honest", "allow_large_epsilon"):
            if value := getattr(rules, key):
                fix = 'a local collection has least and grace alone: remove it, or use "shuffled"'
                raise DefinitionError(f"batch.{key}", value, fix)
