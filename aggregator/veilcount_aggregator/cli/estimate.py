"""`veilcount estimate`: a collection's answers, debiased, each figure with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import msgspec

from ..estimation import LookCount, View
from ..queries import Alert, Denominator, EstimateQuery, EstimateResult, GroupBy, estimate, plain
from ..queries.alert import MEAN
from ..queries.export import as_csv
from . import name_completion, query_source
from .estimate_output import tell_estimate
from .main import NOT_SO
from .output import tell_json, tell_lines

TABLE, JSON, CSV = "table", "json", "csv"


@click.command("estimate", short_help="What the crowd answered, and how sure that is.")
@click.argument("name", shell_complete=name_completion.of_store)
@click.option("--from", "first", metavar="DAY", help="The first UTC day, such as 2026-12-01.")
@click.option("--to", "last", metavar="DAY", help="The last UTC day. Whole periods are covered.")
@click.option(
    "--by",
    type=click.Choice([each.value for each in GroupBy]),
    default=GroupBy.ALL.value,
    show_default=True,
)
@click.option(
    "--view",
    type=click.Choice([each.value for each in View]),
    default=View.RAW.value,
    show_default=True,
    help="raw is unbiased, consistent adds up to 100 %.",
)
@click.option("--level", help="With which chance an interval covers; unless told, 0.95.")
@click.option("--segment", multiple=True, metavar="NAME:VALUE", help="One part of the crowd.")
@click.option("--series", multiple=True, metavar="FINGERPRINT", help="One definition of several.")
@click.option("--top", metavar="N", help="The largest shares, with intervals that hold together.")
@click.option("--values", multiple=True, metavar="VALUE,...", help="These values alone.")
@click.option("--group", multiple=True, metavar="NAME:VALUE,...", help="Sums of values.")
@click.option("--page", metavar="N", help="Of many values, the page.")
@click.option("--size", metavar="N", help="How many values a page has; unless told, 100.")
@click.option(
    "--among",
    type=click.Choice([each.value for each in Denominator]),
    help="Where presence is hidden: shares of all devices, or of those that answered.",
)
@click.option(
    "--simultaneous/--one-by-one",
    default=None,
    help="Intervals that hold all at once; unless told, those of --top do.",
)
@click.option(
    "--looks",
    type=click.Choice([each.value for each in LookCount]),
    default=LookCount.ONE.value,
    show_default=True,
    help="Intervals for one planned look, or for every look at a growing range.",
)
@click.option(
    "--fakes", metavar="SHARE", help="Of reports, to be shown as fakes; unless told, 0.01."
)
@click.option(
    "--format",
    "form",
    type=click.Choice([TABLE, JSON, CSV]),
    default=TABLE,
    show_default=True,
)
@click.option("--json", "as_json", is_flag=True, help="For programs: --format json.")
@click.option(
    "--alert",
    metavar="'VALUE > BOUND'",
    help="Exit with 1 if the whole interval is beyond the bound; run daily, with --looks every.",
)
@query_source.place_options
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    name: str,
    url: str | None,
    server: str | None,
    key: str,
    form: str,
    alert: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Show what the crowd answered to collection NAME, and how sure that is.

    From a --store, or from a server's --url with a --key. Definitions that were changed are
    listed side by side. An --alert looks at the last stretch of the newest one.
    """
    alarm = None if alert is None else Alert.parse(alert)
    document = _document(name, url, server, key, _given(asked, alarm))
    if as_json or form == JSON:
        tell_json(document)
    elif form == CSV:
        click.echo(as_csv(document), nl=False)
    else:
        tell_estimate(document)
    if alarm is not None:
        looked = alarm.look(msgspec.convert(document, EstimateResult))
        tell_lines([looked.sentence], err=form != TABLE or as_json)
        context.exit(NOT_SO if looked.sounds else 0)


def _given(asked: Mapping[str, Any], alarm: Alert | None) -> dict[str, list[str]]:
    """Return the parameters; of many values, an alert asks for its own alone."""
    given = query_source.given(
        **{"from" if name == "first" else name: asked[name] for name in asked}
    )
    given["to"] = given.pop("last", [])
    chosen = any(given.get(way) for way in ("top", "values", "group", "page"))
    if alarm is not None and not chosen and alarm.value != MEAN:
        given["values"] = [alarm.value]
    return {parameter: words for parameter, words in given.items() if words}


def _document(
    name: str, url: str | None, server: str | None, key: str, given: dict[str, list[str]]
) -> dict[str, Any]:
    there = query_source.server_of(url, server, key)
    if there is not None:
        return there.ask(name, "estimate", given)
    with query_source.snapshot(url) as snapshot:
        document: dict[str, Any] = plain(estimate(snapshot, name, EstimateQuery.parse(given)))
        return document
