"""`veilcount compare`: how two segments, ranges of days or series differ."""

from __future__ import annotations

import click

from ...queries import COMPARE, CompareResult
from ...queries.comparison_view import ComparisonView
from .output import print_parts
from .query_source import declared_query


@click.command("compare")
@declared_query(COMPARE, arguments=("a", "b"))
def command(result: CompareResult) -> None:
    """Compare side A of collection NAME with side B.

    A side is a segment, a range of days or a series: arm:A, 2026-12-01..2026-12-31 or
    series:FINGERPRINT; combine several with commas.
    """
    print_parts(ComparisonView.from_result(result).parts)
