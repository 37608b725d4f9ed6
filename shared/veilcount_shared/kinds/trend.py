"""A trend: how many people's state is true at the end of each period."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar

from ..definition_record import Definition
from ..enums import Held, Linkage, Model, Presence, Takes
from ..errors import DefinitionError
from ..mechanisms import TrendMechanism
from ..periods import Unit
from .kind import Price
from .true_cells import Listed
from .values import BooleanKind

CHANGES = range(1, 64, 2)
#: what the key of a definition must be, and the fix
_REQUIRED: dict[str, tuple[object, str]] = {
    "takes": (Takes.LAST, 'a state is what it was last: use "last"'),
    "held": (Held.DEVICE, 'a state outlives a process: use "device"'),
    "presence": (Presence.HIDDEN, 'a state has no absence: use "hidden"'),
    "linkage": (
        Linkage.COLLECTION,
        'when a person reports shows which reports are theirs: use "collection"',
    ),
    "answers": (None, "the reports are drawn by the trend: remove it"),
}


class TrendKind(BooleanKind):
    """A boolean that changes rarely, reported under signs that are drawn once."""

    name = "trend"
    canonical_keys: ClassVar[tuple[str, ...]] = ("changes",)
    defaults: ClassVar[Mapping[str, object]] = {
        "takes": Takes.LAST,
        "held": Held.DEVICE,
        "presence": Presence.HIDDEN,
    }
    takes = frozenset({Takes.LAST})
    fresh = False
    unsupported_models: ClassVar[Mapping[Model, tuple[str, str]]] = {
        Model.CENTRAL: ("model", "a curator has running totals: remove measure"),
        Model.SHUFFLED: ("model", "reports of a trend belong together, and no batch hides that"),
    }
    measure_fix = "a state is true or false: boolean = true"

    def check(self, definition: Definition, domain: Listed) -> None:  # noqa: ARG002 - a boolean
        """Require a state that each person's device keeps, through every restart."""
        for key, (required, fix) in _REQUIRED.items():
            value = getattr(definition, key)
            if value is not required:
                raise DefinitionError(key, str(value) if isinstance(value, StrEnum) else value, fix)
        if definition.unit in {Unit.EVENT, Unit.USER}:
            fix = 'a state has a value at the end of each "day", "week" or "month"'
            raise DefinitionError("unit", str(definition.unit), fix)
        if definition.changes not in CHANGES:
            fix = f"give how often it changes at most: odd, {CHANGES[0]} to {CHANGES[-1]}"
            raise DefinitionError("changes", definition.changes, fix)

    def true_cells(self, domain: Listed) -> None:
        """Return none: a curator's running totals are of a boolean without a measure."""

    def randomizer(self, price: Price[Listed]) -> TrendMechanism:
        """Return the mechanism of so many periods and changes."""
        assert price.changes is not None, "check() requires it"  # noqa: S101 - narrows the type
        return TrendMechanism.for_epsilon(price.epsilon, price.periods, price.changes)

    def precision_advice(self, price: Price[Listed], answers: int) -> str:  # noqa: ARG002 - by kind
        """Return none: nothing is predicted for a sum of levels."""
        return ""
