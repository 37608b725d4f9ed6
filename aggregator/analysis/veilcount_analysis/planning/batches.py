"""What goes with the plan of a shuffled question: mechanisms, costs, and who comes too late.

Two adversaries, and their costs are never added: shuffler and server together learn what the
reports' own epsilons allow; the server alone, if the shuffler keeps its word, what covers leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, expm1

from veilcount_shared.mechanisms import Randomizer, SubsetSelection

from ..mechanisms import handler_of
from ..privacy.shuffled import (
    best_guess,
    composed_epsilon,
    guess_after_unlucky,
    least_covers,
    shuffled_error,
)
from ..privacy.shuffled.composed_notice import SHOWN
from .covers import CoverSolver, grace_of, least_reports
from .solvers import Solution

GRACES = (3, 7, 14)  # days: those that definitions have by default
HABITS = {"every day": 1, "every third day": 3, "every week": 7}  # days between two starts
WAIT = 3  # a report leaves at an instant of the first third of the grace
MOST_COMPARED = 256  # values: beyond, the covers of large subsets are a long search


@dataclass(frozen=True, slots=True)
class MechanismChoice:
    """A mechanism at the report's epsilon, by its error with the covers that it needs."""

    mechanism: str
    covers: int
    error: float  # half of an interval
    selected: bool  # whether definitions have it


@dataclass(frozen=True, slots=True)
class GraceLoss:
    """Which part of devices with such a habit sends too late, if a batch waits so many days."""

    starts: str
    grace: int
    lost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """A period's batch and the whole campaign; the costs of both adversaries, in this order."""

    covers: int
    least: int
    grace: int
    batches: int
    together: Fraction  # epsilon of one report, against shuffler and server
    together_in_all: Fraction
    server: Fraction  # epsilon of one batch at delta, against the server alone
    server_in_all: Fraction  # of all batches, at one delta for all of them
    guess: float  # how often the server's best guess between two values is right, on average,
    unlucky: float  # and after the least favourable outcome that is promised
    mechanisms: tuple[MechanismChoice, ...]
    lost: tuple[GraceLoss, ...]


def batch_plan(solver: CoverSolver, choice: Solution) -> BatchPlan:
    """Return the batch of a plan."""
    question, mechanism = solver.question, solver.mechanism
    batches, own = question.number_of_periods, solver.report_epsilon
    return BatchPlan(
        covers=choice.covers,
        least=least_reports(choice.devices),
        grace=grace_of(question),
        batches=batches,
        together=own,
        together_in_all=own * batches,
        server=choice.epsilon,
        server_in_all=_rounded_up(
            composed_epsilon(mechanism, choice.covers, batches, question.delta)
        ),
        guess=best_guess(mechanism, choice.covers),
        unlucky=guess_after_unlucky(float(choice.epsilon)),
        mechanisms=_compared(solver, choice),
        lost=grace_losses(tuple(sorted({*GRACES, grace_of(question)}))),
    )


def _rounded_up(epsilon: Fraction) -> Fraction:
    return Fraction(ceil(epsilon * SHOWN), SHOWN)


# -- mechanisms ------------------------------------------------------------------------------------


def _compared(solver: CoverSolver, choice: Solution) -> tuple[MechanismChoice, ...]:
    """Return the selected mechanism and its neighbours, the least error first."""
    own = solver.mechanism
    choices = [_choice(solver, choice, mechanism) for mechanism in [own, *_neighbours(own)]]
    return tuple(sorted(choices, key=lambda row: row.error))


def _neighbours(own: Randomizer) -> list[SubsetSelection]:
    """Return subsets of one value more and of one less, where values are few."""
    if not isinstance(own, SubsetSelection) or own.k > MOST_COMPARED:
        return []
    sizes = {own.w - 1, own.w + 1} & set(range(1, own.k))
    return [SubsetSelection.for_epsilon(own.epsilon, own.k, size) for size in sorted(sizes)]


def _choice(solver: CoverSolver, choice: Solution, mechanism: Randomizer) -> MechanismChoice:
    covers = least_covers(mechanism, choice.epsilon, solver.question.delta)
    scale = choice.error.half_width / shuffled_error(
        solver.mechanism, choice.devices, choice.covers
    )
    error = shuffled_error(mechanism, choice.devices, covers) * scale
    return MechanismChoice(
        handler_of(mechanism).describe(), covers, error, mechanism == solver.mechanism
    )


# -- the grace -------------------------------------------------------------------------------------


def grace_losses(graces: tuple[int, ...] = GRACES) -> tuple[GraceLoss, ...]:
    """Return who is lost, by habit and grace."""
    return tuple(
        GraceLoss(habit, grace, lost_part(grace, days))
        for habit, days in HABITS.items()
        for grace in graces
    )


def lost_part(grace: float, days: float) -> float:
    """Return which part of devices never sends within the grace; `days` lie between two starts.

    A report leaves at a drawn instant U, uniform over the first third, or with the first start
    after it. Starts come at random, so none follows until the end with probability
    exp(-(grace - U) / days); this is its mean over U.
    """
    starts = grace / days
    return WAIT / starts * exp(-starts) * expm1(starts / WAIT)
