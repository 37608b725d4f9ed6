"""Kinds of question: one module each, and the registry.

A kind is looked up by the type of the domain and the measure. There is no default: what no row
names is refused, wherever a kind is asked for.
"""

from __future__ import annotations

from typing import Any

from ..domain import Boolean, Choice, Cross, Domain, Features, Number, OpenStrings, Questions
from ..enums import Measure
from ..errors import DefinitionError
from .kind import DeviceKind as DeviceKind
from .kind import Price as Price
from .kind import ReadValues as ReadValues
from .kind import TableContext as TableContext
from .numbers import DistributionKind, FeatureKind, MeanKind, NumberKind, RangesKind
from .strings import OPEN, StringKind
from .tables import TableKind
from .toml_values import Table
from .trend import TrendKind
from .true_cells import CellLabel as CellLabel
from .true_cells import TrueCells as TrueCells
from .values import BooleanKind, ValueKind

KINDS: dict[tuple[type[Domain], Measure | None], DeviceKind[Any]] = {
    (Choice, None): ValueKind(),
    (Boolean, None): BooleanKind(),
    (Cross, None): ValueKind(),
    (Number, None): NumberKind(),
    (Number, Measure.MEAN): MeanKind(),
    (Number, Measure.DISTRIBUTION): DistributionKind(),
    (Number, Measure.RANGES): RangesKind(),
    (Features, Measure.MOMENTS): FeatureKind(),
    (Boolean, Measure.TREND): TrendKind(),
    (OpenStrings, None): StringKind(),
    (Questions, None): TableKind(),
}


def kind_of(domain: Domain, measure: Measure | None) -> DeviceKind[Any]:
    """Return the kind of a domain and a measure; raise if no row has both."""
    kind = KINDS.get((type(domain), measure))
    if kind is None:
        name = None if measure is None else str(measure)
        raise DefinitionError("measure", name, _mismatch_fix(type(domain), measure))
    return kind


def _mismatch_fix(domain_type: type[Domain], measure: Measure | None) -> str:
    """Return the fix of the domain if it has one, else that of the measure."""
    rows = KINDS.items()
    fixes = [kind.domain_fix for (row_type, _), kind in rows if row_type is domain_type]
    fixes += [kind.measure_fix for (_, row_measure), kind in rows if row_measure == measure]
    return next(filter(None, fixes), f"no kind of question has {domain_type.__name__}")


# -- from a table of TOML to a domain --------------------------------------------------------------

#: by the key that declares a domain: kinds with the same key inherit one parser
_DECLARED = {key: kind for kind in KINDS.values() if not kind.foreign for key in kind.declared_by}
_FIXES = {key: fix for kind in KINDS.values() for key, fix in kind.keys.items()}
DOMAIN_KEYS = (*_DECLARED, *_FIXES)


def parse_domain(table: Table, context: TableContext) -> Domain:
    """Return the domain that a table declares; refuse the keys of other kinds."""
    kind, key = _declared_kind(table)
    for other in DOMAIN_KEYS:
        if other in table and other != key and other not in kind.keys:
            fix = kind.foreign or _FIXES[other].format(key=key)
            raise DefinitionError(other, table[other], fix)
    domain: Domain = kind.parse(table, context)
    return domain


def _declared_kind(table: Table) -> tuple[DeviceKind[Any], str]:
    """Return the kind of a table and the key that declares it, of which there must be one."""
    if table.get("values") == OPEN:
        return KINDS[OpenStrings, None], "values"
    keys = [key for key in _DECLARED if key in table]
    if len(keys) != 1:
        fix = f"give exactly one of {', '.join(_DECLARED)}: the possible answers"
        raise DefinitionError("values", keys or None, fix)
    return _DECLARED[keys[0]], keys[0]
