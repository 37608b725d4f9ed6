"""A cell of two questions: coded jointly with the whole epsilon, and of two answers with half."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from veilcount_analysis.estimation.estimator import IntervalTarget
from veilcount_analysis.mechanisms.pair_tables import PairTablesHandler
from veilcount_analysis.mechanisms.subset_selection import SubsetSelectionHandler
from veilcount_shared.mechanisms import PairTables, SubsetSelection, select_mechanism

from .measured_figures import Measured, intervals

EPSILON, ANSWERS = Fraction(1), 5
SIZES = (2_000, 20_000, 200_000)
ROUNDS_A_TABLE = 20  # of 25 cells each
ALPHA = 0.05


def table_cells(rounds: int) -> Iterator[Measured]:
    """Estimate the cells of two questions with five answers each, evenly spread."""
    handler = PairTablesHandler(PairTables.for_epsilon(EPSILON, (ANSWERS, ANSWERS)))
    even = np.full(ANSWERS**2, 1 / ANSWERS**2)
    for n in SIZES:
        generator, points, ends = np.random.default_rng(n), [], []
        for _ in range(rounds // ROUNDS_A_TABLE):
            held = generator.multinomial(n, even)
            for table in handler.tables(handler.draw_counters(held, generator)) or ():
                points.append(table.cells.points)
                ends.append(table.cells.interval(ALPHA, IntervalTarget.POPULATION))
        low, high = np.swapaxes(np.array(ends), 0, 1)
        yield intervals("cell of two questions, one pair", n, np.array(points), (low, high), even)


def split_cells(rounds: int) -> Iterator[Measured]:
    """Estimate the same cells from two answers with half of epsilon each."""
    mechanism = select_mechanism(ANSWERS, EPSILON / 2).mechanism
    assert isinstance(mechanism, SubsetSelection)
    for n in SIZES:
        generator = np.random.default_rng(n)
        errors = [
            _split(mechanism, n, generator) - 1 / ANSWERS**2
            for _ in range(rounds // ROUNDS_A_TABLE)
        ]
        error = float(np.sqrt(np.mean(np.square(errors))))
        yield Measured("cell of two questions, epsilon / 2 each", n, error)


def _split(mechanism: SubsetSelection, n: int, generator: Generator) -> np.ndarray:
    """Return the cells: means of the product of both debiased supports."""
    one, two = (_supports(mechanism, n, generator) for _ in range(2))
    product: np.ndarray = one.T @ two / n
    return product


def _supports(mechanism: SubsetSelection, n: int, generator: Generator) -> np.ndarray:
    answers = generator.integers(ANSWERS, size=n)
    rows = SubsetSelectionHandler(mechanism).draw_rows(answers, generator)
    held = np.unpackbits(rows[:, ::-1], axis=1, count=ANSWERS, bitorder="little")
    debiased: np.ndarray = (held - float(mechanism.Q)) / float(mechanism.P - mechanism.Q)
    return debiased
