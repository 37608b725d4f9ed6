"""`veilcount release`: make a central release, or list all releases.

Only through a running server: the cost of a release is written to the journal on the server's disk
before its result leaves. A command elsewhere would write to another journal, or to none, and a
restored store could spend that budget again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, TextIO

import click

from veilcount_analysis.text import number_format
from veilcount_analysis.text.view_parts import Part, Row, Table
from veilcount_serving.errors import SettingsError

from ...settings import PREFIX
from . import options, query_source
from .output import confirm, print_result, yes_option

Document = Mapping[str, Any]

FIGURES = ("value", "figure", "interval")
JOURNAL = ("day", "query", "epsilon", "from", "to", "figures")
PERIODS = ("period", "from", "to", "spent", "remaining")
STRINGS = "strings"
FEW = 3  # figures of a release that a line of the journal shows


@click.command("release")
@options.name_in_store
@click.option(
    "--query",
    help="""histogram, count, sum, mean, variance, median, 'quantile 0.9', quantiles,
    'median point', most_frequent,
    running_total, strings, 'age >= 40' or '{"count": ["a", "b"]}'; without it, past releases are
    listed.""",
)
@click.option(
    "--epsilon",
    type=options.epsilon,
    help="Epsilon to spend, of the budget of each period: Laplace noise.",
)
@click.option(
    "--rho",
    metavar="NUMBER",
    help="Rho to spend instead, where the definition's budget is in rho: Gaussian noise.",
)
@click.option("--from", "first", metavar="DAY", help="The first UTC day, such as 2026-12-01.")
@click.option("--to", "last", metavar="DAY", help="The last UTC day.")
@click.option(
    "--series", default="", metavar="FINGERPRINT", help="A definition; by default the newest."
)
@click.option(
    "--candidates",
    type=click.File(encoding="utf-8"),
    help="Strings to look for in a release of open strings, one a line; - reads them from standard"
    " input. Free.",
)
@click.option("--dry-run", is_flag=True, help="Show the cost and the error, and release nothing.")
@yes_option
@query_source.url_option
@query_source.key_option
@options.as_json
def command(
    *,
    name: str,
    query: str | None,
    epsilon: Fraction | None,
    rho: str | None,
    first: str | None,
    last: str | None,
    series: str,
    candidates: TextIO | None,
    dry_run: bool,
    yes: bool,
    server: str | None,
    key: str,
    as_json: bool,
) -> None:
    """Make a release of central collection NAME, or list its releases.

    A release is paid from the budget of each period it covers; repeating one is free. It goes
    through a running server, whose journal records the cost before the result leaves.
    """
    if not server:
        fix = f"give a running server's address, here or as {PREFIX}URL: it has the journal"
        raise SettingsError("--url", "", fix)
    there = query_source.Server(server, key)
    if query is None:
        if epsilon or rho or dry_run:
            raise click.UsageError("give --query too, or none of --epsilon, --rho and --dry-run")
        document = there.get(name, "releases", {})
        print_result(document, _past(document), as_json=as_json)
        return
    if (epsilon is None) == (rho is None):
        raise click.UsageError("give either --epsilon or --rho with --query")
    wanted = {
        "query": _query(query),
        "epsilon": None if epsilon is None else number_format.decimal(epsilon),
        "rho": rho,
        "from": first,
        "to": last,
        "series": series,
        "dry_run": dry_run,
        "candidates": [] if candidates is None else list(options.candidate_lines(candidates)),
    }
    if not (dry_run or yes):
        _confirm(there.post(name, "releases", wanted | {"dry_run": True}))
    document = there.post(name, "releases", wanted)
    print_result(document, _release(document), as_json=as_json)


def _confirm(price: Document) -> None:
    confirm(
        f"WARNING: this spends {price['unit']} {price['requested']} of each period of"
        f" {price['from']} to {price['to']} for good. Of the period with the least budget"
        f" left, {price['spent']} is spent and {price['remaining']} remains. The same release"
        " again is free.",
        "Release?",
    )


def _query(written: str) -> object:
    if not written.lstrip().startswith("{"):
        return written
    try:
        return json.loads(written)
    except ValueError as error:
        raise click.BadParameter(f"not readable JSON: {error}", param_hint="--query") from error


def _past(document: Document) -> Iterator[Part]:
    if document["locked"]:
        yield "LOCKED: no release is possible until the operator unlocks the store"
    for series in document["series"]:
        adjacency = number_format.adjacency(series["adjacency"])
        about = f"series {series['fingerprint'][:12]}: budget {series['budget']} of each period"
        at = f", delta {series['delta']}" if series["delta"] else ""
        yield f"{about}, {series['unit']} by {adjacency}{at}"
        touched = [period for period in series["periods"] if Fraction(period["spent"])]
        rows = [tuple(str(period[column]) for column in PERIODS) for period in touched]
        yield Table("", PERIODS, rows)
        yield Table("", JOURNAL, [_line(release) for release in series["releases"]])


def _line(release: Document) -> tuple[str, ...]:
    figures = release["figures"]
    shown = [
        f"{_label(figure['value'])} {figure['figure']:,.6g} ({_interval_of(figure)})"
        for figure in figures[:FEW]
    ]
    if release["query"] == STRINGS:
        shown, figures = [f"{len(figures):,} strings"], []
    more = [f"and {len(figures) - FEW:,} more"] if len(figures) > FEW else []
    day, query = release["day"], json.dumps(release["query"])
    return (day, query, _cost(release), release["from"], release["to"], "; ".join(shown + more))


def _cost(release: Document) -> str:
    """Return the cost of one unit: epsilon, or, with Gaussian noise, rho."""
    return release["epsilon"] or f"rho {release['rho']}"


def _release(document: Document) -> Iterator[Part]:
    yield _head(document)
    if document["dry_run"]:
        noise = [(part["name"], _half_width(part)) for part in document["noise"]]
        yield Table("", ("noise on", "half width"), noise)
    elif document["query"] == STRINGS:
        yield from _strings(document)
    else:
        yield Table("", FIGURES, [_figure(figure) for figure in document["figures"]])
    yield from _price(document)


def _figure(figure: Document) -> Row:
    return _label(figure["value"]), f"{figure['figure']:,.6g}", _interval_of(figure)


def _strings(document: Document) -> Iterator[Part]:
    """Yield the strings found; hashes have no meaning to people."""
    yield f"{len(document['figures']):,} hashed strings passed the threshold"
    if (named := document["strings"]) is None:
        yield "name strings with --candidates FILE: the release again, at no cost"
        return
    matches = f"{len(named['found']):,} of {named['candidates']:,} candidates found"
    unnamed = f"{named['unnamed']:,} hashes have no name"
    yield f"{matches}, {named['by_chance']:.2g} expected by chance; {unnamed}"
    rows = [(row["text"], f"{row['figure']:,}", _interval_of(row)) for row in named["found"]]
    yield Table("", ("string", "figure", "interval"), rows)


def _half_width(part: Document) -> str:
    if part["distribution"] in {"exponential", "gumbel"}:
        return f"within {part['half_width']:,} answers of the best"
    least = part["threshold"]
    if least is None:
        return f"+/- {part['half_width']:,}"
    return f"+/- {part['half_width']:,}, released from {least:,} on at delta {part['delta']:.3g}"


def _head(document: Document) -> str:
    n = "" if document["n"] is None else f", n = {document['n']:,}"
    adjacency = number_format.adjacency(document["adjacency"])
    return (
        f"{document['collection']}: {json.dumps(document['query'])}, {document['from']} to"
        f" {document['to']}{n}; {document['unit']} by {adjacency}, level"
        f" {document['level']:.4g}"
    )


def _price(document: Document) -> Iterator[str]:
    if document["dry_run"]:
        did = "would cost"
    else:
        did = "cost" if document["charged"] else "free, paid before: cost"
    unit = document["unit"]
    yield f"{did} {unit} {document['requested']} of each period"
    if (person := document[f"person_{unit}"]) != document["requested"]:
        yield f"of one person, over all these periods: {unit} {person}"
    yield (
        f"of the period with the least budget left, {document['spent']} is spent and"
        f" {document['remaining']} remains"
    )


def _label(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _interval_of(figure: Document) -> str:
    return number_format.interval(figure["low"], figure["high"], of_shares=False)
