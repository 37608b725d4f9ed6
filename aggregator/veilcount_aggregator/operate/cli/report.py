"""`veilcount report`: a collection's report as one HTML document."""

from __future__ import annotations

import click

from ...web.dashboard.report import report_document
from . import options
from .output import print_json
from .query_source import opened_snapshot


@click.command("report")
@options.name_in_store
@options.store
@click.option("--json", "as_json", is_flag=True, help="Print JSON with the page as `html`.")
def command(name: str, url: str | None, *, as_json: bool) -> None:
    """Write the report of collection NAME as one HTML page: veilcount report NAME > report.html.

    It holds the finding, charts, tables with intervals, figures over time, the privacy guarantee,
    the definitions, and how to read it. It has no scripts and loads nothing.
    """
    with opened_snapshot(url) as snapshot:
        document = report_document(snapshot, name)
    if as_json:
        print_json({"collection": name, "html": document})
    else:
        click.echo(document, nl=False)
