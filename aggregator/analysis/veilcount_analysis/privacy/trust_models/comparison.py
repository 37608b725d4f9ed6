"""Local, shuffled and central on the same question, the same n and the same unit.

All rows protect one contribution a person, with substitute adjacency: the value of an answer
is hidden, that there is one is not, so n is public everywhere and only the noise differs. Epsilon
is the definition's; an add-remove one counts twice, which the same curator's noise then amounts to.
Of a shuffled collection it is the one against the server, and its batches are rows of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil, floor
from typing import Any

from veilcount_shared import Collection
from veilcount_shared.periods import Unit

from ...releases.zcdp import largest_rho
from ...text import number_format
from ..amplification import amplified, largest_local_epsilon
from .quantity import ErrorEstimate, Quantity, with_sampling
from .running_totals import TimeComparison, compare_over_time
from .shuffled_run import ShuffledRun, shuffled_run

DELTA = Fraction(1, 10**6)
DECADES = range(-2, 3)  # the scaling is shown from a hundredth of n to a hundred times n


class TrustModelRow(StrEnum):
    """Who adds the noise, and what is held equal."""

    LOCAL = "local"
    SAME_REPORTS = "shuffled, same reports"
    SAME_GUARANTEE = "shuffled, same guarantee"
    CENTRAL = "central"
    CENTRAL_GAUSSIAN = "central, Gaussian noise"
    RUN_COVERS = "shuffled, run, covers alone"
    RUN_HONEST = "shuffled, run, honest reports"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustModelLine:
    """One row: what it promises, and how far off it is."""

    row: TrustModelRow
    device: Fraction | None  # what one report reveals to whoever receives it; None: everything
    epsilon: Fraction  # what the answer reveals to whoever sees it
    delta: Fraction
    guarantee: str
    cohort: ErrorEstimate
    population: ErrorEstimate
    devices_as_local: int  # needed for the local row's cohort error
    devices_as_central: int  # needed for the central row's


@dataclass(frozen=True, slots=True)
class ErrorPoint:
    """Cohort errors at one size: slopes -1/2 and -1 on logarithmic axes."""

    n: int
    local: float
    shuffled: float
    central: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustComparison:
    """The rows, and how they scale."""

    collection: str
    n: int
    unit: Unit
    quantity: str
    level: float
    basis: str
    adjacency: str = "substitute"
    contributions: int = 1
    lines: tuple[TrustModelLine, ...]
    scaling: tuple[ErrorPoint, ...]
    over_time: TimeComparison | None = None

    def line(self, row: TrustModelRow) -> TrustModelLine:
        """Return one row."""
        return next(line for line in self.lines if line.row is row)


@dataclass(frozen=True, slots=True)
class _Setting:
    """What all rows share."""

    quantity: Quantity
    epsilon: Fraction
    delta: Fraction
    n: int
    level: float
    sampling: float
    run: ShuffledRun | None = None

    def line(self, row: TrustModelRow, cohort: ErrorEstimate, **facts: Any) -> TrustModelLine:
        """Return a row, with the error for the population that the cohort is a sample of."""
        population = with_sampling(cohort, self.n, self.sampling, self.level)
        facts = {"epsilon": self.epsilon, "delta": Fraction(0)} | facts
        return TrustModelLine(row=row, cohort=cohort, population=population, **facts)

    @property
    def shuffled(self) -> ShuffledRun:
        """The batches that are run; rows of them are of shuffled collections alone."""
        if self.run is None:
            raise TypeError("not a shuffled collection")
        return self.run

    @property
    def local(self) -> ErrorEstimate:
        return self.quantity.local(self.epsilon, self.n, self.level)

    @property
    def central(self) -> ErrorEstimate:
        return self.quantity.central(self.epsilon, self.n, self.level)

    @property
    def gaussian(self) -> ErrorEstimate:
        return self.quantity.gaussian(self.epsilon, self.delta, self.n, self.level)

    def devices_local(self, rmse: float, device: Fraction) -> int:
        """Return how many devices at this local epsilon reach an error."""
        return ceil(self.quantity.variance(device) / rmse**2)

    def devices_central(self, rmse: float) -> int:
        """Return how many a trusted curator takes."""
        return ceil(self.quantity.central(self.epsilon, 1, self.level).rmse / rmse)

    def devices_gaussian(self, rmse: float) -> int:
        """Return how many it takes one whose noise is Gaussian."""
        return ceil(self.gaussian.times(self.n).rmse / rmse)

    def devices_shuffled(self, rmse: float) -> int:
        """Return how many it takes behind a shuffler under the central guarantee.

        The larger the local epsilon, the fewer it takes.
        """
        device = largest_local_epsilon(
            self.quantity.family,
            lambda tried: self.devices_local(rmse, tried),
            self.epsilon,
            self.delta,
        )
        return self.devices_local(rmse, device)


def compare_trust_models(
    collection: Collection,
    quantity: Quantity,
    n: int,
    *,
    frequencies: Sequence[float] | None = None,
    level: float = 0.95,
    delta: Fraction = DELTA,
) -> TrustComparison:
    """Return the rows for n reports: predicted, or with the shares that were observed."""
    if n < 1:
        raise ValueError(f"n = {n}: give at least one report")
    sampling = quantity.sampling(frequencies)
    run = shuffled_run(collection, quantity)
    epsilon = run.epsilon if run else collection.unit_epsilon * collection.substitution_factor
    setting = _Setting(quantity, epsilon, delta, n, level, sampling, run)
    return TrustComparison(
        collection=collection.name,
        n=n,
        unit=collection.unit,
        quantity=quantity.name,
        level=level,
        basis="predicted" if frequencies is None else "observed",
        lines=tuple(row(setting) for row in (*_ROWS, *(_RUN_ROWS if run else ()))),
        scaling=scaling(quantity, setting.epsilon, _sizes(n), delta=delta),
        over_time=compare_over_time(collection, quantity, n, epsilon, delta),
    )


def scaling(
    quantity: Quantity, epsilon: Fraction, sizes: Sequence[int], *, delta: Fraction = DELTA
) -> tuple[ErrorPoint, ...]:
    """Return the cohort errors of one guarantee at each size."""
    return tuple(
        ErrorPoint(
            n,
            quantity.local(epsilon, n, 0.95).rmse,
            quantity.local(largest_local_epsilon(quantity.family, n, epsilon, delta), n, 0.95).rmse,
            quantity.central(epsilon, n, 0.95).rmse,
        )
        for n in sizes
    )


def _sizes(n: int) -> list[int]:
    return sorted({max(1, round(n * 10.0**decade)) for decade in DECADES})


# -- the rows --------------------------------------------------------------------------------------


def _local(setting: _Setting) -> TrustModelLine:
    return setting.line(
        TrustModelRow.LOCAL,
        setting.local,
        device=setting.epsilon,
        guarantee=f"each report alone is {_of(setting.epsilon)}: against the server and everyone"
        " after it, with nobody trusted",
        devices_as_local=setting.n,
        devices_as_central=setting.devices_local(setting.central.rmse, setting.epsilon),
    )


def _same_reports(setting: _Setting) -> TrustModelLine:
    """The reports are those of the first row, so all errors are too."""
    bound = amplified(setting.quantity.family(setting.epsilon), setting.n, setting.delta)
    return setting.line(
        TrustModelRow.SAME_REPORTS,
        setting.local,
        device=setting.epsilon,
        epsilon=bound.epsilon,
        delta=setting.delta,
        guarantee=f"the same reports would be {_of(bound.epsilon, setting.delta)} as a batch, if"
        f" an independent shuffler stripped pseudonym, slot and timing and all {setting.n:,} were"
        f" honest; against whoever sees a report alone they stay {_of(setting.epsilon)}",
        devices_as_local=setting.n,
        devices_as_central=setting.devices_local(setting.central.rmse, setting.epsilon),
    )


def _same_guarantee(setting: _Setting) -> TrustModelLine:
    quantity = setting.quantity
    device = largest_local_epsilon(quantity.family, setting.n, setting.epsilon, setting.delta)
    return setting.line(
        TrustModelRow.SAME_GUARANTEE,
        quantity.local(device, setting.n, setting.level),
        device=device,
        delta=setting.delta,
        guarantee=f"the batch is {_of(setting.epsilon, setting.delta)} behind an independent"
        f" shuffler, where devices could answer with epsilon {float(device):g} each; a server that"
        " sees who sent what breaks it",
        devices_as_local=setting.devices_shuffled(setting.local.rmse),
        devices_as_central=setting.devices_shuffled(setting.central.rmse),
    )


def _central(setting: _Setting) -> TrustModelLine:
    return setting.line(
        TrustModelRow.CENTRAL,
        setting.central,
        device=None,
        guarantee=f"what is released is {_of(setting.epsilon)}; the curator holds every true value"
        " and is trusted with it",
        devices_as_local=setting.devices_central(setting.local.rmse),
        devices_as_central=setting.n,
    )


def _central_gaussian(setting: _Setting) -> TrustModelLine:
    """Of one release Laplace noise is smaller; Gaussian gains with the number of releases."""
    rho = largest_rho(setting.epsilon, setting.delta)
    releases = floor((setting.gaussian.rmse / setting.central.rmse) ** 2) + 1
    return setting.line(
        TrustModelRow.CENTRAL_GAUSSIAN,
        setting.gaussian,
        device=None,
        delta=setting.delta,
        guarantee=f"what is released is {_of(setting.epsilon, setting.delta)}, by"
        f" {float(rho):.4g}-zCDP; smaller than Laplace noise where {releases:,} releases or more"
        " share a period's budget; the curator holds every true value",
        devices_as_local=setting.devices_gaussian(setting.local.rmse),
        devices_as_central=setting.devices_gaussian(setting.central.rmse),
    )


def _run_covers(setting: _Setting) -> TrustModelLine:
    run = setting.shuffled
    alone = run.covers_alone
    return _run_line(
        setting,
        TrustModelRow.RUN_COVERS,
        alone,
        f"each report alone is {_of(run.own)}, against shuffler and server together; the batch is"
        f" {_of(alone, run.delta)} against the server alone, by {run.covers:,} covers, whoever else"
        " lies, if the shuffler keeps its word",
    )


def _run_honest(setting: _Setting) -> TrustModelLine:
    run = setting.shuffled
    epsilon, honest = run.among_honest(setting.n), run.honest_of(setting.n)
    return _run_line(
        setting,
        TrustModelRow.RUN_HONEST,
        epsilon,
        f"never a promise: if {honest:,} of the {setting.n:,} reports are honest, the same batch"
        f" is {_of(epsilon, run.delta)}; who sends false reports makes n",
    )


def _run_line(
    setting: _Setting, row: TrustModelRow, epsilon: Fraction, guarantee: str
) -> TrustModelLine:
    run = setting.shuffled
    return setting.line(
        row,
        run.error(setting.n, setting.level),
        device=run.own,
        epsilon=epsilon,
        delta=run.delta,
        guarantee=guarantee,
        devices_as_local=run.devices(setting.local.rmse),
        devices_as_central=run.devices(setting.central.rmse),
    )


_ROWS = (_local, _same_reports, _same_guarantee, _central, _central_gaussian)
_RUN_ROWS = (_run_covers, _run_honest)


def _of(epsilon: Fraction, delta: Fraction | None = None) -> str:
    if delta is None:
        return f"{float(epsilon):g}-DP"
    return f"({float(epsilon):g}, {number_format.delta(delta)})-DP"
