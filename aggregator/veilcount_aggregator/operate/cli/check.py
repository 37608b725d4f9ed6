"""`veilcount check`: privacy, expected error and remarks of a definitions file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.privacy.budget import figures
from veilcount_analysis.privacy.shuffled import require_covers
from veilcount_analysis.privacy.trust_models import ErrorEstimate, Quantity, shuffled_run
from veilcount_analysis.text import number_format
from veilcount_analysis.text.view_parts import Part, Table
from veilcount_shared import Collection, lint, load_collections
from veilcount_shared.collection import answers_by_consent, describe_answers
from veilcount_shared.definition_changes import FORMATS, TEXT, load_change, render

from ...json_results import plain
from ...records.counter_admission import memory_at_most
from ...store.tally_size import worst_case
from . import options
from .main import NegativeResult
from .output import print_result, spinner

LEVEL = 0.95
COLUMNS = ("collection", "event", "day", "user", "by", "mechanism", "bits")


@click.command("check")
@options.definitions_file
@click.option(
    "--n",
    "--devices",
    "n",
    type=options.COUNT,
    default=100_000,
    show_default=True,
    help="Expected number of reports, one per device.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if there are remarks.")
@click.option(
    "--against",
    metavar="REV",
    help="Show what changed since a revision of git, or another file, and what it costs a person.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice([*FORMATS]),
    default=TEXT,
    show_default=True,
    help="How --against writes changes; github: as annotations.",
)
@click.option(
    "--exit-zero", is_flag=True, help="With --against: exit with 0 if changes need a decision."
)
@options.as_json
def command(
    file: Path,
    *,
    n: int,
    strict: bool,
    against: str | None,
    format_: str,
    exit_zero: bool,
    as_json: bool,
) -> None:
    """Show the privacy and the expected error of each collection of FILE.

    Epsilon per event, day and user, the mechanism and its message size, who enforces what, the
    expected error, and remarks on likely mistakes.

    With --against, what changes for a person instead: questions, epsilon in a day, a month and for
    life, how often a guess is right, whom to ask again. If a change needs a decision, it exits with
    1.
    """
    if against is None and (exit_zero or format_ != TEXT):
        raise click.UsageError("--format and --exit-zero are of a comparison: give --against")
    if against is not None:
        _show_change(file, against, "json" if as_json else format_, exit_zero=exit_zero)
        return
    with spinner("computing the expected error"):
        collections = load_collections(file).values()
        for collection in collections:
            require_covers(collection)
        rows = [_facts(collection, n) for collection in collections]
    document = {"file": file.name, "n": n, "level": LEVEL, "collections": rows}
    print_result(document, _parts(rows, n), as_json=as_json)
    remarks = sum(len(row["remarks"]) for row in rows)
    if strict and remarks:
        raise NegativeResult(
            f"{file.name}: {remarks} remark{'s' * (remarks > 1)}: fix or accept them"
        )


def _show_change(file: Path, against: str, format_: str, *, exit_zero: bool) -> None:
    change = render(load_change(file, against), format_)
    click.echo(change.text)
    if not change.ok and not exit_zero:
        raise NegativeResult(f"{file.name}: changes need a decision: take it, or give --exit-zero")


def _facts(collection: Collection, devices: int) -> dict[str, Any]:
    members = len(collection.group.questions) if collection.group else 1
    n = max(devices // members, 1)  # each of them answers one question of the group
    quantity, error = _expected(collection, n)
    facts: dict[str, Any] = plain(
        {
            "name": collection.name,
            "fingerprint": collection.fingerprint,
            "question": collection.question,
            "model": collection.model,
            "group": collection.group,
            "n": n,
            "unit": collection.unit,
            "linkage": collection.linkage,
            "held": collection.held,
            "answers_by_consent": [
                {"from": day, "answers": answers} for day, answers in answers_by_consent(collection)
            ],
            "answers_left": describe_answers(collection),
            "figures": figures(collection),
            "mechanism": handler_of(collection.mechanism).describe(),
            "message_bits": collection.message_bits,
            "quantity": quantity.name,
            "of_shares": quantity.inputs is not None,
            "error": error,
            "counter_bytes": worst_case(collection),
            "memory": memory_at_most(collection),
            "remarks": lint(collection, n),
        }
    )
    return facts


def _expected(collection: Collection, n: int) -> tuple[Quantity, ErrorEstimate]:
    """Return how far off n answers are of the truth about themselves.

    A curator spends a period's whole budget on one release; who answers several times in it moves
    it by several answers. Of a shuffled batch covers add to the error.
    """
    quantity, epsilon = kind_of(collection).quantity, collection.unit_epsilon
    if collection.trust.releases:
        return quantity, quantity.central(epsilon / collection.per_day, n, LEVEL)
    if run := shuffled_run(collection, quantity):
        return quantity, run.error(n, LEVEL)
    return quantity, quantity.local(epsilon, n, LEVEL)


def _parts(rows: list[dict[str, Any]], n: int) -> Iterator[Part]:
    yield f"epsilon of each collection, and the expected error of {n:,} reports (95 %)"
    yield Table("", COLUMNS, [_row(row) for row in rows])
    for number, row in enumerate(rows):
        yield from [""] if number else []
        yield f"{row['name']}: {row['question']}"
        yield from (f"  {line}" for line in _details(row))


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    figures = row["figures"]
    epsilons = (number_format.epsilon(float(figures[level])) for level in ("event", "day", "user"))
    adjacency = number_format.adjacency(figures["adjacency"])
    return row["name"], *epsilons, adjacency, row["mechanism"], str(row["message_bits"])


def _details(row: dict[str, Any]) -> list[str]:
    n, group = row["n"], row["group"]
    error = number_format.around(row["error"]["half_width"], of_shares=row["of_shares"])
    scope = row["figures"]["scope"]
    return [
        f"protects {scope}",
        *([_drawn(group)] if group else []),
        *([row["answers_left"]] if row["answers_left"] else []),
        row["figures"]["device"],
        row["figures"]["server"],
        f"{row['quantity']} of n = {n:,} reports: {error}, from noise only",
        row["memory"],
        *(f"remark: {remark['key']}: {remark['text']}" for remark in row["remarks"]),
    ]


def _drawn(group: dict[str, Any]) -> str:
    questions = ", ".join(group["questions"])
    return f"group {group['name']}: each device answers one of {questions}, drawn"
