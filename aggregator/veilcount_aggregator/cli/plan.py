"""`veilcount plan`: any of devices, epsilon and error from the other two, and a definition."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction

import click

from veilcount_shared.collection import Measure
from veilcount_shared.periods import Unit

from ..analysis.planning import PlanResult, QuestionShape, TrustModel, plan
from ..analysis.planning.plan_question import MOST_ARMS
from ..queries import plain
from ..text import number_format
from . import options, param_types
from .output import print_json, print_lines, print_table, print_verbatim, spinner
from .question_options import domain_options, domain_question


@click.command("plan")
@click.option("--devices", type=param_types.COUNT, help="Number of devices that answer.")
@click.option("--epsilon", type=param_types.EPSILON, help="Epsilon of one answer.")
@click.option(
    "--error",
    type=param_types.EXACT,
    help="Half the width of the interval: of a share 0.02 is 2 points; of a number, in its units.",
)
@domain_options
@click.option(
    "--arms",
    type=click.IntRange(1, MOST_ARMS),
    default=1,
    help="2: the error is that of a difference between two arms.",
)
@click.option(
    "--model",
    type=click.Choice([each.value for each in TrustModel]),
    default=TrustModel.LOCAL.value,
    show_default=True,
    help="Trust model: local, an independent shuffler, a central curator.",
)
@click.option(
    "--unit",
    type=click.Choice([each.value for each in Unit]),
    default=Unit.MONTH.value,
    show_default=True,
)
@click.option("--periods", type=param_types.COUNT, help="Number of periods.")
@click.option("--from", "start", type=click.DateTime(["%Y-%m-%d"]), help="The first UTC day.")
@options.level
@click.option(
    "--delta",
    type=param_types.PROPORTION,
    default="0.000001",
    show_default=True,
    help="Delta of shuffled privacy.",
)
@options.as_json
def command(
    *,
    devices: int | None,
    epsilon: Fraction | None,
    error: Fraction | None,
    values: int | None,
    bounds: tuple[Fraction, Fraction] | None,
    measure: Measure,
    arms: int,
    model: TrustModel,
    unit: Unit,
    periods: int | None,
    start: datetime | None,
    level: Fraction,
    delta: Fraction,
    as_json: bool,
) -> None:
    """Compute devices, epsilon or error from the other two.

    For a yes-or-no question, or for --values or a --range. Ends with a definition to paste.
    """
    first: date = (start or options.now()).date()
    question = QuestionShape(
        start=first,
        **domain_question(values, bounds),
        measure=Measure(measure),
        unit=Unit(unit),
        periods=periods,
        arms=arms,
        level=float(level),
        delta=delta,
    )
    with spinner("planning"):
        planned = plan(
            question,
            trust=TrustModel(model),
            devices=devices,
            epsilon=epsilon,
            error=None if error is None else float(error),
        )
    if as_json:
        print_json(plain(planned))
        return
    print_table(("what", "figure", ""), _rows(planned))
    print_lines(["", f"{planned.sentence}.", ""])
    print_verbatim(planned.toml.rstrip())


def _rows(planned: PlanResult) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of the plan; the computed figure is marked."""
    shares = planned.values is not None
    yield _marked(planned, "devices", f"{planned.devices:,}")
    name, figure, how = _marked(planned, "epsilon", number_format.epsilon(planned.epsilon))
    yield name, figure, f"{how}; substitution"
    if planned.device not in {None, planned.epsilon}:
        yield (
            "",
            number_format.epsilon(planned.device or 0),
            "local epsilon of each device, before shuffling",
        )
    yield _marked(
        planned, "error", number_format.around(planned.error.half_width, of_shares=shares)
    )
    population = number_format.around(planned.population.half_width, of_shares=shares)
    yield "", population, "as a sample of the whole population"
    yield "level", f"{planned.level:.4g}", f"of the {planned.quantity}'s interval"
    if planned.detectable is not None:
        yield (
            "detectable",
            number_format.share(planned.detectable),
            "smallest share that is significant",
        )
    push = number_format.figure(planned.headroom.push, of_shares=shares)
    yield (
        "poisoning",
        push,
        f"largest bias by {number_format.share(float(planned.headroom.fakes))} fake reports",
    )
    composition = planned.composition
    yield "user", number_format.epsilon(composition.plain), _all(planned)
    yield "mechanism", planned.mechanism, f"{planned.bits} bit{'s' * (planned.bits != 1)} a message"
    if planned.excess is not None:
        yield "variance", number_format.excess(planned.excess), "of all randomizers of this epsilon"


def _marked(planned: PlanResult, name: str, text: str) -> tuple[str, str, str]:
    return name, text, "computed" if planned.found == name else "given"


def _all(planned: PlanResult) -> str:
    composition = planned.composition
    each = f"epsilon of {composition.answers:,} answers, one a {planned.unit}"
    if composition.specific is None or composition.specific == composition.plain:
        return each
    specific = number_format.epsilon(composition.specific)
    return f"{each} ({specific} at delta {float(composition.delta):g})"
