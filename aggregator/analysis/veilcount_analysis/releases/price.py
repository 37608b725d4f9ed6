"""The price of a release, and the account that it is charged to.

A definition without delta has a budget in epsilon: costs of pure DP add up. One with delta has a
budget in rho, which Gaussian and Laplace releases share; of open strings with `noise = "laplace"`
it stays in epsilon, and delta adds up with it: a release pays of both the same part. No other pair
composes here.

Rho grows with the square of what a person gives: a person with k units in one release loses k^2
rho of it. So that what is charged to the periods a person answers in adds up to at least that, each
period pays k times its share: a person's total is the sum over its periods, whatever was released.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil

from veilcount_shared import Collection
from veilcount_shared.epsilon import EPSILON_GRAIN

from .noise_kinds import NoiseKind
from .sensitivity import person_contributions
from .zcdp import RHO_GRAIN, rho_budget, rho_of_epsilon


class Accounting(StrEnum):
    """The unit of a budget."""

    EPSILON = "epsilon"
    RHO = "rho"

    @classmethod
    def of_collection(cls, collection: Collection) -> Accounting:
        """Return the unit of a definition's budget."""
        is_pure = collection.delta is None or collection.noise is not None
        return cls.EPSILON if is_pure else cls.RHO

    @property
    def grain(self) -> int:
        """How many charges are 1."""
        return EPSILON_GRAIN if self is Accounting.EPSILON else RHO_GRAIN


def period_budget(collection: Collection) -> Fraction:
    """Return what all releases of one period may cost together, in the definition's unit."""
    if Accounting.of_collection(collection) is Accounting.EPSILON:
        return collection.unit_epsilon
    return rho_budget(collection.unit_epsilon, conversion_delta(collection))


def conversion_delta(collection: Collection) -> Fraction:
    """Return the delta that rho is converted with: of open strings half of the definition's."""
    if Accounting.of_collection(collection) is Accounting.EPSILON:
        return Fraction(0)
    delta = collection.delta or Fraction(0)
    return delta / 2 if collection.true_cells.is_hashed else delta


def threshold_delta(collection: Collection) -> Fraction:
    """Return the chance that a period's thresholds together let a string of one person pass.

    In all periods that a person answers in it is what conversion leaves of the delta. Releases
    share it as they share the budget, so an account of the budget is one of it as well: deltas add
    up, also of releases that were chosen after the results of others [BS16, section 8].
    """
    left = (collection.delta or Fraction(0)) - conversion_delta(collection)
    return left / collection.answering


@dataclass(frozen=True, slots=True)
class ReleaseCost:
    """What a release costs one unit: epsilon, with Laplace noise, or rho, with Gaussian."""

    noise: NoiseKind
    amount: Fraction

    @property
    def epsilon(self) -> Fraction | None:
        """The epsilon of one unit; None: the release is not pure DP."""
        return self.amount if self.noise is NoiseKind.LAPLACE else None

    @property
    def rho(self) -> Fraction:
        """The rho of one unit."""
        return rho_of_epsilon(self.amount) if self.epsilon is not None else self.amount

    def charge(self, collection: Collection, periods: range) -> int:
        """Return what each period pays, in grains of the definition's unit, rounded up."""
        if Accounting.of_collection(collection) is Accounting.EPSILON:
            return int(self.amount * EPSILON_GRAIN)  # whole: an epsilon is in millionths
        together = person_contributions(collection, periods) * collection.per_day
        return ceil(self.rho * together * RHO_GRAIN)
