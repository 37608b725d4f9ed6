"""A trust model: who adds the noise, and what that asks of a definition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from ..definition_record import Definition
from ..domain import Domain
from ..kinds import DeviceKind, Price
from ..mechanisms import Mechanism


class TrustModel(ABC):
    """One trust model; without state."""

    price_key: ClassVar[str]  # of the definition
    reveals: ClassVar[bool]  # messages hold true values, which wait on the device
    releases: ClassVar[bool]  # figures leave as a curator's releases, paid from a budget
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
