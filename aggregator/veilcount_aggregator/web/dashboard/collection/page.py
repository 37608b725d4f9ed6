"""The estimates tab of a collection, and its figures as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any

from flask import Response, request

from veilcount_analysis.errors import QueryError
from veilcount_analysis.kinds.estimate import judge, widest
from veilcount_analysis.kinds.kind import Kind
from veilcount_analysis.kinds.labels import value_key
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.results import Figure
from veilcount_analysis.query_params import Parameters
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.utc_days import days
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import JSON_TYPE

from .... import queries
from ....queries import EstimateQuery, EstimateResult, Snapshot
from ....queries.estimate_schema import SeriesResult
from ....queries.export import CSV_TYPE, WRITERS
from ....queries.headline import headline
from ....records.shuffled_batches.batch_states import PeriodBatch, batch_states
from ...api.json_io import respond
from ...api.problems import refusal
from ..collection_status import collection_status
from ..overview import REASONS
from ..pages import Content, Context, page, render
from .date_presets import date_presets, time_before
from .figure_panels import candidate_panel, panel_views
from .filters import filters, other_definitions, summary, time_filters
from .time_series import time_series, time_series_query
from .url_state import (
    MAX_FOUND,
    PageAddress,
    ShownQuery,
    check_time_range,
    time_ranges_shown,
    time_series_view,
)


@page("/collections/<name>", tab="Estimates", order=1, computes=True)
def collection(context: Context, name: str) -> Response | Content:
    """Show the estimates of a collection."""
    snapshot = context.aggregator.snapshot()
    series = snapshot.named(name)
    typed = dict(request.args.lists())
    published = {"published": name in context.aggregator.settings.publish}
    try:
        return collection_content(snapshot, series, typed) | published
    except QueryError as wrong:
        content = collection_content(snapshot, series, {}) | published | {"typed": typed}
        return render("collection", 400, **content, wrong=str(wrong))


@page("/collections/<name>/estimates.<form>", computes=True)
def collection_file(context: Context, name: str, form: str) -> Response:
    """Return the result of one query as a file."""
    if form not in FORMS:
        raise refusal("not-found", f"give one of {', '.join(FORMS)}", "form")
    query = EstimateQuery.parse(dict(request.args.lists()))
    snapshot = context.aggregator.snapshot()
    if form == "json":
        result = queries.estimate(snapshot, name, query)
    else:
        result = queries.estimate_table(snapshot, name, query, request.args)
    chunks = [queries.encode(result)] if form == "json" else WRITERS[FORMS[form]](result)
    response = respond(chunks, FORMS[form])
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    return response


def collection_content(
    snapshot: Snapshot, series: Sequence[Series], parameters: Parameters
) -> dict[str, Any]:
    """Return what a page shows of a collection: its state, and its estimates."""
    newest = series[0].collection
    curated = newest.trust.releases
    return {
        "collection": newest,
        "curated": curated,
        "collection_status": collection_status(series[0], snapshot.today),
        "batches": _latest_batches(snapshot, series[0]),
        **({"panels": []} if curated else _estimates(snapshot, series, parameters)),
    }


def _latest_batches(snapshot: Snapshot, series: Series) -> list[PeriodBatch]:
    """Return what has come of the latest periods, the newest first; none without a shuffler."""
    midnight = datetime.combine(snapshot.today, time(), UTC)
    states = batch_states(snapshot.store, snapshot.store, series, midnight)
    return states[: -LATEST_BATCHES - 1 : -1]


def _estimates(
    snapshot: Snapshot, series: Sequence[Series], parameters: Parameters
) -> dict[str, Any]:
    at = PageAddress(series[0].collection.name, parameters)
    newest = snapshot.local(at.name, tuple(parameters.get("series", ())))[0].collection
    shown = ShownQuery.parse(newest, parameters)
    check_time_range(newest, parameters)
    query, result = shown.query, queries.estimate(snapshot, at.name, shown.query)
    view, known = ResultView(snapshot, at, shown, result), snapshot.catalog.series
    kind = kind_of(newest)
    return {
        "at": at,
        "parameters": parameters,
        "typed": parameters,
        "unknown": kind.unknown_values(parameters.get("values", ())),
        "query": query,
        "presets": date_presets(at, known[result.series[0].fingerprint], query, snapshot.today),
        "filters": list(filters(at, series, newest, query)),
        "summary": summary(newest, query),
        "panels": [
            view.panel(known[one_series.fingerprint], one_series) for one_series in result.series
        ],
        "others": []
        if parameters.get("series")
        else other_definitions(at, snapshot, series, result),
        "found": len(query.values) if len(query.values) == MAX_FOUND else 0,
        "ranges": bool(kind.default_values),
        "searchable": kind.searchable,
        "open_strings": kind.accepts("candidates"),
        "result": result,
    }


LATEST_BATCHES = 12
FORMS = {"csv": CSV_TYPE, "json": JSON_TYPE}
MEANINGS = {
    Verdict.DUPLICATE: "a repeated report; it counts once, and nothing is lost",
    Verdict.OVER_BUDGET: "devices refuse these themselves: a modified client, or an attack",
    Verdict.STALE: "devices were offline for longer than the definition allows (late)",
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

    def panel(self, series: Series, estimate: SeriesResult) -> Content:
        """Return the panel of a series: its figures, for its last time range and over time."""
        kind, time_range = kind_of(series.collection), estimate.ranges[-1]
        n, width = time_range.n, widest(time_range.figures)
        query, contributions = self.shown.query, time_range.contributions
        adequacy = judge(kind, query, n, width, contributions, covers=time_range.covers)
        figures, leads = listed_figures(kind, estimate), time_range.leader is not None
        before = time_before(self.snapshot, series, self.shown.query, estimate)
        compared = before if before and before.usable else None
        return {
            "estimate": estimate,
            "time_range": time_range,
            "days": days(time_range.first, time_range.last),
            "adequacy": adequacy,
            "headline": headline(
                self.snapshot, series, query, time_range.figures, estimate.facts, leads=leads
            )
            if adequacy.usable
            else None,
            "views": list(panel_views(kind, self.result, figures, compared)),
            "unlisted": self._unlisted(estimate, sum(row.kind == "share" for row in figures)),
            "before": before,
            "files": _files(self.at, {**self.shown.parameters, "series": [estimate.fingerprint]}),
            "over_time": self._over_time(series, estimate) if adequacy.usable else None,
            "search": candidate_panel(estimate, time_range),
            "rejected": _rejected(estimate),
        }

    def _unlisted(self, estimate: SeriesResult, listed: int) -> list[tuple[str, str, str]]:
        """Return how many values a list leaves out, above and below noise, with links to them."""
        size, stand_out = estimate.facts.get("size"), estimate.facts.get("stand_out")
        if stand_out is None or size is None:
            return []
        above, below = stand_out - listed, size - stand_out
        most = self.at.with_selection(top=str(stand_out))
        every = self.at.with_selection(page="1")
        unlisted = [
            (above, "above the noise line", most, f"the {stand_out:,} largest"),
            (below, "below the noise line", every, f"all {size:,} values"),
        ]
        return [
            (f"{_more(number)} {where}, all values compared at once", href, text)
            for number, where, href, text in unlisted
            if number > 0
        ]

    def _over_time(self, series: Series, estimate: SeriesResult) -> Content | None:
        """Return the chart over time, the choice of time ranges, and files of the figures."""
        n = estimate.ranges[-1].n
        by = time_ranges_shown(self.snapshot, series, self.shown, self.at.parameters, n)
        if by is None:
            return None
        view, smoothable = time_series_view(
            self.snapshot, series, self.shown, self.at.parameters, by
        )
        query = time_series_query(series, self.shown, by, estimate, view)
        size = None if self.shown.query.groups else estimate.facts.get("size")
        over_time = time_series(self.snapshot, self.at.name, query, size)
        if over_time is None:
            return None
        choices = time_filters(self.at, series.collection, by, view, smoothable=smoothable)
        return {"found": over_time, "filters": list(choices), "files": _files(self.at, query)}


def listed_figures(kind: Kind[Any, Any], estimate: SeriesResult) -> list[Figure]:
    """Return the shown figures: a top list ends at the noise line, a short one is sorted."""
    figures, facts = estimate.ranges[-1].figures, estimate.facts
    shares = [row for row in figures if row.kind == "share"]
    if facts.get("stand_out") is not None:
        shares = shares[: facts["stand_out"]]
    elif kind.followed == "share" and facts.get("pages", 1) == 1:
        shares.sort(key=lambda row: (row.of is not True, -(row.figure or 0)))
    raked = {value_key(row.of): row for row in figures if row.kind == "raked"}
    reweighted = [raked[key] for row in shares if (key := value_key(row.of)) in raked]
    return [*shares, *reweighted, *(row for row in figures if row.kind not in {"share", "raked"})]


def _more(number: int) -> str:
    return "1 more value is" if number == 1 else f"{number:,} more values are"


def _files(at: PageAddress, query: Parameters) -> Files:
    return {form.upper(): at.export(form, query) for form in FORMS}


def _rejected(series: SeriesResult) -> list[tuple[str, str, str]]:
    """Return the rejected reports of all segments: the reason, how many, what it means."""
    rejected: Counter[str] = Counter(series.unplaced)
    for time_range in series.ranges:
        rejected.update(time_range.verdicts)
    return [
        (REASONS[Verdict(word)], f"{number:,}", MEANINGS[Verdict(word)])
        for word, number in rejected.most_common()
    ]
