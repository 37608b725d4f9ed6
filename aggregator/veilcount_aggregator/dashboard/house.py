"""The pages, put together."""

from __future__ import annotations

from collections.abc import Callable

from ..aggregator import Aggregator
from ..web.authority import Authority
from ..web.computation_gate import ComputationGate
from . import (
    budget,
    collection,
    compare,
    contrast,
    definitions,
    entrance,
    keys,
    operations,
    overview,
    planner,
    releases,
)
from .frame import Frame
from .visitors import Visitors


def dashboard(
    aggregator: Aggregator,
    authority: Authority,
    seconds: Callable[[], float],
    gate: ComputationGate,
) -> Frame:
    """Return the frame with all pages in it."""
    frame = Frame(aggregator, Visitors(aggregator, seconds), gate)
    entrance.pages(frame, authority)
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
