"""The operations page: how the service runs; for admins also the host and the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flask import request

from ...auth.audit_log import load_audit_log
from ...queries import Snapshot
from ...series.series import Series
from ...service import Aggregator
from ...text.privacy_guarantees import counts_are_public
from ..pages import Content, Context, page, paginate
from . import request_panel, verdict_panel, view

PAGE_SIZE = 50  # entries of the audit log


@page("/operations", tab="Operations", order=3)
def operations(context: Context) -> Content:
    """Show how the service runs."""
    aggregator = context.aggregator
    health = aggregator.store.health()
    store, complete = aggregator.store.reachable_part()
    snapshot = replace(aggregator.snapshot(), store=store)
    findings = view.findings(aggregator, store, everything=context.is_admin)
    return {
        "conclusion": view.conclusion(findings, health, aggregator.guard.reading),
        "figures": view.figures(aggregator, health),
        "findings": findings,
        "tones": view.TONES,
        "shards": view.shard_rows(aggregator.store, aggregator.committer.queues()),
        "complete": complete,
        **_reports(snapshot),
        **_service(aggregator, snapshot),
        **(paginate(load_audit_log(aggregator.store)[::-1], PAGE_SIZE) if context.is_admin else {}),
    }


def _reports(snapshot: Snapshot) -> dict[str, Any]:
    """Return the verdicts of all collections, and of the chosen one by period."""
    notes, named = snapshot.store.service_counts(), snapshot.catalog.by_name
    table = verdict_panel.by_collection(snapshot.store, named, notes)
    choosable = [name for name in table.rows if name in named]
    wanted = request.args.get("collection", "")
    chosen = wanted if wanted in choosable else next(iter(choosable), "")
    content = {"table": table, "choosable": choosable, "chosen": chosen}
    if not chosen:
        return content
    series = named[chosen][0]
    counts = verdict_panel.verdict_counts(snapshot.store.report_counts(series), series, notes)
    return {**content, "verdicts": verdict_panel.by_period(series, counts)}


def _withheld(named: Mapping[str, Sequence[Series]]) -> list[str]:
    return [
        name
        for name, series in named.items()
        if not all(counts_are_public(each.collection) for each in series)
    ]


def _service(aggregator: Aggregator, snapshot: Snapshot) -> dict[str, Any]:
    """Return the service's figures; the intake's only where all counts are public."""
    counts, named = snapshot.store.service_counts(), snapshot.catalog.by_name
    withheld = _withheld(named)
    newest = (series[0] for series in named.values())
    return {
        "withheld": withheld,
        "latencies": request_panel.latencies(counts, intake=not withheld),
        "rejected": [] if withheld else request_panel.rejected_bodies(counts),
        "commits": None if withheld else request_panel.commit_chart(counts),
        "quotas": view.pseudonym_quotas(
            snapshot.store, newest, aggregator.settings.max_new_pseudonyms, snapshot.today
        ),
    }
