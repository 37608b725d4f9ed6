"""The page. An analyst sees how it runs; an admin also who changed what, and where things are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flask import Response, g, request

from ...auth.api_keys import Role
from ...queries import Snapshot
from ...series.series import Series
from ...service import Aggregator
from ...text.privacy_guarantees import counts_are_public
from ..layout import Frame
from . import pseudonym_quota, request_panel, shards, store_health, verdict_panel

A_PAGE = 50  # acts


def pages(frame: Frame) -> None:
    """Add the page."""
    aggregator = frame.aggregator

    @frame.page("/operations")
    def operations() -> Response:
        """How it runs."""
        health = aggregator.store.health()
        store, complete = aggregator.store.reachable_part()
        snapshot = replace(aggregator.snapshot(), store=store)
        admin = g.visit.role is Role.ADMIN
        all_found = store_health.findings(aggregator, store, everything=admin)
        return frame.told(
            "operations.html",
            verdict=store_health.verdict(all_found, health, aggregator.guard.reading),
            facts=store_health.facts(aggregator, health),
            findings=[store_health.found(each) for each in all_found],
            shards=shards.rows(aggregator.store, aggregator.committer.queues()),
            complete=complete,
            **_reports(snapshot),
            **_service(aggregator, snapshot),
            **(_acts(aggregator) if admin else {}),
        )


def _reports(snapshot: Snapshot) -> dict[str, Any]:
    """Return what became of reports: of all, and of the chosen collection by period."""
    noted, named = snapshot.store.service_counts(), snapshot.catalog.by_name
    table = verdict_panel.by_collection(snapshot.store, named, noted)
    choosable = [line.title for line in table.lines if line.title in named]
    shown = _shown(named, choosable)
    counts = shown and verdict_panel.counted(snapshot.store.report_counts(shown), shown, noted)
    return {
        "table": table,
        "choosable": choosable,
        "shown": shown,
        "periods": shown and counts and verdict_panel.by_period(shown, counts),
        "drawn": shown and counts and verdict_panel.drawn(shown, counts),
        "withheld": _withheld(named),
    }


def _shown(named: Mapping[str, Sequence[Series]], choosable: Sequence[str]) -> Series | None:
    asked = request.args.get("collection", "")
    name = asked if asked in choosable else next(iter(choosable), "")
    return named[name][0] if name else None


def _withheld(named: Mapping[str, Sequence[Series]]) -> list[str]:
    return [
        name
        for name, series in named.items()
        if not all(counts_are_public(each.collection) for each in series)
    ]


def _service(aggregator: Aggregator, snapshot: Snapshot) -> dict[str, Any]:
    """Return the service's figures; the intake's as a whole where they tell no secret count."""
    noted, named = snapshot.store.service_counts(), snapshot.catalog.by_name
    intake = not _withheld(named)
    groups = request_panel.groups(noted) if intake else []
    newest = (series[0] for series in named.values())
    return {
        "took": request_panel.took(noted, intake=intake),
        "refused": request_panel.refused(noted) if intake else [],
        "groups": groups,
        "groups_drawn": request_panel.drawn(groups),
        "rooms": pseudonym_quota.rooms(
            snapshot.store, newest, aggregator.settings.max_new_pseudonyms, snapshot.today
        ),
    }


def _acts(aggregator: Aggregator) -> dict[str, Any]:
    page = max(0, request.args.get("page", 0, int))
    acts = store_health.acts(aggregator)
    return {
        "acts": acts[page * A_PAGE : (page + 1) * A_PAGE],
        "page": page,
        "older": len(acts) > (page + 1) * A_PAGE,
    }
