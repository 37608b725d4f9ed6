"""The tabs of a collection's guarantee and of its definitions."""

from __future__ import annotations

from veilcount_analysis.privacy.shuffled import full_notice
from veilcount_analysis.text.privacy_guarantees import epsilons

from ..collection_status import collection_status
from ..pages import Content, Context, page
from .definition_history import definition_history


@page("/collections/<name>/privacy", tab="Privacy", order=6)
def privacy(context: Context, name: str) -> Content:
    """Show what a collection guarantees to a person, and the notice that people read."""
    snapshot = context.aggregator.snapshot()
    series = snapshot.named(name)[0]
    return {
        "collection": series.collection,
        "collection_status": collection_status(series, snapshot.today),
        "epsilon": epsilons(series.collection),
        "notice": full_notice(series.collection).texts(),
    }


@page("/collections/<name>/definition", tab="Definition", order=7)
def definition(context: Context, name: str) -> Content:
    """Show a collection's definitions, and what changed from one to the next."""
    snapshot = context.aggregator.snapshot()
    return {"definitions": definition_history(snapshot, snapshot.named(name))}
