"""`veilcount compare`: how two segments, ranges of days or series differ."""

from __future__ import annotations

from collections.abc import Iterable

import click

from veilcount_analysis.text.view_parts import Part

from ...queries import COMPARE, CompareResult
from ...queries.comparison_view import ComparisonView
from .query_source import declared_query


@click.command("compare")
@declared_query(COMPARE, arguments=("a", "b"))
def command(result: CompareResult) -> Iterable[Part]:
    """Compare side A of collection NAME with side B.

    A side is a segment, a range of days or a series: arm:A, 2026-12-01..2026-12-31 or
    series:FINGERPRINT; combine several with commas.
    """
    return ComparisonView.from_result(result).parts
