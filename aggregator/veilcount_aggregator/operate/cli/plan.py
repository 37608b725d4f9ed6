"""`veilcount plan`: any of devices, epsilon and error from the other two, and a definition."""

from __future__ import annotations

import click

from ...queries import PlanQuery, plain, plan
from ...queries.plan_view import PlanView
from . import options
from .output import print_result, print_verbatim, spinner
from .query_source import Parameters, struct_options


@click.command("plan")
@struct_options(PlanQuery)
@options.as_json
def command(*, params: Parameters, as_json: bool) -> None:
    """Compute devices, epsilon or error from the other two.

    For a yes-or-no question, or for --values, a --range, --candidates for open strings (with
    --share in place of --error), --features, --questions, or --several values that are ticked.
    Ends with a definition to paste.
    """
    query = PlanQuery.parse(params)
    with spinner("planning"):
        planned = plan(query, options.now().date())
    parts = (*PlanView.from_result(planned).parts, "")
    print_result(plain(planned), parts, as_json=as_json)
    if not as_json:
        print_verbatim(planned.toml.rstrip())
