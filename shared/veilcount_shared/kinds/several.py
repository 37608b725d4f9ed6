"""Several values of a list: how many tick each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from ..definition_record import Definition
from ..domain import Several
from ..enums import Model, Presence
from ..errors import DefinitionError
from ..mechanisms import DrawnBit, SetSelection
from .kind import DeviceKind, Price, share_margin
from .values import ListKind

UNCLEAR = 1 / 10  # a margin of a share above which little is learnt


class SeveralKind(ListKind, DeviceKind[Several]):
    """All values that apply: by set selection up to a number of them, else by one drawn bit."""

    name = "several"
    domain_fix = "several values have no measure: remove it"
    unsupported_models: ClassVar[Mapping[Model, tuple[str, str]]] = {
        Model.CENTRAL: ("model", "a curator has no query of several values: ask for one of them")
    }

    def check(self, definition: Definition, domain: Several) -> None:
        """Refuse an absence where a bit is drawn: few reports would say anything about it."""
        if domain.most is None and definition.presence is Presence.HIDDEN:
            fix = 'a drawn bit has no cell for absent: give most, or write presence = "public"'
            raise DefinitionError("presence", "hidden", fix)

    def inputs(self, domain: Several) -> int:
        """Return the number of masks; that of `absent` is the next one, a bit of its own."""
        return 1 << domain.size

    def labels(self, domain: Several) -> int:
        """Return the number of labels."""
        return domain.size

    def translated(self, domain: Several, labels: tuple[str, ...]) -> Several:
        """Return the values in another language."""
        return replace(domain, choice=domain.choice.translated(labels))

    def randomizer(self, price: Price[Several]) -> DrawnBit | SetSelection:
        """Return the mechanism of the values, and of `absent` as one of them."""
        values, most = (price.inputs - 1).bit_length(), price.domain.most
        if most is None:
            return DrawnBit.for_epsilon(price.epsilon, values)
        return SetSelection.for_epsilon(price.epsilon, values, most)

    def precision_advice(self, price: Price[Several], answers: int) -> str:
        """Return the margin of a share, if it is large."""
        margin = share_margin(self.randomizer(price), answers)
        if margin <= UNCLEAR:
            return ""
        return (
            f"a share is known to +/- {margin:.0%}: fewer values, a smaller most, more answers or a"
            " larger epsilon"
        )
