"""The tabs of a collection's promise and of its definitions."""

from __future__ import annotations

from ...text.privacy_guarantees import epsilons, promise
from ..collection_status import collection_status
from ..pages import Content, Context, page
from .definition_history import definition_history


@page("/collections/<name>/privacy", tab="Privacy", order=6)
def privacy(context: Context, name: str) -> Content:
    """Show what a collection guarantees to a person."""
    snapshot = context.aggregator.snapshot()
    series = snapshot.named(name)[0]
    return {
        "collection": series.collection,
        "collection_status": collection_status(series, snapshot.today),
        "epsilon": epsilons(series.collection),
        "promise": promise(series.collection),
    }


@page("/collections/<name>/definition", tab="Definition", order=7)
def definition(context: Context, name: str) -> Content:
    """Show a collection's definitions, and what changed from one to the next."""
    snapshot = context.aggregator.snapshot()
    return {"definitions": definition_history(snapshot, snapshot.named(name))}
