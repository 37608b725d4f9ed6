"""Values: how frequent each of a list is; of a boolean, and of private attributes as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ..domain import Boolean, Choice, Cross, Several
from ..enums import Takes
from ..errors import DefinitionError
from ..mechanisms import Randomizer, select_mechanism
from .kind import DeviceKind, Price, TableContext, share_margin
from .toml_values import Table, read_labels, read_named, read_text, read_whole
from .true_cells import Labelled, Listed, TrueCells, YesOrNo

_MEANINGLESS = "has no meaning for a {key}: remove it"


_UNCHOSEN = 'only with choose = "several": remove it'


class ListKind:
    """What all kinds of a list have in common: how it is declared."""

    canonical_keys: ClassVar[tuple[str, ...]] = ("labels",)
    raked: ClassVar[bool] = True
    declared_by: ClassVar[tuple[str, ...]] = ("values", "values_file")
    keys: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("other", "cross", "choose"), _MEANINGLESS),
        "most": _UNCHOSEN,
    }

    def parse(self, table: Table, context: TableContext) -> Any:
        """Return the list: of one value, crossed with private attributes or not, or of several."""
        answer = self._parse_answer(table, context)
        if "choose" in table and isinstance(answer, Choice):
            return _several(answer, table)
        if "most" in table:
            raise DefinitionError("most", table["most"], _UNCHOSEN)
        return _cross(answer, table["cross"]) if "cross" in table else answer

    def _parse_answer(self, table: Table, context: TableContext) -> Boolean | Choice:
        other = read_text("other", table["other"]) if "other" in table else None
        if "values" in table:
            return Choice(read_labels("values", table["values"]), other)
        try:
            file = read_text("values_file", table["values_file"])
            return Choice(tuple(context.read_values(file)), other)
        except DefinitionError as error:  # named after the key that stands in this file
            key = "values_file" if error.key == "values" else error.key
            raise DefinitionError(key, error.value, error.fix) from error


class ValueKind(ListKind, DeviceKind[Listed]):
    """One answer out of a list, by subset selection or a projective geometry."""

    name = "values"

    def labels(self, domain: Listed) -> int:
        """Return the number of the answer's labels; yes and no are translated by the app."""
        answer = domain.answer if isinstance(domain, Cross) else domain
        return answer.size if isinstance(answer, Choice) else 0

    def translated(self, domain: Listed, labels: tuple[str, ...]) -> Listed:
        """Return the answers in another language; attributes keep their labels."""
        match domain:
            case Cross(answer=Choice() as answer):
                return replace(domain, answer=answer.translated(labels))
            case Choice():
                return domain.translated(labels)
        return domain

    def randomizer(self, price: Price[Listed]) -> Randomizer:
        """Select the mechanism by the number of inputs."""
        return select_mechanism(price.inputs, price.epsilon).mechanism

    def true_cells(self, domain: Listed) -> TrueCells | None:
        """Return a counter for each value."""
        return Labelled(domain)

    def precision_advice(self, price: Price[Listed], answers: int) -> str:
        """Compare the margin with the average share of a value."""
        margin = share_margin(select_mechanism(price.inputs, price.epsilon).mechanism, answers)
        if margin <= 1 / price.inputs:
            return ""
        return (
            f"a share is known to +/- {margin:.2%}, more than the average share of"
            f" {price.inputs:,} values: fewer values, more answers or a larger epsilon, or look"
            " only at the most common values"
        )


class BooleanKind(ValueKind):
    """Yes or no."""

    declared_by = ("boolean",)
    canonical_keys: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[Mapping[str, str]] = {"cross": _MEANINGLESS}
    takes = frozenset({Takes.FIRST, Takes.LAST, Takes.ANY, Takes.RETURNING})

    def true_cells(self, domain: Listed) -> TrueCells | None:
        """Return a counter for no, and one for yes."""
        return YesOrNo(domain)

    def _parse_answer(self, table: Table, context: TableContext) -> Boolean:  # noqa: ARG002 - of a list
        if table["boolean"] is not True:
            fix = "write boolean = true, or give values"
            raise DefinitionError("boolean", table["boolean"], fix)
        return Boolean()


def _cross(answer: Boolean | Choice, value: object) -> Cross:
    fix = 'give a table: cross = {plan = ["free", "paid"]}'
    return Cross(answer, tuple(read_named("cross", value, _attribute, fix)))


def _several(choice: Choice, table: Table) -> Several:
    if table["choose"] != "several":
        raise DefinitionError("choose", table["choose"], 'write choose = "several", or remove it')
    if "cross" in table:
        fix = "several values are not crossed with attributes: remove it"
        raise DefinitionError("cross", table["cross"], fix)
    return Several(choice, read_whole("most", table["most"]) if "most" in table else None)


def _attribute(key: str, value: object) -> Choice:
    return Choice(read_labels(key, value))
