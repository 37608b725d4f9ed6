"""`veilcount budget`: epsilon per event, day and user, promised and spent."""

from __future__ import annotations

import click

from ...queries import BUDGET, BudgetResult
from ...queries.budget_view import BudgetView
from .output import print_lines, print_parts
from .query_source import declared_query


@click.command("budget", short_help="Show a collection's privacy budget, promised and spent.")
@declared_query(BUDGET)
def command(result: BudgetResult) -> None:
    """Show the privacy budget of collection NAME: promised, and spent so far.

    Epsilon of an event, a day and a user; what the reports reveal to somebody who joins them; and
    the error under each unit at the same user epsilon.
    """
    for series in result.series:
        print_lines([f"{result.collection}: {series.question} ({series.fingerprint[:12]})"])
        print_parts(BudgetView.from_result(result, series).parts)
        print_lines([""])
