"""`veilcount contrast`: the same question under three models of trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.privacy.trust_models import compare_trust_models
from veilcount_analysis.query_params import params as declared
from veilcount_analysis.text import number_format
from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection import Measure

from ...queries import ContrastQuery, PlanQuery, contrast, plain, plan
from ...queries.plans import Epsilon, NumberMeasure, Range, Values
from . import options, query_source
from .output import print_json, print_lines, print_table, spinner
from .query_source import struct_options

Document = Mapping[str, Any]

COLUMNS = ("model", "one report", "the answer", "error", "as a sample", "devices as central")
OVER_TIME = ("model", "a period's share", "the running total, in answers", "strategy")
SCALING = ("n", "local", "shuffled", "central")


@dataclass(frozen=True, kw_only=True)
class QuestionQuery(ContrastQuery):
    """A comparison, and the question that is compared where there is neither file nor store."""

    epsilon: Epsilon = None
    values: Values = None
    range: Range = None
    measure: NumberMeasure = Measure.MEAN

    def collection(self) -> Collection:
        """Return the definition that a plan of the question proposes."""
        query = PlanQuery(
            devices=self.n,
            epsilon=self.epsilon,
            values=self.values,
            range=self.range,
            measure=self.measure,
        )
        planned = plan(query, options.now().date())
        labels = map(str, range(planned.values or 0))
        (collection,) = parse_collections(planned.toml, lambda _: labels).values()
        return collection


@click.command("contrast")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.argument("name", required=False, shell_complete=options.complete_from_file)
@struct_options(QuestionQuery)
@query_source.source_options
@options.as_json
def command(
    file: Path | None,
    name: str | None,
    *,
    params: query_source.Parameters,
    as_json: bool,
    **source: Any,
) -> None:
    """Compare local, shuffled and central privacy on n answers.

    For collection NAME in FILE; or, without a file, for a yes-or-no question, --values or a
    --range at an --epsilon; or, with a name alone, for a collection in a --store or at a server's
    --url, on its reports. All protect one contribution a person under substitution.
    """
    query = QuestionQuery.parse(params)
    if file is not None and name is None and query.epsilon is None and not file.exists():
        _print_observed(_observed(str(file), params, source), as_json=as_json)
        return
    if query.n is not None and file is not None and name is not None:
        collection = options.load_collection(file, name)
    elif query.n is not None and file is None and query.epsilon is not None:
        collection = query.collection()
    else:
        raise click.UsageError(
            "give --n with FILE and NAME, or with --epsilon (and --values or --range); or NAME and"
            " --store, for the answers that are there"
        )
    with spinner("matching guarantees"):
        quantity = kind_of(collection).quantity
        found = compare_trust_models(
            collection, quantity, query.n, level=query.level, delta=query.delta
        )
    document = plain(found)
    if as_json:
        print_json(document)
    else:
        _print(document)


def _observed(name: str, params: query_source.Parameters, source: Mapping[str, Any]) -> Document:
    known = {each.name for each in declared(ContrastQuery)}
    sent = {key: words for key, words in params.items() if key in known}
    with spinner("matching guarantees"):
        return query_source.query(
            name,
            "contrast",
            sent,
            lambda snapshot: contrast(snapshot, name, ContrastQuery.parse(sent)),
            **source,
        )


def _print_observed(document: Document, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    for each in document["series"]:
        days = f", {each['from']} to {each['to']}" if each["from"] else ""
        print_lines(
            [
                f"{document['collection']}: {each['question']}",
                f"series {each['fingerprint'][:12]}; n is {each['n_source']}{days}",
            ]
        )
        _print(each["contrast"])
        print_lines([""])


def _print(found: Document) -> None:
    shares = found["quantity"] not in number_format.NUMBERS
    title = (
        f"{found['quantity']} of n = {found['n']:,} answers, {found['basis']}; unit"
        f" {found['unit']}, {found['adjacency']} adjacency, level {found['level']:.4g}"
    )
    print_lines([title, ""])
    print_table(COLUMNS, [_row(line, shares=shares) for line in found["lines"]])
    print_lines(["", *(f"{line['row']}: {line['guarantee']}." for line in found["lines"]), ""])
    print_lines([f"root mean square error of the {found['quantity']} by the number of answers"])
    print_table(SCALING, [_point(point, shares=shares) for point in found["scaling"]])
    if over_time := found["over_time"]:
        about = f"over {over_time['periods']} periods, root mean square error of"
        print_lines(["", about])
        print_table(OVER_TIME, [_time_line(line) for line in over_time["lines"]])


def _time_line(line: Document) -> tuple[str, ...]:
    share = number_format.figure(line["share"], of_shares=True)
    return (
        line["model"],
        share,
        f"{number_format.significant(line['total'], 3)}",
        line["strategy"],
    )


def _point(point: Document, *, shares: bool) -> tuple[str, ...]:
    errors = (point[model] for model in SCALING[1:])
    return (f"{point['n']:,}", *(number_format.figure(each, of_shares=shares) for each in errors))


def _row(line: Document, *, shares: bool) -> tuple[str, ...]:
    answer, delta = number_format.epsilon(Fraction(line["epsilon"])), Fraction(line["delta"])
    return (
        line["row"],
        "everything" if line["device"] is None else number_format.epsilon(Fraction(line["device"])),
        f"{answer}, delta {number_format.delta(delta)}" if delta else answer,
        number_format.around(line["cohort"]["half_width"], of_shares=shares),
        number_format.around(line["population"]["half_width"], of_shares=shares),
        f"{line['devices_as_central']:,}",
    )
