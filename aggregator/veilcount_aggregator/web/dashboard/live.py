"""The live view: each report that arrives at a development server, with its verdict."""

from __future__ import annotations

from .pages import Content, Context, page


@page("/live", tab="Live", order=6, live=True, every_app=True)
def live(context: Context) -> Content:
    """List the latest reports, the newest first; a script renews the list once a second."""
    return {"entries": context.live.entries() if context.live else []}
