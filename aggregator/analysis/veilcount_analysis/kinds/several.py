"""Several values of a list: how many tick each. The shares do not add up to 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from numpy.random import Generator

from veilcount_shared.domain import Several
from veilcount_shared.mechanisms import DrawnBit, Randomizer

from ..privacy.trust_models import Quantity
from ..query_params import Parameters
from ..simulation.simulated_figures import SimulatedFigures
from ..simulation.ticks import TicksSimulation, simulate_ticks
from .comparison import SEVERAL_VALUES, Comparison
from .headline import Headline, shares_headline
from .results import Figure
from .values import PAGES, PROBABILITIES, UNLISTED, Values

NOT_ONE = "shares of several values do not add up to 1: remove it"


class SeveralValues(Values):
    """Shares of the people who tick each value; of hidden presence also that of `absent`."""

    name = "several"
    facts: ClassVar[Mapping[str, str]] = {
        **PROBABILITIES,
        **PAGES,
        "most": "ticks of a person that count at most; null: one drawn bit a report",
        "stand_out": "number of values significantly above noise; null without `top`",
    }
    accepted_parameters: ClassVar[frozenset[str]] = frozenset(
        {"page", "looks=every", "top", "values"}
    )
    refused_parameters: ClassVar[Mapping[str, str]] = {
        **UNLISTED,
        "view=consistent": NOT_ONE,
        "view=smooth": NOT_ONE,
        "group": "who ticks two of a group counts twice in it: remove it",
    }
    simulation = TicksSimulation

    def headline(
        self, figures: Sequence[Figure], facts: Mapping[str, Any], *, leads: bool
    ) -> Headline:
        return shares_headline(figures, leads=leads, verb="ticked")

    def notes(self, facts: Mapping[str, Any]) -> list[str]:
        if facts["most"] is None:
            note = f"each report is about one of {facts['size']} values, drawn"
        else:
            note = (
                f"of a person who ticks more than {facts['most']} values, {facts['most']} drawn"
                " ones count: if many do, shares are too low"
            )
        return [note, *super().notes(facts)]

    @property
    def comparison(self) -> Comparison:
        return replace(super().comparison, subject=SEVERAL_VALUES)

    @property
    def quantity(self) -> Quantity:
        values = self.collection.mechanism.inputs.bit_length() - 1
        return Quantity.of_several(self._family, values, self._most or values)

    @property
    def _most(self) -> int | None:
        return self.domain.most if isinstance(self.domain, Several) else 1

    def _family(self, epsilon: Any) -> Randomizer:
        kind, price = self.collection.kind, self.collection.price
        return kind.randomizer(replace(price, epsilon=epsilon))

    @property
    def line(self) -> None:
        """None: each value has an interval."""
        return

    def simulate(self, options: Parameters, generator: Generator) -> SimulatedFigures:
        return simulate_ticks(self.collection, TicksSimulation.parse(options), generator)

    def _facts(self, size: int, **more: Any) -> dict[str, Any]:
        facts = super()._facts(size, most=self._most, **more)
        mechanism = self.collection.mechanism
        if isinstance(mechanism, DrawnBit):  # of the reports that draw the value
            facts |= {"P": float(mechanism.bit), "Q": float(1 - mechanism.bit)}
        return facts
