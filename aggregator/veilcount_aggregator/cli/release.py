"""`veilcount release`: ask a trusted curator, or see what was ever released.

Always of a running server, never of a store that is opened here: what a release has cost is also
written to the server's journal, on the server's disk, before it leaves, and under the name of the
key that asked. A command elsewhere would write to another journal, or to none, and a store that
came back from a backup would spend that budget again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import click

from ..errors import SettingsError
from ..settings import PREFIX
from ..text import number_format
from . import name_completion, options, param_types, query_source
from .http_client import Server
from .output import tell_json, tell_lines, tell_table

Document = Mapping[str, Any]

FIGURES = ("value", "figure", "interval")
JOURNAL = ("day", "query", "epsilon", "from", "to", "figures")
PERIODS = ("period", "from", "to", "spent", "remaining")
FEW = 3  # figures of a release that a line of the journal shows


@click.command("release", short_help="Ask a trusted curator, or see all that was released.")
@click.argument("name", shell_complete=name_completion.of_store)
@click.option(
    "--query",
    help="""histogram, count, sum, mean, 'age >= 40' or '{"count": ["a", "b"]}'; without, the
    journal is shown.""",
)
@click.option("--epsilon", type=param_types.EPSILON, help="What to spend on it, of each period.")
@click.option("--from", "first", metavar="DAY", help="The first UTC day, such as 2026-12-01.")
@click.option("--to", "last", metavar="DAY", help="The last UTC day.")
@click.option("--series", default="", metavar="FINGERPRINT", help="By default, the newest.")
@click.option("--dry-run", is_flag=True, help="Say what it would cost, and how far off it is.")
@query_source.url_option
@query_source.key_option
@options.as_json
def command(
    *,
    name: str,
    query: str | None,
    epsilon: Fraction | None,
    first: str | None,
    last: str | None,
    series: str,
    dry_run: bool,
    server: str | None,
    key: str,
    as_json: bool,
) -> None:
    """Ask the curator of central collection NAME, or see all that was released of it.

    An answer is paid for from the budget of each period in it; the same question again is free. The
    server is asked, not the store: what is spent has to be in its journal before the answer leaves.
    """
    if not server:
        fix = f"give a running server's address, here or as {PREFIX}URL: it alone has the journal"
        raise SettingsError("--url", "", fix)
    there = Server(server, key)
    if query is None:
        _see(there, name, epsilon=epsilon, dry_run=dry_run, as_json=as_json)
        return
    if epsilon is None:
        raise click.UsageError("give --epsilon with --query")
    wanted = {
        "query": _query(query),
        "epsilon": number_format.exact(epsilon),
        "from": first,
        "to": last,
        "series": series,
        "dry_run": dry_run,
    }
    document = there.order(name, "releases", wanted)
    if as_json:
        tell_json(document)
    else:
        _tell(document)


def _query(written: str) -> object:
    if not written.lstrip().startswith("{"):
        return written
    try:
        return json.loads(written)
    except ValueError as error:
        raise click.BadParameter(f"not readable JSON: {error}", param_hint="--query") from error


def _see(
    there: Server, name: str, *, epsilon: Fraction | None, dry_run: bool, as_json: bool
) -> None:
    if epsilon is not None or dry_run:
        raise click.UsageError("give --query too, or neither --epsilon nor --dry-run")
    document = there.ask(name, "releases", {})
    if as_json:
        tell_json(document)
        return
    if document["locked"]:
        tell_lines(["LOCKED: no release is made until the operator unlocks the store"])
    for series in document["series"]:
        adjacency = number_format.adjacency(series["adjacency"])
        about = f"series {series['fingerprint'][:12]}: budget {series['budget']} of each period"
        tell_lines([f"{about}, epsilon by {adjacency}"])
        touched = [each for each in series["periods"] if Fraction(each["spent"])]
        tell_table(PERIODS, [[each[column] for column in PERIODS] for each in touched])
        tell_lines([""])
        tell_table(JOURNAL, map(_line, series["releases"]))
        tell_lines([""])


def _line(release: Document) -> tuple[str, ...]:
    figures = release["figures"]
    told = [
        f"{_named(each['value'])} {each['figure']:,.6g} ({_ends(each)})" for each in figures[:FEW]
    ]
    more = [f"and {len(figures) - FEW:,} more"] if len(figures) > FEW else []
    day, query = release["day"], json.dumps(release["query"])
    return (
        day,
        query,
        release["epsilon"],
        release["from"],
        release["to"],
        "; ".join(told + more),
    )


def _tell(document: Document) -> None:
    tell_lines(_head(document))
    if document["dry_run"]:
        tell_table(("noise on", "half an interval"), map(_noise, document["noise"]))
    else:
        rows = [(_named(e["value"]), f"{e['figure']:,.6g}", _ends(e)) for e in document["figures"]]
        tell_table(FIGURES, rows)
    tell_lines(["", *_price(document)])


def _head(document: Document) -> Iterator[str]:
    n = "" if document["n"] is None else f", n = {document['n']:,}"
    yield (
        f"{document['collection']}: {json.dumps(document['query'])}, {document['from']} to"
        f" {document['to']}{n}; epsilon by {number_format.adjacency(document['adjacency'])}, level"
        f" {document['level']:.4g}"
    )
    yield ""


def _price(document: Document) -> Iterator[str]:
    """Yield what was asked of the budget, and where it stands."""
    if document["dry_run"]:
        did = "would cost"
    else:
        did = "cost" if document["charged"] else "was paid for before: free now. It cost"
    yield f"{did} epsilon {document['requested']} of each period"
    if document["person_epsilon"] != document["requested"]:
        yield f"of one person, over all these periods: epsilon {document['person_epsilon']}"
    yield (
        f"of the period that has least left, {document['spent']} is spent and"
        f" {document['remaining']} remains"
    )


def _noise(part: Document) -> tuple[str, str]:
    return part["name"], f"+/- {part['half_width']:,}"


def _named(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _ends(figure: Document) -> str:
    return number_format.interval(figure["low"], figure["high"], of_shares=False)
