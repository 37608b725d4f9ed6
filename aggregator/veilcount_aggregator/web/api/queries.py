"""Endpoints of queries: estimates, comparisons, budgets, trust-model comparisons, plans."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import request

from veilcount_analysis.planning import PlanResult
from veilcount_analysis.query_params import QueryParams
from veilcount_shared.wire import JSON_TYPE

from ... import queries
from ...queries import COLLECTION_QUERIES, CollectionQuery, EstimateQuery, EstimateResult, PlanQuery
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
    words = {key: [str(word) for word in parameter] for key, parameter in body.parameters.items()}
    query = EstimateQuery.parse({**words, "candidates": body.candidates})
    body.candidates.clear()  # a million strings take 75 MB, and the query has them packed
    return queries.estimate(api.aggregator.snapshot(), name, query), 200


def _declare(declared: CollectionQuery[Any, Any]) -> None:
    """Declare the endpoint of a query: only admins see all of its result."""

    def show(api: Api, name: str, query: QueryParams) -> Any:
        result = declared.compute(api.aggregator.snapshot(), name, query)
        return result if api.key.role is Role.ADMIN else declared.for_analysts(result)

    show.__name__, show.__doc__ = f"show_{declared.name}", declared.description
    tables = WRITERS if declared.has_table else {}
    path = f"{_COLLECTION}/{declared.name}"
    query_endpoint(path, takes=declared.takes, returns=declared.returns, tables=tables)(show)


for _query in COLLECTION_QUERIES:
    _declare(_query)


@query_endpoint("/v1/plan", takes=PlanQuery, returns=PlanResult)
def show_plan(api: Api, query: PlanQuery) -> PlanResult:
    """Any of devices, epsilon and error from the other two, with the definition to paste."""
    return queries.plan(query, api.aggregator.today())
