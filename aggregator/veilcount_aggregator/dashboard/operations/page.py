"""The page. An analyst sees how it runs; an admin also who changed what, and where things are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flask import Response, g, request

from ...aggregator import Aggregator
from ...answers import Holdings
from ...keys import Role
from ...promises import counts_are_public
from ...series import Series
from ..frame import Frame
from . import rooms, service, shards, state, verdicts

A_PAGE = 50  # acts


def pages(frame: Frame) -> None:
    """Add the page."""
    aggregator = frame.aggregator

    @frame.page("/operations")
    def operations() -> Response:
        """How it runs."""
        health = aggregator.store.health()
        store, complete = aggregator.store.answering()
        holdings = replace(aggregator.holdings(), store=store)
        admin = g.visit.role is Role.ADMIN
        all_found = state.findings(aggregator, store, everything=admin)
        return frame.told(
            "operations.html",
            verdict=state.verdict(all_found, health, aggregator.guard.reading),
            facts=state.facts(aggregator, health),
            findings=[state.found(each) for each in all_found],
            shards=shards.rows(aggregator.store, aggregator.committer.queues()),
            complete=complete,
            **_reports(holdings),
            **_service(aggregator, holdings),
            **(_acts(aggregator) if admin else {}),
        )


def _reports(holdings: Holdings) -> dict[str, Any]:
    """Return what became of reports: of all, and of the chosen collection by period."""
    noted, named = holdings.store.noted(), holdings.catalogue.named
    table = verdicts.by_collection(holdings.store, named, noted)
    choosable = [line.title for line in table.lines if line.title in named]
    shown = _shown(named, choosable)
    counts = shown and verdicts.counted(holdings.store.sizes(shown), shown, noted)
    return {
        "table": table,
        "choosable": choosable,
        "shown": shown,
        "periods": shown and counts and verdicts.by_period(shown, counts),
        "drawn": shown and counts and verdicts.drawn(shown, counts),
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


def _service(aggregator: Aggregator, holdings: Holdings) -> dict[str, Any]:
    """Return the service's figures; the intake's as a whole where they tell no secret count."""
    noted, named = holdings.store.noted(), holdings.catalogue.named
    intake = not _withheld(named)
    groups = service.groups(noted) if intake else []
    newest = (series[0] for series in named.values())
    return {
        "took": service.took(noted, intake=intake),
        "refused": service.refused(noted) if intake else [],
        "groups": groups,
        "groups_drawn": service.drawn(groups),
        "rooms": rooms.rooms(holdings.store, newest, aggregator.settings.room, holdings.today),
    }


def _acts(aggregator: Aggregator) -> dict[str, Any]:
    page = max(0, request.args.get("page", 0, int))
    acts = state.acts(aggregator)
    return {
        "acts": acts[page * A_PAGE : (page + 1) * A_PAGE],
        "page": page,
        "older": len(acts) > (page + 1) * A_PAGE,
    }
