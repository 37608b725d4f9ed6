"""Endpoints of queries: estimates, comparisons, budgets, trust-model comparisons, plans."""

from __future__ import annotations

from functools import partial

from flask import request

from veilcount_analysis.planning import PlanResult
from veilcount_shared.wire import JSON_TYPE

from ... import queries
from ...queries import (
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
from ...queries.estimate_schema import CandidateList
from ...queries.export import WRITERS
from ...records.api_keys import Role
from .endpoint import Api, endpoint
from .json_io import preferred_type

_COLLECTION = "/v1/collections/{name}"

query_endpoint = partial(endpoint, "GET", role=Role.ANALYST, computes=True)


@query_endpoint(
    f"{_COLLECTION}/estimate", takes=EstimateQuery, returns=EstimateResult, tables=WRITERS
)
def show_estimate(api: Api, name: str, query: EstimateQuery) -> EstimateResult:
    """Debiased estimates of a local collection with their intervals, one block per series.

    A range of days is widened to whole periods. As a table, a row per estimate, of all values
    unless a parameter selects some.
    """
    if preferred_type(WRITERS) != JSON_TYPE:
        return queries.estimate_table(api.aggregator.snapshot(), name, query, request.args)
    return queries.estimate(api.aggregator.snapshot(), name, query)


@endpoint(
    "POST",
    f"{_COLLECTION}/estimate",
    Role.ANALYST,
    takes=CandidateList,
    returns=EstimateResult,
    computes=True,
)
def search_candidates(api: Api, name: str, body: CandidateList) -> tuple[EstimateResult, int]:
    """Look for up to a million strings among the open strings of a collection.

    The same as a GET with `candidates`, whose address holds a few of them.
    """
    words = {key: [str(word) for word in each] for key, each in body.parameters.items()}
    query = EstimateQuery.parse({**words, "candidates": body.candidates})
    return queries.estimate(api.aggregator.snapshot(), name, query), 200


@query_endpoint(f"{_COLLECTION}/compare", takes=CompareQuery, returns=CompareResult, tables=WRITERS)
def show_comparison(api: Api, name: str, query: CompareQuery) -> CompareResult:
    """Differences between two disjoint sets of reports: segments, ranges of days or series.

    Each with its interval, the p-value adjusted for the family of all values, and the difference
    that would have been detected.
    """
    return queries.compare(api.aggregator.snapshot(), name, query)


@query_endpoint(f"{_COLLECTION}/budget", takes=BudgetQuery, returns=BudgetResult)
def show_budget(api: Api, name: str, query: BudgetQuery) -> BudgetResult:
    """Privacy loss of a person per event, day and campaign: guaranteed, and spent so far.

    The histogram of spent slots over pseudonyms is shown to an admin only.
    """
    shows_histogram = api.key.role is Role.ADMIN
    return queries.budget(api.aggregator.snapshot(), name, query, bars=shows_histogram)


@query_endpoint(f"{_COLLECTION}/contrast", takes=ContrastQuery, returns=ContrastResult)
def show_contrast(api: Api, name: str, query: ContrastQuery) -> ContrastResult:
    """The same question in the local, shuffled and central model.

    Errors, guarantees, and the number of devices that each model needs.
    """
    return queries.contrast(api.aggregator.snapshot(), name, query)


@query_endpoint("/v1/plan", takes=PlanQuery, returns=PlanResult)
def show_plan(api: Api, query: PlanQuery) -> PlanResult:
    """Any of devices, epsilon and error from the other two, with the definition to paste."""
    return queries.plan(query, api.aggregator.today())
