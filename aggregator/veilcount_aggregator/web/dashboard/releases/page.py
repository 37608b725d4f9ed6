"""The releases tab of a collection, and the release itself: a form, answered with a redirect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from http import HTTPStatus
from typing import Any

from flask import Response, request

from veilcount_analysis.errors import QueryError
from veilcount_analysis.kinds.strings import candidates_of
from veilcount_analysis.mechanisms.candidate_search import open_domain
from veilcount_analysis.releases import Release
from veilcount_analysis.releases.price import Accounting, period_budget
from veilcount_analysis.releases.query import query_options
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.utc_days import day
from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency
from veilcount_shared.errors import VeilcountError, format_value
from veilcount_shared.schedule import period_end

from ....errors import ReleaseRefused
from ....queries.named_strings import name_strings
from ....queries.releases import SeriesReleases, days_of, series_releases
from ....queries.snapshot import Snapshot
from ....releases.budget_ledger import load_releases as stored_releases
from ....releases.curator import DryRun
from ....releases.store_confirmation import unconfirmed_journals
from ....service import Aggregator
from ....store.restore_lock import release_lock_reason
from ..formatting import short_epsilon
from ..pages import Content, Context, page, paginate, redirect_to, render, series_choice
from .view import budget_chart, dry_run_view, place_of, refusal_text, release_entry

NO_JOURNAL = (
    "Releases are not possible: each is written to a journal next to the store first, and there is"
    " none. The operator starts the server with --journal FILE."
)
LOCKED = "Releases are locked: the store may lack recorded spend."
UNLOCK = (
    "The operator restores it: veilcount store unlock --journal FILE. Earlier releases are listed"
    " below."
)
WAITING = "Releases wait for these journals to confirm the store:"
CONFIRM = (
    "Each does so within seconds while its host runs. If one is gone for good, the operator retires"
    " it: veilcount store retire-journal ID."
)
NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "with or without one unit",
    Adjacency.SUBSTITUTE: "with one unit's answers exchanged for others",
}
PAGE_SIZE = 20  # releases of the journal
RULE = "/collections/<name>/releases"

Conclusion = tuple[str, str, str]  # tone, headline, details


@page(RULE, tab="Releases", order=5, computes=True)
def releases(context: Context, name: str) -> Response:
    """Show the form, the remaining budget and past releases."""
    snapshot = context.aggregator.snapshot()
    if not _central(snapshot, name):
        return render("no_releases")
    choice = series_choice("releases", _central(snapshot, name))
    series: Series = choice["series"]
    if "query" not in request.args:
        ledger = series_releases(snapshot.store, series)
        return _page(context, snapshot, choice, defaults(series, ledger, snapshot.today))
    typed = ReleaseForm.parse(request.args)
    try:
        dry_run = context.aggregator.curator.dry_run(series, typed.request(series.collection))
    except QueryError as error:
        return _page(context, snapshot, choice, typed, wrong=error)
    return _page(context, snapshot, choice, typed, dry_run=dry_run)


@page(RULE, methods=("POST",), computes=True)
def release(context: Context, name: str) -> Response:
    """Release: charge it, and redirect to the result."""
    aggregator, snapshot = context.aggregator, context.aggregator.snapshot()
    if not _central(snapshot, name):
        raise QueryError("collection", name, "its model is local: read its estimates")
    choice = series_choice("releases", _central(snapshot, name))
    series: Series = choice["series"]
    typed = ReleaseForm.parse(request.form)
    try:
        result = aggregator.curator.answer(
            series, typed.request(series.collection), aggregator.instant(), context.visit.actor
        )
    except (QueryError, ReleaseRefused) as error:
        return _page(context, snapshot, choice, typed, wrong=error, status=HTTPStatus.CONFLICT)
    stored = stored_releases(aggregator.store, series.fingerprint)
    place = place_of(stored, result.release.canonical)
    return redirect_to(
        "releases", name=name, series=series.fingerprint, shown=place, _anchor="shown"
    )


def _page(  # one for each outcome of the form
    context: Context,
    snapshot: Snapshot,
    choice: Content,
    typed: ReleaseForm,
    *,
    dry_run: DryRun | None = None,
    wrong: VeilcountError | None = None,
    status: int = 200,
) -> Response:
    series: Series = choice["series"]
    ledger, collection = series_releases(snapshot.store, series), series.collection
    budget = f"{ledger.unit} {short_epsilon(ledger.budget)}"
    journal = _journal(ledger)
    periods = period_choices(series, snapshot.today)
    return render(
        "releases",
        status,
        **choice,
        **journal,
        strings=_strings(context, series, journal["shown"]),
        form=typed,
        wrong=wrong and refusal_text(collection, wrong),
        options=query_options(collection),
        periods=periods,
        dry_run=dry_run and dry_run_view(snapshot, series, dry_run),
        conclusion=_conclusion(context.aggregator, series, ledger),
        budget=budget,
        chart=budget_chart(ledger, [open_until for _, _, open_until in periods], budget),
        neighbours=NEIGHBOURS[collection.epsilon_adjacency],
    )


def _central(snapshot: Snapshot, name: str) -> list[Series]:
    return [
        one_series for one_series in snapshot.named(name) if one_series.collection.trust.releases
    ]


def _journal(ledger: SeriesReleases) -> dict[str, Any]:
    """Return one page of past releases, the newest first, and the one to show: the last."""
    entries = [release_entry(place, stored) for place, stored in enumerate(ledger.releases, 1)][
        ::-1
    ]
    wanted = request.args.get("shown", "")
    shown = next((entry for entry in entries if str(entry["place"]) == wanted), None)
    is_last = not request.args.keys() & {"shown", "query"} and bool(entries)
    shown = entries[0] if is_last else shown
    return {"shown": shown, "is_last": is_last} | paginate(entries, PAGE_SIZE)


def _strings(context: Context, series: Series, shown: Content | None) -> Content:
    """Return the candidates that a shown release of open strings holds, or why not."""
    typed = request.args.get("candidates", "").strip()
    if shown is None or shown["hashes"] is None or not typed:
        return {"named": None, "candidates": typed}
    stored = stored_releases(context.aggregator.store, series.fingerprint)[shown["place"] - 1]
    release = Release.from_json(stored.answer)
    try:
        words = [line for line in typed.splitlines() if line.strip()]
        wanted = candidates_of(open_domain(series.collection), words)
    except QueryError as error:
        return {"named": None, "candidates": typed, "unreadable": str(error)}
    named = name_strings(series.collection, release, wanted)
    return {"named": named, "candidates": typed}


def _conclusion(aggregator: Aggregator, series: Series, ledger: SeriesReleases) -> Conclusion:
    """Return whether anything can be released now."""
    if release_lock_reason(aggregator.store):
        return "bad", LOCKED, UNLOCK
    if aggregator.curator.filter.journal is None:
        return "bad", NO_JOURNAL, ""
    if waiting := unconfirmed_journals(aggregator.store):
        return "weak", f"{WAITING} {', '.join(map(str, waiting))}.", CONFIRM
    closed, _ = series.open_periods(aggregator.today())
    if not closed:
        begin = day(closed_from(series.collection, 0))
        return "weak", f"No period is closed yet: releases are possible from {begin} (UTC).", ""
    ready = [period for period in ledger.periods[:closed] if float(period.remaining)]
    if not ready:
        return "weak", "The budget of every closed period is spent.", ""
    whole = sum(not float(period.spent) for period in ready)
    periods = "1 closed period has" if len(ready) == 1 else f"{len(ready):,} closed periods have"
    untouched = "Nothing is spent." if whole == len(ready) else f"{whole:,} of them unspent."
    return "good", f"{periods} budget left.", untouched


USUAL = "0.1"  # epsilon
#: the fields of the form, as addresses name them
NAMES = {
    "query": "query",
    "argument": "argument",
    "epsilon": "epsilon",
    "rho": "rho",
    "first": "from",
    "last": "to",
}


@dataclass(frozen=True, slots=True)
class ReleaseForm:
    """The form as typed."""

    query: str = ""
    argument: str = ""  # of a query that needs one: a condition, or values
    epsilon: str = ""
    rho: str = ""
    first: str = ""
    last: str = ""

    @classmethod
    def parse(cls, parameters: Mapping[str, str]) -> ReleaseForm:
        """Read a query string or a form."""
        typed = {field: parameters[name] for field, name in NAMES.items() if name in parameters}
        return cls(**{field: text.strip() for field, text in typed.items()})

    def fields(self) -> dict[str, str]:
        """Return the fields that have a value."""
        return {name: text for field, name in NAMES.items() if (text := getattr(self, field))}

    def request(self, collection: Collection) -> dict[str, object]:
        """Return the request as the curator parses it."""
        options = query_options(collection)
        if self.query not in options:
            raise QueryError("query", self.query, f"give {', '.join(options)}")
        return {
            "query": options[self.query].written(self.argument),
            "epsilon": self.epsilon or None,
            "rho": self.rho or None,
            "from": self.first or None,
            "to": self.last or None,
        }


def defaults(series: Series, ledger: SeriesReleases, today: date) -> ReleaseForm:
    """Return the form's defaults: the first query, the newest closed period with budget left."""
    closed, _ = series.open_periods(today)
    usable = [
        place for place, period in enumerate(ledger.periods[:closed]) if float(period.remaining)
    ]
    first, last = days_of(series.collection, usable[-1] if usable else max(0, closed - 1))
    query = next(iter(query_options(series.collection)))
    days = {"first": first.isoformat(), "last": last.isoformat()}
    return ReleaseForm(query, **_usual_cost(series.collection), **days)


def _usual_cost(collection: Collection) -> dict[str, str]:
    """Return a tenth of a period's budget in rho, or the usual epsilon."""
    if Accounting.of_collection(collection) is Accounting.EPSILON:
        return {"epsilon": USUAL}
    millionths = int(period_budget(collection) * 10**5)
    return {"rho": format_value(Fraction(max(1, millionths), 10**6))}


def period_choices(series: Series, today: date) -> list[tuple[date, date, str]]:
    """Return the first and last day of all periods, and until when each is open."""
    collection, (oldest_open, _) = series.collection, series.open_periods(today)
    return [
        (
            *days_of(collection, period),
            f"open until {day(closed_from(collection, period))}" if period >= oldest_open else "",
        )
        for period in range(collection.periods)
    ]


def closed_from(collection: Collection, period: int) -> date:
    """Return the UTC day from which on a period may be released."""
    return period_end(collection, period).date() + timedelta(days=collection.late)
