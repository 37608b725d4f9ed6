"""`veilcount estimate`: a collection's estimates, each with its interval."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import click
import msgspec

from veilcount_analysis.text import number_format, result_pages
from veilcount_analysis.text.result_columns import spelled

from ...queries import Alert, EstimateQuery, EstimateResult, Snapshot, estimate
from ...queries.alert import MEAN
from ...queries.export import ArrowUnavailable, Stream, stream_csv, stream_parquet
from . import options, query_source
from .main import EXIT_NEGATIVE
from .output import print_json, print_lines, print_table
from .query_source import struct_options

Document = Mapping[str, Any]

TABLE, JSON, CSV, PARQUET = "table", "json", "csv", "parquet"
FILES: Mapping[str, Stream] = {CSV: stream_csv, PARQUET: stream_parquet}
COLUMNS = ("value", "share", "interval", "answers", "if {fakes} were fake")
SELECTIONS = {"top", "values", "group", "page", "candidates"}  # of values
HIDDEN = "Figures would be noise; --show-anyway prints them."
SHOWN_DIGITS = 12  # of a fingerprint
STDOUT = "-"


@click.command("estimate", short_help="Show a collection's estimates with their intervals.")
@options.name_in_store
@struct_options(EstimateQuery, omit={"candidates"})
@click.option(
    "--candidates",
    type=click.File("r", encoding="utf-8"),
    metavar="FILE",
    help="Of open strings: look for those of FILE, one in each line (- reads standard input)."
    " Each counts as tested once for a range of days and a segment, for good.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([TABLE, JSON, *FILES]),
    default=TABLE,
    show_default=True,
    help="csv and parquet hold all values, unless an option selects some.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default=STDOUT,
    metavar="FILE",
    help="Write csv or parquet to a file instead of standard output.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--alert",
    metavar="'VALUE > BOUND'",
    help="Exit with 1 if the whole interval is past the bound; for daily runs add --looks every.",
)
@click.option(
    "--show-anyway", is_flag=True, help="Print figures of too few reports, which are noise."
)
@query_source.source_options
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    name: str,
    params: dict[str, list[str]],
    candidates: TextIO | None,
    form: str,
    output: str,
    alert: str | None,
    show_anyway: bool,
    as_json: bool,
    **source: Any,
) -> None:
    """Show what was reported for collection NAME, debiased, with intervals.

    Reads a --store, or queries a server's --url with a --key. Changed definitions are listed one
    after the other. An --alert tests the last time range of the newest one.
    """
    if as_json and form in FILES:
        raise click.UsageError(f"give --json or --format {form}, not both")
    form = JSON if as_json else form
    if candidates is not None:
        params["candidates"] = options.candidate_lines(candidates)
    _check_output(form, output)
    alarm = None if alert is None else Alert.parse(alert)
    if alarm is not None and alarm.value != MEAN and not SELECTIONS.intersection(params):
        params["values"] = [alarm.value]

    def fetch(**page: int) -> dict[str, Any]:
        parameters = params | {key: [str(number)] for key, number in page.items()}

        def compute(snapshot: Snapshot) -> object:
            return estimate(snapshot, name, EstimateQuery.parse(parameters))

        return query_source.query(name, "estimate", parameters, compute, **source)

    document = _all_values(fetch, params) if form in FILES else fetch()
    if form in FILES:
        _write(msgspec.convert(document, EstimateResult), FILES[form], output)
    elif form == JSON:
        print_json(document)
    else:
        _print(document, show_anyway=show_anyway)
    if alarm is not None:
        looked = alarm.evaluate(msgspec.convert(document, EstimateResult))
        print_lines([looked.sentence], err=form != TABLE)
        context.exit(EXIT_NEGATIVE if looked.fires else 0)


def _check_output(form: str, output: str) -> None:
    if form not in FILES and output != STDOUT:
        raise click.UsageError(f"--output is for --format {' or '.join(FILES)}")
    if form == PARQUET and output == STDOUT and sys.stdout.isatty():
        raise click.UsageError("Parquet is binary: give a file as --output")


def _all_values(fetch: result_pages.Fetch, params: Mapping[str, list[str]]) -> dict[str, Any]:
    try:
        return result_pages.all_values(fetch, params)
    except result_pages.Moved as moved:
        raise click.ClickException(str(moved)) from moved


def _write(result: EstimateResult, stream: Stream, output: str) -> None:
    """Write a file once all of it is rendered."""
    try:
        content = b"".join(stream(result))
    except ArrowUnavailable as error:
        raise click.ClickException(str(error)) from error
    with click.open_file(output, "wb") as file:
        file.write(content)


def _print(document: Document, *, show_anyway: bool) -> None:
    for series in document["series"]:
        print_lines(_head(document, series))
        for time_range in series["time_ranges"]:
            _print_time_range(document, series, time_range, show_anyway=show_anyway)
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


def _print_time_range(
    document: Document, series: Document, time_range: Document, *, show_anyway: bool
) -> None:
    open_period = " (open period)" if time_range["open_period"] else ""
    days = f"{time_range['from']} to {time_range['to']}{open_period}"
    title = f"{days}: n = {time_range['n']:,} {series['counts']}"
    print_lines(["", title, time_range["adequacy"]])
    if not time_range["n"] or not (time_range["usable"] or show_anyway):
        print_lines([] if not time_range["n"] else [HIDDEN])
        return
    leader = time_range["leader"]
    if leader is not None:
        print_lines([f"Largest share: {spelled(leader)}, all values compared at once."])
    validity = (
        f"intervals at {document['level']:.4g} of each value on its own,"
        f" {time_range['estimand']}; {document['view']}; {document['validity']}"
    )
    print_lines([validity])
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
    for row in time_range.get("moments", []):
        yield _moment(row)
    mean = time_range["mean"]
    if mean and mean["mean"] is not None:
        yield (
            "mean",
            number_format.figure(mean["mean"], of_shares=False),
            number_format.interval(mean["low"], mean["high"], of_shares=False),
            "",
            number_format.interval(mean["fake_low"], mean["fake_high"], of_shares=False),
        )


def _moment(row: Document) -> tuple[str, ...]:
    name = f"{row['kind']} of {', '.join(row['of'])}"
    if row["figure"] is None:
        return (name, "not stated", "", "", "")
    ends = number_format.interval(row["low"], row["high"], of_shares=False)
    fakes = (
        "any number"
        if row["fake_low"] is None
        else number_format.interval(row["fake_low"], row["fake_high"], of_shares=False)
    )
    return (name, number_format.precise(row["figure"], row["low"], row["high"]), ends, "", fakes)


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
    yield from _search_notes(series["search"])
    if series["poisoning_test_failed"]:
        yield f"POISONING TEST FAILED: {series['poisoning_test']}"
    yield from (each["text"] for each in series["losses"])


def _search_notes(search: Document | None) -> Iterator[str]:
    if search is None:
        return
    if search["candidates"]:
        missing = ", ".join(search["missing"])
        others = f"; not found: {missing}" if missing else ""
        yield f"{search['found']:,} of {search['candidates']:,} candidates found{others}"
    tested = f"{search['tested']:,} tests so far"
    if search["least_share"] is None:
        yield tested
    else:
        least = number_format.share(search["least_share"])
        yield f"a string is found from a share of about {least} on; {tested}"
