"""The estimates tab of a collection, and its figures as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, request

from veilcount_shared.collection import Model
from veilcount_shared.domain import Boolean, Number
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import JSON_TYPE

from ... import queries
from ...api.json_io import respond
from ...api.problems import refusal
from ...errors import QueryError
from ...estimation import LookCount
from ...mechanisms import handler_of
from ...queries import Denominator, EstimateQuery, EstimateResult, Snapshot
from ...queries.estimate_schema import SeriesEstimate, TimeRangeEstimate
from ...queries.export import CSV_TYPE, WRITERS
from ...queries.paired_comparison import compare_pair
from ...queries.query_params import Parameters
from ...series.series import Series
from ...text.privacy_guarantees import epsilons, promise
from ..collection_status import collection_status
from ..contrast import paired_view
from ..formatting import days
from ..overview import REASONS
from ..pages import Content, Context, page, render
from .definition_history import definition_history
from .figure_panels import numeric_panel, share_chart
from .filters import filters, other_definitions, summary, time_range_filter
from .sample_adequacy import SampleAdequacy, Terms, observed_adequacy, sample_adequacy
from .time_series import time_series_chart, time_series_query
from .url_state import (
    MAX_FOUND,
    PageAddress,
    ShownQuery,
    check_time_range,
    time_ranges_shown,
    unknown,
)

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


FORMS = {"csv": CSV_TYPE, "json": JSON_TYPE}
DIGITS = 8  # of a fingerprint, in what charts are called
TWO = 2  # values, whose shares mirror each other
MEANINGS = {
    Verdict.DUPLICATE: "a repeated report; it counts once, and nothing is lost",
    Verdict.OVER_BUDGET: "devices refuse these themselves: a modified client, or an attack",
    Verdict.STALE: "devices were offline for longer than `late` allows",
    Verdict.CLOSED: "an operator closed the collection",
    Verdict.MALFORMED: "another or a modified client",
    Verdict.FULL: "a limit on new pseudonyms or on memory is reached; devices retry",
    Verdict.UNKNOWN_COLLECTION: "apps ship a definition that was never pushed",
    Verdict.EARLY: "clocks of devices are ahead; they retry",
}

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ResultView:
    """The page's query and its result, of which each series has a panel."""

    snapshot: Snapshot
    at: PageAddress
    shown: ShownQuery
    result: EstimateResult

    def panel(self, series: Series, estimate: SeriesEstimate) -> Content:
        """Return the panel of a series: its figures, for its last time range and over time."""
        time_range, name = estimate.time_ranges[-1], _name(estimate)
        return {
            "estimate": estimate,
            "time_range": time_range,
            "days": days(time_range.first, time_range.last),
            "adequacy": self._adequacy(series, time_range),
            "shares": share_chart(self.result, estimate, time_range, name),
            "number": numeric_panel(self.result, time_range, name),
            "files": _files(self.at, {**self.shown.parameters, "series": [estimate.fingerprint]}),
            "over_time": self._over_time(series, estimate),
            "rejected": _rejected(estimate),
        }

    def _adequacy(self, series: Series, time_range: TimeRangeEstimate) -> SampleAdequacy:
        collection, at_once = series.collection, 1
        if time_range.n and (
            self.result.among is Denominator.ANSWERED or self.result.looks is LookCount.EVERY
        ):
            rows = [time_range.mean] if time_range.mean else time_range.values
            widest = max(row.high - row.low for row in rows)
            return observed_adequacy(collection, time_range.n, widest / 2)
        if self.result.simultaneous and not isinstance(collection.domain, Number):
            at_once = collection.inputs if collection.inputs > TWO else 1
        each = collection.answering * collection.per_period  # before there are any, of them all
        most = time_range.contributions if time_range.n else each
        terms = Terms(self.result.level, at_once, most == 1)
        return sample_adequacy(collection, time_range.n, terms)

    def _over_time(self, series: Series, estimate: SeriesEstimate) -> Content | None:
        """Return the chart over time, the choice of time ranges, and files of the figures."""
        n = estimate.time_ranges[-1].n
        by = time_ranges_shown(self.snapshot, series, self.shown, self.at.parameters, n)
        if by is None:
            return None
        query = time_series_query(series, self.shown, by, estimate)
        chart = time_series_chart(self.snapshot, self.at.name, query, f"{_name(estimate)}-time")
        if chart is None:
            return None
        choice = time_range_filter(self.at, series.collection, by)
        return {"chart": chart, "filter": choice, "files": _files(self.at, query)}


def _name(estimate: SeriesEstimate) -> str:
    return f"answers-{estimate.fingerprint[:DIGITS]}"


def _files(at: PageAddress, query: Parameters) -> Files:
    return {form.upper(): at.export(form, query) for form in FORMS}


def _rejected(series: SeriesEstimate) -> list[tuple[str, str, str]]:
    """Return the rejected reports of all segments: how many, the reason, what it means."""
    found: Counter[str] = Counter(series.unplaced)
    for time_range in series.time_ranges:
        found.update(time_range.verdicts)
    return [
        (f"{number:,}", REASONS[Verdict(word)], MEANINGS[Verdict(word)])
        for word, number in found.most_common()
    ]
