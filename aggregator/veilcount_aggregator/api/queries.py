"""Endpoints of queries: estimates, comparisons, budgets, trust-model comparisons, plans."""

from __future__ import annotations

from .. import queries
from ..analysis.planning import PlanResult
from ..auth.api_keys import Role
from ..queries import (
    BudgetQuery,
    BudgetResult,
    CompareQuery,
    CompareResult,
    ContrastQuery,
    ContrastResult,
    EstimateQuery,
    EstimateResult,
    PlanQuery,
)
from ..queries.export import WRITERS
from .endpoint import Api, endpoint

_COLLECTION = "/v1/collections/{name}"


@endpoint(
    "GET",
    f"{_COLLECTION}/estimate",
    Role.ANALYST,
    takes=EstimateQuery,
    returns=EstimateResult,
    tables=WRITERS,
    computes=True,
)
def show_estimate(api: Api, name: str, query: EstimateQuery) -> EstimateResult:
    """Debiased estimates of a local collection with their intervals, one block per series.

    A range of days is widened to whole periods. As a table, a row per estimate.
    """
    return queries.estimate(api.aggregator.snapshot(), name, query)


@endpoint(
    "GET",
    f"{_COLLECTION}/compare",
    Role.ANALYST,
    takes=CompareQuery,
    returns=CompareResult,
    tables=WRITERS,
    computes=True,
)
def show_comparison(api: Api, name: str, query: CompareQuery) -> CompareResult:
    """Differences between two disjoint sets of reports: segments, ranges of days or series.

    Each with its interval, the p-value adjusted for the family of all values, and the difference
    that would have been detected.
    """
    return queries.compare(api.aggregator.snapshot(), name, query)


@endpoint(
    "GET",
    f"{_COLLECTION}/budget",
    Role.ANALYST,
    takes=BudgetQuery,
    returns=BudgetResult,
    computes=True,
)
def show_budget(api: Api, name: str, query: BudgetQuery) -> BudgetResult:
    """Privacy loss of a person per event, day and campaign: guaranteed, and spent so far.

    The histogram of spent slots over pseudonyms is shown to an admin only.
    """
    shows_histogram = api.key.role is Role.ADMIN
    return queries.budget(api.aggregator.snapshot(), name, query, bars=shows_histogram)


@endpoint(
    "GET",
    f"{_COLLECTION}/contrast",
    Role.ANALYST,
    takes=ContrastQuery,
    returns=ContrastResult,
    computes=True,
)
def show_contrast(api: Api, name: str, query: ContrastQuery) -> ContrastResult:
    """The same question in the local, shuffled and central model.

    Errors, guarantees, and the number of devices that each model needs.
    """
    return queries.contrast(api.aggregator.snapshot(), name, query)


@endpoint("GET", "/v1/plan", Role.ANALYST, takes=PlanQuery, returns=PlanResult, computes=True)
def show_plan(api: Api, query: PlanQuery) -> PlanResult:
    """Any of devices, epsilon and error from the other two, with the definition to paste."""
    return queries.plan(query, api.aggregator.today())
