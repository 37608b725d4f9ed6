"""Questions in two-way tables: one drawn pair of them, coded jointly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ..domain import Choice, Questions
from ..enums import Model
from ..errors import DefinitionError
from ..mechanisms import PairTables
from .kind import DeviceKind, Price, TableContext, share_margin
from .toml_values import Table, read_labels, read_named


class TableKind(DeviceKind[Questions]):
    """The table of each two questions."""

    name = "tables"
    declared_by = ("questions",)
    keys: ClassVar[Mapping[str, str]] = {"tables": "only for questions: remove it"}
    absent_fix = "a table has no cell for absent: use values"
    unsupported_models: ClassVar[Mapping[Model, tuple[str, str]]] = {
        Model.CENTRAL: ("model", "a curator has no query of tables: cross values instead")
    }
    domain_fix = "questions have no measure: remove it"

    def parse(self, table: Table, context: TableContext) -> Questions:  # noqa: ARG002 - of other kinds
        """Return the questions; a table without `tables` may mean one question a device."""
        if table.get("tables") is not True:
            fix = (
                "for the table of each two questions write tables = true; for their shares alone,"
                " name the questions in a [group] instead"
            )
            raise DefinitionError("tables", table.get("tables"), fix)
        fix = 'give a table: questions = {theme = ["light", "dark"], walk = ["yes", "no"]}'
        return Questions(tuple(read_named("questions", table["questions"], _question, fix)))

    def randomizer(self, price: Price[Questions]) -> PairTables:
        """Return the subset selection of each pair."""
        sizes = tuple(choice.size for _, choice in price.domain.questions)
        return PairTables.for_epsilon(price.epsilon, sizes)

    def precision_advice(self, price: Price[Questions], answers: int) -> str:
        """Compare the margin of a cell with the average cell, in the largest table."""
        mechanism = self.randomizer(price)
        reports = answers / len(mechanism.pairs)
        subset = max(mechanism.subsets, key=lambda subset: subset.k)
        margin = share_margin(subset, reports)
        if margin <= 1 / subset.k:
            return ""
        return (
            f"a cell is known to +/- {margin:.2%}, more than the average of {subset.k:,} cells:"
            " fewer questions, fewer answers to each, more reports or a larger epsilon"
        )


def _question(key: str, value: object) -> Choice:
    return Choice(read_labels(key, value))
