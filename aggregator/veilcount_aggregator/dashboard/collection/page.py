"""The estimates tab of a collection, and its figures as files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Response, request

from veilcount_shared.collection import Model
from veilcount_shared.domain import Boolean, Number

from ... import queries
from ...api.compressed_body import respond
from ...api.problems import refusal
from ...errors import QueryError
from ...mechanisms import handler_of
from ...queries import EstimateQuery, Snapshot
from ...queries.export import WRITERS
from ...queries.paired_comparison import compare_pair
from ...queries.query_params import Parameters
from ...series.series import Series
from ...text.privacy_guarantees import epsilons, promise
from ..collection_status import collection_status
from ..pages import Content, Context, page, render
from ..paired_view import paired_view
from .definition_history import definition_history
from .filters import filters, other_definitions, summary
from .series_panel import FORMS, ResultView
from .url_state import MAX_FOUND, PageAddress, ShownQuery, check_time_range, unknown

LEVEL = 0.95  # of the local side of a pair, as of releases


@page("/collections/<name>", tab="Estimates", order=1, computes=True)
def collection(context: Context, name: str) -> Response | Content:
    """Show the estimates of a collection."""
    snapshot = context.aggregator.snapshot()
    series = snapshot.named(name)
    common = _common(snapshot, series)
    if series[0].collection.model is Model.CENTRAL:
        return {**common, "panels": []}
    try:
        return common | _estimates(snapshot, series, dict(request.args.lists()))
    except QueryError as wrong:
        content = _estimates(snapshot, series, {})
        return render("collection", 400, **common, **content, wrong=str(wrong))


@page("/collections/<name>/estimates.<form>", computes=True)
def collection_file(context: Context, name: str, form: str) -> Response:
    """Return the result of one query as a file."""
    if form not in FORMS:
        raise refusal("not-found", f"give one of {', '.join(FORMS)}", "form")
    query = EstimateQuery.parse(dict(request.args.lists()))
    result = queries.estimate(context.aggregator.snapshot(), name, query)
    chunks = [queries.encode(result)] if form == "json" else WRITERS[FORMS[form]](result)
    response = respond(chunks, FORMS[form])
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    return response


def _common(snapshot: Snapshot, series: Sequence[Series]) -> dict[str, Any]:
    newest = series[0].collection
    return {
        "collection": newest,
        "curated": newest.model is Model.CENTRAL,
        "collection_status": collection_status(series[0], snapshot.today),
        "epsilon": epsilons(newest),
        "promise": promise(newest),
        "definitions": definition_history(snapshot, series),
        "paired": paired_view(compare_pair(snapshot, series[0], LEVEL)),
    }


def _estimates(
    snapshot: Snapshot, series: Sequence[Series], parameters: Parameters
) -> dict[str, Any]:
    at = PageAddress(series[0].collection.name, parameters)
    newest = snapshot.local(at.name, tuple(parameters.get("series", ())))[0].collection
    shown = ShownQuery.parse(newest, parameters)
    check_time_range(newest, parameters)
    query, result = shown.query, queries.estimate(snapshot, at.name, shown.query)
    view, known = ResultView(snapshot, at, shown, result), snapshot.catalog.series
    return {
        "at": at,
        "parameters": parameters,
        "typed": dict(request.args.lists()),
        "unknown": unknown(newest, parameters),
        "query": query,
        "filters": list(filters(at, series, newest, query)),
        "summary": summary(newest, query),
        "panels": [view.panel(known[each.fingerprint], each) for each in result.series],
        "others": []
        if parameters.get("series")
        else other_definitions(at, snapshot, series, result),
        "found": len(query.values) if len(query.values) == MAX_FOUND else 0,
        "ranges": handler_of(newest.mechanism).has_ranges,
        "searchable": not isinstance(newest.domain, Number | Boolean),
        "fakes": result.fakes,
    }
