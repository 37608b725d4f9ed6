"""`veilcount compare`: how two segments, ranges of days or series differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from ..estimation import LookCount
from ..queries import CompareQuery, compare, plain
from ..text import number_format
from ..text.result_columns import spelled
from . import name_completion, options, query_source
from .output import tell_json, tell_lines, tell_table


@click.command("compare")
@click.argument("name", shell_complete=name_completion.of_store)
@click.argument("a")
@click.argument("b")
@click.option("--from", "first", metavar="DAY", help="The first UTC day of both.")
@click.option("--to", "last", metavar="DAY", help="The last UTC day of both.")
@click.option("--level", help="With which chance an interval covers; unless told, 0.95.")
@click.option("--segment", multiple=True, metavar="NAME:VALUE", help="What both have in common.")
@click.option("--series", multiple=True, metavar="FINGERPRINT", help="One definition of several.")
@click.option("--top", metavar="N", help="The most frequent values alone.")
@click.option("--values", multiple=True, metavar="VALUE,...", help="These values alone.")
@click.option(
    "--looks",
    type=click.Choice([each.value for each in LookCount]),
    default=LookCount.ONE.value,
    show_default=True,
    help="Intervals for one planned look, or for every look at a growing range.",
)
@query_source.place_options
@options.as_json
def command(
    *,
    name: str,
    url: str | None,
    server: str | None,
    key: str,
    as_json: bool,
    **asked: Any,
) -> None:
    """Compare side A of collection NAME with side B.

    A side is a segment, a range of days or a series: arm:A, 2026-12-01..2026-12-31 or
    series:FINGERPRINT; several of these with commas between.
    """
    document = _document(name, url, server, key, _given(asked))
    if as_json:
        tell_json(document)
    else:
        _tell(document)


def _given(asked: Mapping[str, Any]) -> dict[str, list[str]]:
    a, b = (asked[side].split(",") for side in ("a", "b"))
    rest = {name: word for name, word in asked.items() if name not in {"a", "b", "first", "last"}}
    days = {"from": asked["first"], "to": asked["last"]}
    return query_source.given(a=a, b=b, **days, **rest)


def _document(
    name: str, url: str | None, server: str | None, key: str, given: dict[str, list[str]]
) -> dict[str, Any]:
    there = query_source.server_of(url, server, key)
    if there is not None:
        return there.ask(name, "compare", given)
    with query_source.snapshot(url) as snapshot:
        document: dict[str, Any] = plain(compare(snapshot, name, CompareQuery.parse(given)))
        return document


def _tell(document: Mapping[str, Any]) -> None:
    tell_lines(_head(document))
    if document["rows"]:
        columns = ("value", "a", "b", "a - b", "interval", "p (Holm)", "could be seen")
        tell_table(columns, map(_row, document["rows"]))
    tell_lines(["", document["sentence"], *filter(None, [document["note"]])])


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    for side in ("a", "b"):
        of = document[side]
        filling = " (takes answers still)" if of["filling"] else ""
        yield (
            f"{side} = {of['label']}: n = {of['n']:,} {of['counts']},"
            f" {of['from']} to {of['to']}{filling};"
            f" epsilon ({number_format.adjacency(of['epsilon']['adjacency'])})"
            f" {of['epsilon']['event']} an event,"
            f" {of['epsilon']['day']} a day, {of['epsilon']['user']} a user"
        )
    yield f"intervals at {document['level']:.4g}, {document['of']}; {document['validity']}"
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
