"""`veilcount contrast`: the same question under three models of trust."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.privacy.trust_models import compare_trust_models
from veilcount_analysis.query_params import params as declared
from veilcount_analysis.text.view_parts import Part
from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection import Measure

from ...queries import CONTRAST, ContrastQuery, ContrastResult, PlanQuery, plain, plan
from ...queries.contrast_view import ContrastView
from ...queries.plans import Epsilon, NumberMeasure, Range, Values
from . import options, query_source
from .output import print_result, spinner
from .query_source import struct_options

STORED = {param.name for param in declared(ContrastQuery)}  # the parameters of reports


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
    """Compare local, shuffled and central privacy on n reports.

    For collection NAME in FILE; or, without a file, for a yes-or-no question, --values or a
    --range at an --epsilon; or, with a name alone, for a collection in a --store or at a server's
    --url, on its reports. All protect one contribution a person under substitution.
    """
    query = QuestionQuery.parse(params)
    with spinner("matching guarantees"):
        if file is not None and name is None and query.epsilon is None and not file.exists():
            sent = {name: params[name] for name in STORED & set(params)}
            document = query_source.answer(CONTRAST, str(file), sent, **source)
            parts = _series(CONTRAST.decode(document))
        else:
            collection, n = _question(file, name, query)
            quantity = kind_of(collection).quantity
            comparison = compare_trust_models(
                collection, quantity, n, level=query.level, delta=query.delta
            )
            document = plain(comparison)
            parts = ContrastView.from_comparison(comparison).parts
    print_result(document, parts, as_json=as_json)


def _question(file: Path | None, name: str | None, query: QuestionQuery) -> tuple[Collection, int]:
    """Return what is compared without reports, and for how many."""
    if query.n is not None and file is not None and name is not None:
        return options.load_collection(file, name), query.n
    if query.n is not None and file is None and query.epsilon is not None:
        return query.collection(), query.n
    raise click.UsageError(
        "give --n with FILE and NAME, or with --epsilon (and --values or --range); or NAME and"
        " --store, for the reports that are there"
    )


def _series(result: ContrastResult) -> Iterator[Part]:
    for series in result.series:
        yield f"{result.collection}: {series.question} ({series.fingerprint[:12]})"
        yield from ContrastView.from_series(series).parts
