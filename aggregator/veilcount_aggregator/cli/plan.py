"""`veilcount plan`: any of devices, epsilon and error from the other two, and what to paste."""

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
from .output import tell_json, tell_lines, tell_table, tell_verbatim
from .progress import waiting
from .question_options import domain_options, domain_question


@click.command("plan")
@click.option("--devices", type=param_types.COUNT, help="How many will answer.")
@click.option("--epsilon", type=param_types.EPSILON, help="What one answer may reveal.")
@click.option(
    "--error",
    type=param_types.EXACT,
    help="Half an interval: of a share 0.02 is 2 points; of a number, its own units.",
)
@domain_options
@click.option(
    "--arms", type=click.IntRange(1, MOST_ARMS), default=1, help="2: the error of a difference."
)
@click.option(
    "--model",
    type=click.Choice([each.value for each in TrustModel]),
    default=TrustModel.LOCAL.value,
    show_default=True,
    help="Who is trusted: nobody, an independent shuffler, a curator.",
)
@click.option(
    "--unit",
    type=click.Choice([each.value for each in Unit]),
    default=Unit.MONTH.value,
    show_default=True,
)
@click.option("--periods", type=param_types.COUNT, help="In how many of them it is asked.")
@click.option("--from", "start", type=click.DateTime(["%Y-%m-%d"]), help="Its first day.")
@param_types.level
@click.option(
    "--delta",
    type=param_types.SHARE,
    default="0.000001",
    show_default=True,
    help="Behind a shuffler.",
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
    """Find devices, epsilon or error: give two of the three.

    A yes or no unless --values or --range says otherwise. Ends with the definition to paste.
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
    with waiting("planning"):
        planned = plan(
            question,
            trust=TrustModel(model),
            devices=devices,
            epsilon=epsilon,
            error=None if error is None else float(error),
        )
    if as_json:
        tell_json(plain(planned))
        return
    tell_table(("what", "figure", ""), _rows(planned))
    tell_lines(["", f"{planned.sentence}.", ""])
    tell_verbatim(planned.toml.rstrip())


def _rows(planned: PlanResult) -> Iterator[tuple[str, str, str]]:
    """Yield what belongs together; the one that was found is marked."""
    shares = planned.values is not None
    yield _marked(planned, "devices", f"{planned.devices:,}")
    name, figure, how = _marked(planned, "epsilon", number_format.epsilon(planned.epsilon))
    yield name, figure, f"{how}; by substitution"
    if planned.device not in {None, planned.epsilon}:
        yield "", number_format.epsilon(planned.device or 0), "of each device, behind the shuffler"
    yield _marked(
        planned, "error", number_format.around(planned.error.half_width, of_shares=shares)
    )
    population = number_format.around(planned.population.half_width, of_shares=shares)
    yield "", population, "as a sample of all who could be asked"
    yield "level", f"{planned.level:.4g}", f"of the {planned.quantity}'s interval"
    if planned.detectable is not None:
        yield (
            "stands out",
            number_format.share(planned.detectable),
            "the least share that can be seen",
        )
    push = number_format.figure(planned.headroom.push, of_shares=shares)
    yield (
        "fakes",
        push,
        f"what {number_format.share(float(planned.headroom.fakes))} of fakes can add",
    )
    together = planned.together
    yield "in all", number_format.epsilon(together.plain), _all(planned)
    yield "mechanism", planned.mechanism, f"{planned.bits} bit{'s' * (planned.bits != 1)} a message"
    if planned.excess is not None:
        yield "variance", number_format.excess(planned.excess), "of all randomizers of this epsilon"


def _marked(planned: PlanResult, name: str, text: str) -> tuple[str, str, str]:
    return name, text, "found" if planned.found == name else "given"


def _all(planned: PlanResult) -> str:
    together = planned.together
    each = f"epsilon of {together.answers:,} answers, one a {planned.unit}"
    if together.specific is None or together.specific == together.plain:
        return each
    return f"{each} ({number_format.epsilon(together.specific)} at delta {float(together.delta):g})"
