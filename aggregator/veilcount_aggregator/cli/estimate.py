"""`veilcount estimate`: a collection's estimates, each with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click
import msgspec

from ..queries import Alert, EstimateQuery, EstimateResult, Snapshot, estimate
from ..queries.alert import MEAN
from ..queries.export import as_csv
from ..text import number_format
from ..text.result_columns import spelled
from . import options, query_source
from .main import EXIT_NEGATIVE
from .output import print_json, print_lines, print_table
from .query_source import struct_options

Document = Mapping[str, Any]

TABLE, JSON, CSV = "table", "json", "csv"
COLUMNS = ("value", "share", "interval", "answers", "if {fakes} were fake")
SELECTIONS = {"top", "values", "group", "page"}  # of values
SHOWN_DIGITS = 12  # of a fingerprint


@click.command("estimate", short_help="Show a collection's estimates with their intervals.")
@options.name_in_store
@struct_options(EstimateQuery)
@click.option(
    "--format", "form", type=click.Choice([TABLE, JSON, CSV]), default=TABLE, show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--alert",
    metavar="'VALUE > BOUND'",
    help="Exit with 1 if the whole interval is past the bound; for daily runs add --looks every.",
)
@query_source.source_options
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    name: str,
    params: dict[str, list[str]],
    form: str,
    alert: str | None,
    as_json: bool,
    **source: Any,
) -> None:
    """Show what was reported for collection NAME, debiased, with intervals.

    Reads a --store, or queries a server's --url with a --key. Changed definitions are listed one
    after the other. An --alert tests the last time range of the newest one.
    """
    form = JSON if as_json else form
    alarm = None if alert is None else Alert.parse(alert)
    if alarm is not None and alarm.value != MEAN and not SELECTIONS.intersection(params):
        params["values"] = [alarm.value]

    def compute(snapshot: Snapshot) -> object:
        return estimate(snapshot, name, EstimateQuery.parse(params))

    document = query_source.query(name, "estimate", params, compute, **source)
    if form == JSON:
        print_json(document)
    elif form == CSV:
        click.echo(as_csv(document), nl=False)
    else:
        _print(document)
    if alarm is not None:
        looked = alarm.evaluate(msgspec.convert(document, EstimateResult))
        print_lines([looked.sentence], err=form != TABLE)
        context.exit(EXIT_NEGATIVE if looked.fires else 0)


def _print(document: Document) -> None:
    for series in document["series"]:
        print_lines(_head(document, series))
        for time_range in series["time_ranges"]:
            _print_time_range(document, series, time_range)
        notes = list(_notes(series))
        print_lines(["", *notes, ""] if notes else [""])


def _head(document: Document, series: Document) -> Iterator[str]:
    epsilon = series["epsilon"]
    yield f"{document['collection']}: {series['question']}"
    yield (
        f"series {series['fingerprint'][:SHOWN_DIGITS]};"
        f" epsilon ({number_format.adjacency(epsilon['adjacency'])}) {epsilon['event']} an event,"
        f" {epsilon['day']} a day, {epsilon['user']} a user; unit {series['unit']}"
    )
    segments = ", ".join(f"{name}: {value}" for name, value in document["segments"].items())
    if segments:
        yield f"only {segments}"


def _print_time_range(document: Document, series: Document, time_range: Document) -> None:
    open_period = " (open period)" if time_range["open_period"] else ""
    together = ", all at once" if document["simultaneous"] else ""
    days = f"{time_range['from']} to {time_range['to']}{open_period}"
    title = f"{days}: n = {time_range['n']:,} {series['counts']}"
    if not time_range["n"]:
        print_lines(["", title])
        return
    validity = (
        f"intervals at {document['level']:.4g}{together}, {time_range['estimand']};"
        f" {document['view']}; {document['validity']}"
    )
    print_lines(["", title, validity])
    rows = list(_rows(time_range))
    if rows:
        columns = [each.format(fakes=number_format.share(document["fakes"])) for each in COLUMNS]
        print_table(columns, rows)
    if time_range["spread"]:
        _print_spread(time_range["spread"])
    print_lines(_not_counted(time_range["verdicts"]))


def _rows(time_range: Document) -> Iterator[tuple[str, ...]]:
    for row in time_range["values"]:
        yield _share(spelled(row["value"]) or "", row)
    if time_range["absent"]:
        yield _share("(absent)", time_range["absent"])
    mean = time_range["mean"]
    if mean and mean["mean"] is not None:
        yield (
            "mean",
            number_format.figure(mean["mean"], of_shares=False),
            number_format.interval(mean["low"], mean["high"], of_shares=False),
            "",
            number_format.interval(mean["fake_low"], mean["fake_high"], of_shares=False),
        )


def _share(value: str, row: Document) -> tuple[str, ...]:
    return (
        value,
        number_format.share(row["frequency"]),
        number_format.interval(row["low"], row["high"], of_shares=True),
        f"{row['answers']:,.0f}",
        number_format.interval(row["fake_low"], row["fake_high"], of_shares=True),
    )


def _print_spread(spread: Document) -> None:
    print_lines(["", f"bands hold for {spread['covers']}"])
    rows = [
        (
            number_format.share(each["share"]),
            "" if each["value"] is None else number_format.figure(each["value"], of_shares=False),
            number_format.interval(each["low"], each["high"], of_shares=False),
        )
        for each in spread["quantiles"]
    ]
    print_table(("of answers below", "number", "band"), rows)


def _not_counted(verdicts: Mapping[str, int]) -> list[str]:
    listed = ", ".join(f"{word} {number:,}" for word, number in verdicts.items())
    return [f"reports not counted: {listed}"] if listed else []


def _notes(series: Document) -> Iterator[str]:
    if series["pages"] > 1:
        yield f"page {series['page']:,} of {series['pages']:,} ({series['size']:,} values): --page"
    if series["stand_out"] is not None:
        number = f"{series['stand_out']:,}"
        yield f"{number} of {series['size']:,} values stand out from noise"
    if series["poisoning_test_failed"]:
        yield f"POISONING TEST FAILED: {series['poisoning_test']}"
    yield from (each["text"] for each in series["losses"])
