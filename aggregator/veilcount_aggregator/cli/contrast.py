"""`veilcount contrast`: the same question under three models of trust."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from veilcount_shared.collection import Measure

from .. import wording
from ..answers import plain
from ..contrast import Contrast, Line, Point, contrast
from ..planning import Question
from . import given, options
from .asking import collection_of, domain_options, domain_question
from .telling import tell_json, tell_lines, tell_table

COLUMNS = ("model", "one report", "the answer", "error", "as a sample", "devices as central")
SCALING = ("n", "local", "shuffled", "central")


@click.command("contrast")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.argument("name", required=False)
@click.option("--n", "n", type=given.COUNT, required=True, help="How many answers.")
@click.option("--epsilon", type=given.EPSILON, help="Without a file: what one answer may reveal.")
@domain_options
@given.level
@click.option("--delta", type=given.SHARE, default="0.000001", show_default=True)
@options.as_json
def command(
    file: Path | None,
    name: str | None,
    *,
    n: int,
    epsilon: Fraction | None,
    values: int | None,
    bounds: tuple[Fraction, Fraction] | None,
    measure: Measure,
    level: Fraction,
    delta: Fraction,
    as_json: bool,
) -> None:
    """Set local, shuffled and central side by side on n answers.

    Of collection NAME in FILE; or, without a file, of a yes or no, --values or a --range at an
    --epsilon. All protect one contribution a person with substitute adjacency.
    """
    if file is not None and name is not None:
        collection = given.load(file, name)
    elif file is None and epsilon is not None:
        question = Question(
            start=options.now().date(), **domain_question(values, bounds), measure=Measure(measure)
        )
        collection = collection_of(question, n, epsilon)
    else:
        raise click.UsageError("give FILE and NAME, or --epsilon (with --values or --range)")
    found = contrast(collection, n, level=float(level), delta=delta)
    if as_json:
        tell_json(plain(found))
    else:
        _tell(found)


def _tell(found: Contrast) -> None:
    shares = found.quantity != "mean"
    title = (
        f"{found.quantity} of n = {found.n:,} answers, {found.basis}; unit {found.unit},"
        f" {found.adjacency} adjacency, level {found.level:.4g}"
    )
    tell_lines([title, ""])
    tell_table(COLUMNS, [_row(line, shares=shares) for line in found.lines])
    tell_lines(["", *(f"{line.row}: {line.guarantee}." for line in found.lines), ""])
    tell_lines([f"root mean square error of the {found.quantity} by the number of answers"])
    tell_table(SCALING, [_point(point, shares=shares) for point in found.scaling])


def _point(point: Point, *, shares: bool) -> tuple[str, ...]:
    errors = (point.local, point.shuffled, point.central)
    return (f"{point.n:,}", *(wording.figure(each, of_shares=shares) for each in errors))


def _row(line: Line, *, shares: bool) -> tuple[str, ...]:
    answer = wording.epsilon(line.epsilon)
    return (
        line.row,
        "everything" if line.device is None else wording.epsilon(line.device),
        f"{answer}, delta {float(line.delta):g}" if line.delta else answer,
        wording.around(line.cohort.half_width, of_shares=shares),
        wording.around(line.population.half_width, of_shares=shares),
        f"{line.devices_as_central:,}",
    )
