"""The queries of a collection, each declared once for its route, OpenAPI entry and command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from veilcount_analysis.query_params import Parameters, QueryParams

from ..json_results import decoded
from .budgets import BudgetQuery, BudgetResult, budget, without_bars
from .comparison import CompareQuery, CompareResult, compare
from .contrasts import ContrastQuery, ContrastResult, contrast
from .snapshot import Snapshot

Q = TypeVar("Q", bound=QueryParams)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CollectionQuery(Generic[Q, R]):
    """A query of one collection: its parameters, its result, and what computes one from the other.

    The docstring of `compute` is the description. `for_analysts` leaves out what admins alone see.
    """

    name: str
    takes: type[Q]
    returns: type[R]
    compute: Callable[[Snapshot, str, Q], R]
    for_analysts: Callable[[R], R] = lambda result: result
    has_table: bool = False  # also as CSV, Parquet and Arrow

    @property
    def description(self) -> str:
        """What it computes, in sentences."""
        return inspect.getdoc(self.compute) or ""

    def run(self, snapshot: Snapshot, collection: str, parameters: Parameters) -> R:
        """Return the result for parameters as they are typed."""
        return self.compute(snapshot, collection, self.takes.parse(parameters))

    def decode(self, document: dict[str, Any]) -> R:
        """Return a result from its JSON."""
        return decoded(document, self.returns)


COMPARE = CollectionQuery("compare", CompareQuery, CompareResult, compare, has_table=True)
BUDGET = CollectionQuery("budget", BudgetQuery, BudgetResult, budget, without_bars)
CONTRAST = CollectionQuery("contrast", ContrastQuery, ContrastResult, contrast)
COLLECTION_QUERIES: tuple[CollectionQuery[Any, Any], ...] = (COMPARE, BUDGET, CONTRAST)
