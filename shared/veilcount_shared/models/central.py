"""The central model: a trusted curator sees true values, and adds noise to what it releases."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from ..definition_record import Definition
from ..domain import Domain
from ..enums import Adjacency, Linkage, Presence
from ..errors import DefinitionError
from ..kinds import DeviceKind, Price, kind_of
from ..mechanisms import Identity
from .model import TrustModel

LEAST_DELTA, MAX_DELTA = Fraction(1, 10**12), Fraction(1, 10**3)
LEAST_DELTA_BUDGET = Fraction(1, 100)  # below it, rho has too few steps


class Central(TrustModel):
    """Devices reveal, and the curator pays from a budget for each period."""

    price_key = "budget"
    reveals = releases = True
    defaults: ClassVar[Mapping[str, object]] = {"adjacency": Adjacency.ADD_REMOVE}

    def inputs(self, kind: DeviceKind[Any], domain: Domain) -> int:
        """Return the number of counters of true values."""
        cells = kind.true_cells(domain)
        assert cells is not None, "unsupported_models"  # noqa: S101 - narrows the type
        return cells.size

    def mechanism(self, kind: DeviceKind[Any], price: Price[Any]) -> Identity:  # noqa: ARG002 - of randomizers
        """Return the identity: the cell of the true value."""
        return Identity(price.inputs)

    def check(self, definition: Definition) -> None:
        """Require an adjacency, an enforceable cap, and cells that a curator can release."""
        if definition.delta is not None:
            _check_delta(definition, definition.delta)
        if definition.is_retention:
            fix = "a curator sees who comes back: count the pseudonyms of two periods"
            raise DefinitionError("takes", "returning", fix)
        if definition.presence is Presence.HIDDEN:
            fix = "a trusted curator sees presence: remove it"
            raise DefinitionError("presence", "hidden", fix)
        if definition.adjacency is None:
            raise DefinitionError("adjacency", None, 'give "add-remove" or "substitute"')
        if definition.linkage is Linkage.NONE:
            raise DefinitionError(
                "linkage",
                "none",
                "without pseudonyms the server cannot enforce the contribution cap that central"
                ' noise is calibrated to: use "period" or "collection"',
            )
        kind = kind_of(definition.domain, definition.measure)
        kind.check_true_cells(definition, definition.domain)


def _check_delta(definition: Definition, delta: Fraction) -> None:
    """Refuse a delta that noise cannot use; under Gaussian noise the budget is in rho (zCDP)."""
    if not LEAST_DELTA <= delta <= MAX_DELTA:
        raise DefinitionError("delta", delta, "give 1e-12 to 0.001: below one in all persons")
    if definition.noise is None and definition.unit_epsilon < LEAST_DELTA_BUDGET:
        fix = f"with delta, give at least {float(LEAST_DELTA_BUDGET):g}"
        raise DefinitionError("budget", definition.budget, fix)
