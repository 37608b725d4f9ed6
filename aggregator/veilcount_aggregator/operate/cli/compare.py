"""`veilcount compare`: how two segments, ranges of days or series differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from veilcount_analysis.text import number_format
from veilcount_analysis.text.result_columns import spelled

from ...queries import CompareQuery, compare
from . import options, query_source
from .output import print_json, print_lines, print_table
from .query_source import struct_options


@click.command("compare")
@options.name_in_store
@click.argument("a")
@click.argument("b")
@struct_options(CompareQuery, omit=("a", "b"))
@query_source.source_options
@options.as_json
def command(
    *, name: str, a: str, b: str, params: dict[str, list[str]], as_json: bool, **source: Any
) -> None:
    """Compare side A of collection NAME with side B.

    A side is a segment, a range of days or a series: arm:A, 2026-12-01..2026-12-31 or
    series:FINGERPRINT; combine several with commas.
    """
    params |= {"a": a.split(","), "b": b.split(",")}

    document = query_source.query(
        name,
        "compare",
        params,
        lambda snapshot: compare(snapshot, name, CompareQuery.parse(params)),
        **source,
    )
    if as_json:
        print_json(document)
    else:
        _print(document)


def _print(document: Mapping[str, Any]) -> None:
    print_lines(_head(document))
    if document["rows"]:
        columns = ("value", "a", "b", "a - b", "interval", "p (Holm)", "could be seen")
        print_table(columns, map(_row, document["rows"]))
    print_lines(["", document["sentence"], *filter(None, [document["note"]])])


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    for side in ("a", "b"):
        of = document[side]
        open_period = " (open period)" if of["open_period"] else ""
        yield (
            f"{side} = {of['label']}: n = {of['n']:,} {of['counts']},"
            f" {of['from']} to {of['to']}{open_period};"
            f" epsilon ({number_format.adjacency(of['epsilon']['adjacency'])})"
            f" {of['epsilon']['event']} an event,"
            f" {of['epsilon']['day']} a day, {of['epsilon']['user']} a user"
        )
    yield f"intervals at {document['level']:.4g}, {document['estimand']}; {document['validity']}"
    yield ""


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    shares = row["value"] is not None
    high = number_format.difference(row["high"], of_shares=shares)
    return (
        (spelled(row["value"]) or "") if shares else "mean",
        _side(row["a"], shares=shares),
        _side(row["b"], shares=shares),
        number_format.difference(row["difference"], of_shares=shares),
        f"{_bare(row['low'], shares=shares)} to {high}",
        f"{row['holm']:.3g}",
        number_format.around(row["detectable"], of_shares=shares),
    )


def _bare(difference: float, *, shares: bool) -> str:
    """Return the lower end: the unit follows with the upper one."""
    return number_format.difference(difference, of_shares=shares).removesuffix(number_format.POINTS)


def _side(side: Mapping[str, float], *, shares: bool) -> str:
    interval = number_format.interval(side["low"], side["high"], of_shares=shares)
    return f"{number_format.figure(side['figure'], of_shares=shares)} ({interval})"
