"""`veilcount budget`: epsilon per event, day and user, promised and spent."""

from __future__ import annotations

from collections.abc import Iterable

import click

from veilcount_analysis.text.view_parts import Part

from ...queries import BUDGET, BudgetResult
from ...queries.budget_view import BudgetView
from .query_source import declared_query


@click.command("budget")
@declared_query(BUDGET)
def command(result: BudgetResult) -> Iterable[Part]:
    """Show the privacy budget of collection NAME: promised, and spent so far.

    Epsilon of an event, a day and a user; what the reports reveal to somebody who joins them; and
    the error under each unit at the same user epsilon.
    """
    for series in result.series:
        yield f"{result.collection}: {series.question} ({series.fingerprint[:12]})"
        yield from BudgetView.from_result(result, series).parts
