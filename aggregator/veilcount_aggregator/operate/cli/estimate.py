"""`veilcount estimate`: a collection's estimates, each with its interval."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from veilcount_analysis.counts import CountersSource, read_counts
from veilcount_analysis.kinds.panels import Form, Panel
from veilcount_analysis.kinds.registry import KINDS_BY_NAME
from veilcount_analysis.kinds.results import Figure
from veilcount_analysis.series.series import utc_day
from veilcount_analysis.text import number_format, result_pages
from veilcount_analysis.text.result_columns import spelled

from ...queries import Alert, EstimateQuery, EstimateResult, Snapshot, decoded, estimate, plain
from ...queries.alert import MEAN
from ...queries.estimate import estimate_counts
from ...queries.estimate_schema import RangeResult, SeriesResult
from ...queries.export import ArrowUnavailable, Stream, stream_csv, stream_parquet
from . import options, query_source
from .main import EXIT_NEGATIVE
from .output import print_json, print_lines, print_table
from .query_source import struct_options

TABLE, JSON, CSV, PARQUET = "table", "json", "csv", "parquet"
FILES: Mapping[str, Stream] = {CSV: stream_csv, PARQUET: stream_parquet}
SELECTIONS = {"top", "values", "group", "page", "candidates"}  # of values
HIDDEN = "Figures would be noise; --show-anyway prints them."
SHOWN_DIGITS = 12  # of a fingerprint
STDOUT = "-"


@click.command("estimate")
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
@click.option(
    "--counts",
    type=click.File("r", encoding="utf-8-sig"),
    metavar="FILE",
    help="Estimate counts that a warehouse has grouped, without a store: CSV or JSON of message and"
    " count, with --definitions (- reads standard input).",
)
@click.option(
    "--definitions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The definitions file of --counts.",
)
@query_source.source_options
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    name: str,
    params: dict[str, Sequence[str]],
    candidates: TextIO | None,
    form: str,
    output: str,
    alert: str | None,
    show_anyway: bool,
    as_json: bool,
    counts: TextIO | None,
    definitions: Path | None,
    **source: Any,
) -> None:
    """Show what was reported for collection NAME, debiased, with intervals.

    Reads a --store, queries a server's --url with a --key, or takes --counts. Changed definitions
    are listed one after the other. An --alert tests the last time range of the newest one.
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

    grouped = _grouped_counts(name, counts, definitions)

    def fetch(**page: int) -> dict[str, Any]:
        parameters = params | {key: [str(number)] for key, number in page.items()}
        if grouped is not None:
            document: dict[str, Any] = plain(
                estimate_counts(grouped, EstimateQuery.parse(parameters))
            )
            return document

        def compute(snapshot: Snapshot) -> object:
            return estimate(snapshot, name, EstimateQuery.parse(parameters))

        return query_source.query(name, "estimate", parameters, compute, **source)

    document = _all_values(fetch, params) if form in FILES else fetch()
    result = decoded(document, EstimateResult)
    if form in FILES:
        _write(result, FILES[form], output)
    elif form == JSON:
        print_json(document)
    else:
        print_estimate(result, show_anyway=show_anyway)
    if alarm is not None:
        looked = alarm.evaluate(result)
        print_lines([looked.sentence], err=form != TABLE)
        context.exit(EXIT_NEGATIVE if looked.fires else 0)


def _grouped_counts(
    name: str, counts: TextIO | None, definitions: Path | None
) -> CountersSource | None:
    """Return the counts of a file, if one is given."""
    if counts is None and definitions is None:
        return None
    if counts is None or definitions is None:
        raise click.UsageError("give --counts and --definitions together")
    collection = options.load_collection(definitions, name)
    try:
        text = counts.read()
    except UnicodeDecodeError as error:
        raise click.BadParameter("give a file in UTF-8", param_hint="--counts") from error
    return read_counts(collection, text, utc_day(options.now()))


def _check_output(form: str, output: str) -> None:
    if form not in FILES and output != STDOUT:
        raise click.UsageError(f"--output is for --format {' or '.join(FILES)}")
    if form == PARQUET and output == STDOUT and sys.stdout.isatty():
        raise click.UsageError("Parquet is binary: give a file as --output")


def _all_values(fetch: result_pages.Fetch, params: Mapping[str, Sequence[str]]) -> dict[str, Any]:
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


def print_estimate(result: EstimateResult, *, show_anyway: bool) -> None:
    """Print the figures of an estimate, in the panels of their kind."""
    for series in result.series:
        print_lines(_head(result, series))
        for time_range in series.ranges:
            _print_range(result, series, time_range, show_anyway=show_anyway)
        notes = list(_notes(series))
        print_lines(["", *notes, ""] if notes else [""])


def _head(result: EstimateResult, series: SeriesResult) -> Iterator[str]:
    epsilon = series.epsilon
    yield f"{result.collection}: {series.question}"
    yield (
        f"series {series.fingerprint[:SHOWN_DIGITS]};"
        f" epsilon ({number_format.adjacency(epsilon.adjacency)}) {epsilon.event} an event,"
        f" {epsilon.day} a day, {epsilon.user} a user; unit {series.unit}"
    )
    if result.segments:
        segments = ", ".join(f"{name}: {value}" for name, value in result.segments.items())
        yield f"only {segments}"


def _print_range(
    result: EstimateResult, series: SeriesResult, time_range: RangeResult, *, show_anyway: bool
) -> None:
    open_period = " (open period)" if time_range.open_period else ""
    days = f"{time_range.first} to {time_range.last}{open_period}"
    title = f"{days}: n = {time_range.n:,} {series.counts}"
    print_lines(["", title, time_range.adequacy])
    if not time_range.n or not (time_range.usable or show_anyway):
        print_lines([HIDDEN] if time_range.n else [])
        return
    print_lines([f"{time_range.headline}."] if time_range.headline else [])
    if time_range.leader is not None:
        leader = spelled(time_range.leader)
        print_lines([f"Largest share: {leader}, all values compared at once."])
    meaning = f"{number_format.level(result.level)} intervals, one for each value"
    print_lines([f"{meaning}, {time_range.estimand}, {result.validity}; {result.view} view"])
    if time_range.bands:
        print_lines([f"bands hold for {time_range.bands}"])
    tables = [(panel, panel.rows(time_range.figures)) for panel in _panels(series)]
    shown = [(panel, rows) for panel, rows in tables if rows]
    for panel, rows in shown:
        print_lines(["", panel.title] if len(shown) > 1 else [])
        _print_panel(panel, rows, result.fakes, series.measured_in)
    if time_range.weighting is not None:
        print_lines([f"{sentence}." for sentence in time_range.weighting.sentences])
    verdicts = ", ".join(f"{word} {number:,}" for word, number in time_range.verdicts.items())
    print_lines([f"reports not counted: {verdicts}"] if verdicts else [])


def _panels(series: SeriesResult) -> list[Panel]:
    """Return the panels that are printed: no curves, and no drawing of what a table has too."""
    panels = KINDS_BY_NAME[series.kind].panels
    in_tables = {kind for panel in panels if panel.form is Form.TABLE for kind in panel.figures}
    return [
        panel
        for panel in panels
        if panel.form in {Form.TABLE, Form.GRID}
        or (panel.form is Form.DOTS and not in_tables.issuperset(panel.figures))
    ]


def _print_panel(panel: Panel, rows: Sequence[Figure], fakes: float, unit: str | None) -> None:
    if panel.form is Form.GRID:
        for grid in panel.grids(rows):
            lines = (
                (answer, *(f"{panel.figure_text(row)} ({panel.interval_text(row)})" for row in own))
                for answer, own in grid.rows()
            )
            print_table((f"{grid.one} / {grid.two}", *grid.answers[1]), lines)
        return
    columns = ["value", "share"] if panel.of_shares else ["", unit or "figure"]
    columns += ["band" if panel.band else "interval"]
    has_answers = any(row.answers is not None for row in rows)
    columns += ["answers"] if has_answers else []
    columns += [] if panel.band else [f"if {number_format.share(fakes)} were fake"]
    print_table(columns, (_cells(panel, row, has_answers=has_answers) for row in rows))


def _cells(panel: Panel, row: Figure, *, has_answers: bool) -> Iterator[str]:
    yield panel.label(row, spelled)
    yield panel.figure_text(row)
    yield panel.interval_text(row)
    if has_answers:
        yield f"{row.answers or 0.0:,.0f}"
    if not panel.band:
        yield panel.fakes_text(row)


def _notes(series: SeriesResult) -> Iterator[str]:
    facts = series.facts
    if facts.get("pages", 1) > 1:
        yield f"page {facts['page']:,} of {facts['pages']:,} ({facts['size']:,} values): --page"
    yield from series.notes
    if series.poisoning_test_failed:
        yield f"POISONING TEST FAILED: {series.poisoning_test}"
    yield from (loss.text for loss in series.losses)
