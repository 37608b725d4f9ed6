"""`veilcount budget`: what a person reveals, by event, day and life, promised and counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import click

from ..analysis.planning.plan import percent
from ..queries import BudgetQuery, budget, plain
from ..text import number_format
from . import name_completion, options, query_source
from .output import tell_json, tell_lines, tell_table

Document = Mapping[str, Any]

UNITS = ("unit", "answers", "epsilon each", "local", "central", "guessed by all")


@click.command("budget", short_help="What a collection costs a person, and what was counted.")
@click.argument("name", shell_complete=name_completion.of_store)
@click.option("--series", multiple=True, metavar="FINGERPRINT", help="One definition of several.")
@click.option("--delta", help="Of bounds that have one; unless told, 0.000001.")
@click.option("--n", "n", metavar="N", help="Persons, for the errors; unless told, those there.")
@click.option("--level", help="With which chance an interval covers; unless told, 0.95.")
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
    """Show what collection NAME costs a person, and what was counted of it.

    Epsilon for an event, a day and a user stand together; then what the answers tell somebody who
    joins them, and the error under each unit at the same cost.
    """
    document = _document(name, url, server, key, query_source.given(**asked))
    if as_json:
        tell_json(document)
        return
    for series in document["series"]:
        _tell(series)
    tell_lines(_across(document["across"]))


def _document(
    name: str, url: str | None, server: str | None, key: str, given: dict[str, list[str]]
) -> dict[str, Any]:
    there = query_source.server_of(url, server, key)
    if there is not None:
        return there.ask(name, "budget", given)
    with query_source.snapshot(url) as snapshot:
        found = budget(snapshot, name, BudgetQuery.parse(given), bars=True)
        document: dict[str, Any] = plain(found)
        return document


def _tell(series: Document) -> None:
    account, table = series["budget"], series["levels"]
    figures = account["figures"]
    adjacency = number_format.adjacency(figures["adjacency"])
    tell_lines([f"{account['collection']}: {series['question']}", ""])
    tell_table((f"epsilon ({adjacency})", "", "of"), _figures(figures))
    tell_lines(["", f"protects {figures['scope']}", figures["device"], figures["server"], ""])
    tell_lines([*_spent(series), "", *_together(account), ""])
    shares = table["quantity"] != "mean"
    title = (
        f"error of the {table['quantity']} over the whole campaign at the same user epsilon"
        f" {table['user']} ({number_format.adjacency(table['adjacency'])}),"
        f" n = {table['n']:,} persons"
        f" ({series['n_is']}), level {table['level']:.4g}"
    )
    tell_lines([title])
    tell_table(UNITS, [_unit(row, shares=shares) for row in table["rows"]])
    tell_lines([""])


def _figures(figures: Document) -> Iterator[tuple[str, str, str]]:
    yield "event", figures["event"], f"one answer; the unit is {figures['unit']}"
    yield "day", figures["day"], figures["day_is"]
    yield "user", figures["user"], f"{_answers(figures['answers'])}, the whole campaign"


def _spent(series: Document) -> Iterator[str]:
    spent = series["budget"]["spent"]
    if spent is None:
        yield f"counted spend: {series['bars']}"
        return
    if spent["mean"] is None:
        yield f"counted spend: {series['bars']}"
        return
    yield (
        f"counted over {spent['pseudonyms']:,} pseudonyms: epsilon {spent['mean']} in the mean,"
        f" {spent['worst']} at worst, of at most {spent['cap']}"
    )
    for bar in spent["bars"]:
        most = _answers(bar["most"])
        slots = f"{bar['least']:,} to {most}" if bar["least"] < bar["most"] else most
        yield f"  {slots} (epsilon {bar['epsilon']}): {bar['pseudonyms']:,} pseudonyms"


def _together(account: Document) -> Iterator[str]:
    together = account["together"]
    times = together["answers"]
    adjacency = number_format.adjacency(account["figures"]["adjacency"])
    lines = [f"epsilon ({adjacency}) of {_answers(times)} together: {together['plain']} in sum"]
    if together["specific"] is not None and times > 1:
        lines.append(
            f"{together['optimal']} by any mechanism and {together['specific']} by this one at"
            f" delta {together['delta']}, on a schedule fixed in advance"
        )
    yield "; ".join(lines)
    for guess in account["guesses"]:
        yield (
            f"  who sees {_answers(guess['answers'])} guesses an unchanging yes or no right at most"
            f" {percent(Fraction(guess['mechanism']))}"
        )


def _answers(times: int) -> str:
    return "one answer" if times == 1 else f"{times:,} answers"


def _unit(row: Document, *, shares: bool) -> tuple[str, ...]:
    local, central = row["local_campaign"], row["central_campaign"]
    return (
        row["unit"],
        f"{row['answers']:,}",
        row["epsilon"] or "too small",
        "" if local is None else number_format.around(local["half_width"], of_shares=shares),
        number_format.around(central["half_width"], of_shares=shares),
        "" if row["guess_all"] is None else percent(Fraction(row["guess_all"])),
    )


def _across(across: Document) -> list[str]:
    """Return a line for each total: of different adjacencies there is no sum."""
    names = across["collections"]
    if len(names) == 1:
        return []
    return [f"all {len(names)} collections of the app, a user:", *map(_total, across["totals"])]


def _total(total: Document) -> str:
    of = f"{total['model']}, {number_format.adjacency(total['adjacency'])}"
    line = f"  {of}: epsilon {total['plain']} in sum over {', '.join(total['collections'])}"
    if total["worst"] == total["plain"]:
        return line
    return f"{line}; {total['worst']} at most, since nobody is in two cohorts"
