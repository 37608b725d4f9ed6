"""The first page: which questions are asked, how many answers there are, and how the intake is."""

from __future__ import annotations

from flask import Response

from .frame import Frame


def pages(frame: Frame) -> None:
    """Add the page."""

    @frame.page("/")
    def overview() -> Response:
        """All collections."""
        return frame.told("overview.html", named=frame.aggregator.known().catalogue.named)
