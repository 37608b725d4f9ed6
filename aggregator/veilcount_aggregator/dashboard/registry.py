"""The pages, put together."""

from __future__ import annotations

from collections.abc import Callable

from ..api.auth import Authenticator
from ..api.computation_gate import ComputationGate
from ..service import Aggregator
from . import (
    budget,
    collection,
    compare,
    contrast,
    definitions,
    keys,
    login,
    operations,
    overview,
    planner,
    releases,
)
from .browser_sessions import Visitors
from .layout import Frame


def dashboard(
    aggregator: Aggregator,
    authority: Authenticator,
    seconds: Callable[[], float],
    gate: ComputationGate,
) -> Frame:
    """Return the frame with all pages in it."""
    frame = Frame(aggregator, Visitors(aggregator, seconds), gate)
    login.pages(frame, authority)
    for page in (
        overview,
        collection,
        compare,
        budget,
        keys,
        releases,
        contrast,
        definitions,
        planner,
        operations,
    ):
        page.pages(frame)
    return frame
