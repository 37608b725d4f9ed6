"""`veilcount budget`: epsilon per event, day and user, promised and spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import click

from veilcount_analysis.text import number_format
from veilcount_shared.guessing import percent

from ...queries import BudgetQuery, budget
from . import options, query_source
from .output import print_json, print_lines, print_table
from .query_source import struct_options

Document = Mapping[str, Any]

UNITS = ("unit", "answers", "epsilon each", "local", "central", "guess from all")


@click.command("budget", short_help="Show a collection's privacy budget, promised and spent.")
@options.name_in_store
@struct_options(BudgetQuery)
@query_source.source_options
@options.as_json
def command(*, name: str, params: query_source.Parameters, as_json: bool, **source: Any) -> None:
    """Show the privacy budget of collection NAME: promised, and spent so far.

    Epsilon of an event, a day and a user; what the reports reveal to somebody who joins them; and
    the error under each unit at the same user epsilon.
    """

    document = query_source.query(
        name,
        "budget",
        params,
        lambda snapshot: budget(snapshot, name, BudgetQuery.parse(params), bars=True),
        **source,
    )
    if as_json:
        print_json(document)
        return
    for series in document["series"]:
        _print(series)
    print_lines(_totals(document["cross_collection"]))
    print_lines(map(_released, document["released"]))


def _print(series: Document) -> None:
    account, table = series["budget"], series["levels"]
    figures = account["figures"]
    adjacency = number_format.adjacency(figures["adjacency"])
    print_lines([f"{account['collection']}: {series['question']}", ""])
    print_table((f"epsilon ({adjacency})", "", "of"), _figures(figures))
    print_lines(_windows(account))
    print_lines(["", f"protects {figures['scope']}", figures["device"], figures["server"], ""])
    print_lines([*_spent(series), "", *_composition(account), ""])
    shares = table["quantity"] not in number_format.NUMBERS
    title = (
        f"error of the {table['quantity']} over the whole campaign at the same user epsilon"
        f" {table['user']} ({number_format.adjacency(table['adjacency'])}),"
        f" n = {table['n']:,} persons"
        f" ({series['n_source']}), level {table['level']:.4g}"
    )
    print_lines([title])
    print_table(UNITS, [_unit(row, shares=shares) for row in table["rows"]])
    print_lines([""])


def _figures(figures: Document) -> Iterator[tuple[str, str, str]]:
    yield "event", figures["event"], f"one answer; the unit is {figures['unit']}"
    yield "day", figures["day"], figures["day_is"]
    yield "user", figures["user"], f"{_answers(figures['answers'])}, the whole campaign"


def _windows(account: Document) -> Iterator[str]:
    if account["windows"]:
        yield ""
    for each in account["windows"]:
        yield (
            f"any {each['window']}: epsilon {each['epsilon']} at most; from any moment on,"
            f" {each['at_any_moment']}"
        )


def _spent(series: Document) -> Iterator[str]:
    spent = series["budget"]["spent"]
    if spent is None or spent["mean"] is None:
        yield f"spent budget: {series['bars']}"
        return
    yield (
        f"spent by {spent['pseudonyms']:,} pseudonyms: epsilon {spent['mean']} on average,"
        f" {spent['worst']} at most, of {spent['cap']}"
    )
    for bar in spent["bars"]:
        most = _answers(bar["most"])
        slots = f"{bar['least']:,} to {most}" if bar["least"] < bar["most"] else most
        yield f"  {slots} (epsilon {bar['epsilon']}): {bar['pseudonyms']:,} pseudonyms"


def _composition(account: Document) -> Iterator[str]:
    composition = account["composition"]
    times = composition["answers"]
    adjacency = number_format.adjacency(account["figures"]["adjacency"])
    lines = [f"epsilon ({adjacency}) of {_answers(times)} together: {composition['plain']} in sum"]
    if composition["specific"] is not None and times > 1:
        lines.append(
            f"{composition['optimal']} by any mechanism and {composition['specific']} by this one"
            f" at delta {composition['delta']}, on a schedule fixed in advance"
        )
    yield "; ".join(lines)
    for guess in account["guessing_curve"]:
        yield (
            f"  from {_answers(guess['answers'])} an unchanging yes or no is guessed right at most"
            f" {percent(Fraction(guess['mechanism']))} of the time"
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


def _released(loss: Document) -> str:
    """Return what central releases reveal of one person, so far and at most."""
    by = number_format.adjacency(loss["adjacency"])
    rho = "" if loss["rho"] == "0" else f" and rho {loss['rho']}"
    delta = f" with delta {loss['delta']}" if loss["delta"] else ""
    return (
        f"central releases of {', '.join(loss['collections'])}, of one person over all periods"
        f" ({by}): epsilon {loss['epsilon']}{rho} so far, epsilon {loss['most_epsilon']}{delta} at"
        " most"
    )


def _totals(budget: Document) -> list[str]:
    """Return a line for each total: of different adjacencies there is no sum."""
    names = budget["collections"]
    if len(names) == 1:
        return []
    return [f"all {len(names)} collections of the app, a user:", *map(_total, budget["totals"])]


def _total(total: Document) -> str:
    of = f"{total['model']}, {number_format.adjacency(total['adjacency'])}"
    line = f"  {of}: epsilon {total['plain']} in sum over {', '.join(total['collections'])}"
    if Fraction(total["delta"]):
        line = f"{line}, with delta {total['delta']}"
    if total["worst"] == total["plain"]:
        return line
    return f"{line}; {total['worst']} at most, since cohorts are disjoint"
