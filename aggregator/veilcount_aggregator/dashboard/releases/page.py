"""The page, and the release itself: asked for with a form, told with a redirect."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from flask import Response, g, request

from veilcount_shared.collection import Model
from veilcount_shared.errors import VeilcountError

from ...api.release_views import series_releases
from ...api.schemas import SeriesReleases
from ...central.budget_ledger import load_releases as kept_of
from ...central.curator import DryRun
from ...central.journal_registry import unconfirmed_journals
from ...errors import QueryError, ReleaseRefused
from ...queries.snapshot import Snapshot, series_by_fingerprint
from ...series.series import Series
from ...store.restore_lock import release_lock_reason
from ...text.privacy_guarantees import promise
from ..layout import Frame, go
from . import form, release_text, rows
from .dry_run import foresay, place_of
from .form import Asked

NO_JOURNAL = (
    "No release is made: it is written to a journal beside the store before it leaves, and there is"
    " none. The operator starts the server with --journal FILE."
)
LOCKED = "No release is made: the store may have forgotten what was spent."
UNLOCK = (
    "The operator enters it again: veilcount store unlock --journal FILE. What was released before"
    " is below."
)
WAITING = "Releases wait for these journals to confirm the store:"
CONFIRM = (
    "Each does so within seconds while its host runs. One that is gone for good, the operator"
    " retires: veilcount store retire-journal ID."
)
A_PAGE = 20  # releases of the journal


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentence on top."""

    tone: str
    says: str
    more: str = ""


def pages(frame: Frame) -> None:
    """Add the pages."""
    aggregator = frame.aggregator
    rule = "/collections/<name>/releases"

    @frame.page(rule, computes=True)
    def releases(name: str) -> Response:
        """What may be asked, what is left, what was told."""
        snapshot = aggregator.snapshot()
        if not _central(snapshot, name):
            return frame.told("releases_none.html", **_head(snapshot, name))
        series = _chosen(snapshot, name, request.args.get("series", ""))
        if "query" not in request.args:
            return _told(snapshot, series, form.usual(series, snapshot.today))
        asked = Asked.read(request.args)
        try:
            foreseen = aggregator.curator.dry_run(series, asked.request(series.collection))
        except QueryError as error:
            return _told(snapshot, series, asked, wrong=error)
        return _told(snapshot, series, asked, foreseen=foreseen)

    @frame.page(rule, methods=("POST",), computes=True)
    def release(name: str) -> Response:
        """Release: charge it, and lead to what was told."""
        snapshot = aggregator.snapshot()
        series = _chosen(snapshot, name, request.form.get("series", ""))
        asked = Asked.read(request.form)
        try:
            told = aggregator.curator.answer(
                series, asked.request(series.collection), aggregator.instant(), g.visit.who
            )
        except (QueryError, ReleaseRefused) as error:
            return _told(snapshot, series, asked, wrong=error, status=HTTPStatus.CONFLICT)
        place = place_of(kept_of(aggregator.store, series.fingerprint), told.release.canonical)
        return go("releases", name=name, series=series.fingerprint, shown=place, _anchor="shown")

    def _told(
        snapshot: Snapshot,
        series: Series,
        asked: Asked,
        *,
        foreseen: DryRun | None = None,
        wrong: VeilcountError | None = None,
        status: int = 200,
    ) -> Response:
        standing = series_releases(snapshot.store, series)
        return frame.told(
            "releases.html",
            status,
            **_head(snapshot, series.collection.name),
            **_journal(standing),
            asked=asked,
            wrong=wrong and release_text.refused(series.collection, wrong),
            offer=form.offer(series, snapshot.today),
            foreseen=foreseen and foresay(snapshot, series, foreseen),
            verdict=_verdict(frame, series, standing),
            series=series,
            all_series=_central(snapshot, series.collection.name),
            budget=release_text.epsilon(standing.budget),
            drawn=rows.budget(standing.periods),
            left=rows.left(standing.periods, _states(snapshot, series)),
            promise=promise(series.collection)[0],
        )


def _head(snapshot: Snapshot, name: str) -> dict[str, Any]:
    return {"name": name, "question": snapshot.named(name)[0].collection.question}


def _central(snapshot: Snapshot, name: str) -> list[Series]:
    return [each for each in snapshot.named(name) if each.collection.model is Model.CENTRAL]


def _chosen(snapshot: Snapshot, name: str, fingerprint: str) -> Series:
    found = _central(snapshot, name)
    if not found:
        raise QueryError("collection", name, "its model is local: read its answers")
    return series_by_fingerprint(found, fingerprint) if fingerprint else found[0]


def _journal(standing: SeriesReleases) -> dict[str, Any]:
    """Return the releases of one page of the journal, the newest first, and the one to look at."""
    told = [rows.shown(place, each) for place, each in enumerate(standing.releases, 1)][::-1]
    wanted = request.args.get("shown", "")
    page = max(0, request.args.get("page", 0, int))
    return {
        "journal": told[page * A_PAGE : (page + 1) * A_PAGE],
        "shown": next((each for each in told if str(each.place) == wanted), None),
        "page": page,
        "older": len(told) > (page + 1) * A_PAGE,
        "all_releases": len(told),
    }


def _states(snapshot: Snapshot, series: Series) -> list[str]:
    """Return for each period whether it can be released."""
    oldest_open, _ = series.taken(snapshot.today)
    return [
        "closed: can be released"
        if period < oldest_open
        else f"takes answers before {form.closed_from(series, period)}"
        for period in range(series.collection.periods)
    ]


def _verdict(frame: Frame, series: Series, standing: SeriesReleases) -> Verdict:
    """Return whether anything can be released now."""
    aggregator = frame.aggregator
    if release_lock_reason(aggregator.store):
        return Verdict("bad", LOCKED, UNLOCK)
    if aggregator.curator.filter.journal is None:
        return Verdict("bad", NO_JOURNAL)
    if waiting := unconfirmed_journals(aggregator.store):
        return Verdict("weak", f"{WAITING} {', '.join(map(str, waiting))}.", CONFIRM)
    closed, _ = series.taken(aggregator.today())
    if not closed:
        day = form.closed_from(series, 0)
        return Verdict("weak", f"No period is closed yet: releases can be made from {day} on.")
    ready = [each for each in standing.periods[:closed] if float(each.remaining)]
    if not ready:
        return Verdict("weak", "The budget of every closed period is spent.")
    whole = sum(not float(each.spent) for each in ready)
    periods = "1 closed period has" if len(ready) == 1 else f"{len(ready):,} closed periods have"
    untouched = "All of it." if whole == len(ready) else f"{whole:,} of them all of it."
    return Verdict("good", f"{periods} budget left.", untouched)
