"""A trust model: who adds the noise, and what that asks of a definition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..definition_record import BatchRules, Definition
from ..domain import Domain
from ..kinds import DeviceKind, Price
from ..mechanisms import Mechanism


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """The least reports of a batch: that a definition may ask for, and by default."""

    least: int
    default: int


class TrustModel(ABC):
    """One trust model; without state."""

    price_key: ClassVar[str]  # of the definition
    reveals: ClassVar[bool]  # messages hold true values, which wait on the device
    releases: ClassVar[bool]  # figures leave as a curator's releases, paid from a budget
    batch_sizes: ClassVar[BatchSizes | None] = None  # None: reports never travel by shuffler
    hides_presence: ClassVar[bool] = False  # by default, wherever the kind can
    defaults: ClassVar[Mapping[str, object]] = {}  # of other fields

    @abstractmethod
    def inputs(self, kind: DeviceKind[Any], domain: Domain) -> int:
        """Return the number of inputs, without that of `absent`."""

    @abstractmethod
    def mechanism(self, kind: DeviceKind[Any], price: Price[Any]) -> Mechanism:
        """Return how a message depends on the true value."""

    @abstractmethod
    def check(self, definition: Definition) -> None:
        """Refuse what does not suit the model."""

    def check_batch(self, rules: BatchRules) -> None:  # noqa: B027 - a hook
        """Refuse rules of a batch that the model has no use for; by default nothing."""
