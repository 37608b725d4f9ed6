"""A question without a file: so many values, or a number between two bounds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypedDict, TypeVar

import click

from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection import Measure
from veilcount_shared.mechanisms.selection import MAX_INPUTS

from ..analysis.planning import QuestionShape, TrustModel, plan
from ..analysis.planning.plan_question import YES_OR_NO
from . import param_types

Command = TypeVar("Command", bound=Callable[..., Any])


class Asked(TypedDict):
    """What a planned question is asked about."""

    values: int | None
    range: tuple[Fraction, Fraction] | None


def domain_options(command: Command) -> Command:
    """Add --values, --range and --measure."""
    added = [
        click.option(
            "--values",
            type=click.IntRange(YES_OR_NO, MAX_INPUTS),
            help="How many values; 2 are a yes or no.",
        ),
        click.option(
            "--range",
            "bounds",
            type=param_types.EXACT,
            nargs=2,
            metavar="LOW HIGH",
            help="A number between these.",
        ),
        click.option(
            "--measure",
            type=click.Choice([each.value for each in Measure]),
            default=Measure.MEAN.value,
            show_default=True,
            help="What is asked of a number.",
        ),
    ]
    for option in reversed(added):
        command = option(command)
    return command


def domain_question(values: int | None, bounds: tuple[Fraction, Fraction] | None) -> Asked:
    """Return what was asked for: unless told, a yes or no."""
    if values is None and bounds is None:
        values = YES_OR_NO
    return Asked(values=values, range=bounds)


def collection_of(question: QuestionShape, devices: int, epsilon: Fraction) -> Collection:
    """Return the definition that a question's plan proposes."""
    planned = plan(question, trust=TrustModel.LOCAL, devices=devices, epsilon=epsilon)
    labels = map(str, range(planned.values or 0))
    (collection,) = parse_collections(planned.toml, lambda _: labels).values()
    return collection
