"""`veilcount plan`: any of devices, epsilon and error from the other two, and a definition."""

from __future__ import annotations

from collections.abc import Iterator

import click

from veilcount_analysis.planning import PlanResult
from veilcount_analysis.text import number_format

from ...queries import PlanQuery, plain, plan
from . import options
from .output import print_json, print_lines, print_table, print_verbatim, spinner
from .query_source import Parameters, struct_options


@click.command("plan")
@struct_options(PlanQuery)
@options.as_json
def command(*, params: Parameters, as_json: bool) -> None:
    """Compute devices, epsilon or error from the other two.

    For a yes-or-no question, or for --values, a --range, --candidates for open strings (with
    --share in place of --error) or --features. Ends with a definition to paste.
    """
    query = PlanQuery.parse(params)
    with spinner("planning"):
        planned = plan(query, options.now().date())
    if as_json:
        print_json(plain(planned))
        return
    print_table(("what", "figure", ""), _rows(planned))
    print_lines(["", f"{planned.sentence}.", ""])
    print_verbatim(planned.toml.rstrip())


def _rows(planned: PlanResult) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of the plan; the computed figure is marked."""
    shares = planned.quantity not in number_format.NUMBERS
    yield _marked(planned, "devices", f"{planned.devices:,}")
    name, figure, how = _marked(planned, "epsilon", number_format.epsilon(planned.epsilon))
    yield name, figure, f"{how}; substitution"
    if planned.device not in {None, planned.epsilon}:
        yield (
            "",
            number_format.epsilon(planned.device or 0),
            "local epsilon of each device, before shuffling",
        )
    if planned.candidates is not None and planned.detectable is not None:
        name, figure, how = _marked(planned, "share", number_format.share(planned.detectable))
        yield name, figure, f"{how}; found half of the time among {planned.candidates:,} candidates"
    half = number_format.around(planned.error.half_width, of_shares=shares)
    name, half, how = _marked(planned, "error", half)
    yield (
        name,
        half,
        how if planned.candidates is None else "of the share of a string that is found",
    )
    population = number_format.around(planned.population.half_width, of_shares=shares)
    yield "", population, "as a sample of the whole population"
    yield "level", f"{planned.level:.4g}", f"of the {planned.quantity}'s interval"
    if planned.correlation is not None:
        width = number_format.around(planned.correlation, of_shares=False)
        yield "correlation", width, "of two numbers that are spread evenly over their ranges"
    if planned.detectable is not None and planned.candidates is None:
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
    name = "over time"
    for each in planned.over_time:
        width = number_format.around(each.half_width, of_shares=True)
        yield name, width, f"at this epsilon for the whole campaign: {each.definition}"
        name = ""


def _marked(planned: PlanResult, name: str, text: str) -> tuple[str, str, str]:
    return name, text, "computed" if planned.found == name else "given"


def _all(planned: PlanResult) -> str:
    composition = planned.composition
    each = f"epsilon of {composition.answers:,} answers, one a {planned.unit}"
    if composition.specific is None or composition.specific == composition.plain:
        return each
    specific = number_format.epsilon(composition.specific)
    return f"{each} ({specific} at delta {number_format.delta(composition.delta)})"
