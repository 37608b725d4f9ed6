"""Convolution on a grid of coprime sides is convolution, at every length."""

from __future__ import annotations

from math import gcd

import numpy as np
import pytest

from veilcount_analysis.estimation.prime_factor_fft import ASPECT, CycleGrid
from veilcount_shared.mechanisms.projective_geometry import points


def around(grid: CycleGrid, line: np.ndarray, marks: np.ndarray, precision: type) -> np.ndarray:
    """Return what the grid makes of a line and of marks that repeat themselves."""
    found = np.full(grid.length, np.nan)
    for places, values in grid.convolve(
        lambda at: line[at].astype(float), grid.repeated(marks, precision), precision
    ):
        found[places] = values
    return found


@pytest.mark.parametrize("precision", [np.complex64, np.complex128])
@pytest.mark.parametrize("length", [1, 2, 7, 13, 21, 64, 341, 1365, 2000])
def test_a_grid_convolves_around_a_circle(length: int, precision: type) -> None:
    """As adding up place by place does; primes and powers of two alike."""
    chance = np.random.default_rng(length)
    line, marks = chance.integers(0, 100, length), chance.random(length) < 0.3
    expected = [int(line @ marks[(place - np.arange(length)) % length]) for place in range(length)]

    sums = around(CycleGrid.from_length(length), line, marks, precision)

    assert np.rint(sums).tolist() == expected


@pytest.mark.parametrize("q", [2, 3, 4, 11, 43, 256])
def test_every_plane_of_any_size_has_a_grid(q: int) -> None:
    """Of coprime sides that are alike, with room for all, and hardly more than that."""
    lengths = [points(q, t) for t in range(3, 23) if points(q, t) <= 1 << 22]
    grids = list(map(CycleGrid.from_length, lengths))
    share = [grid.rows * grid.columns / (2 * grid.length - 1) for grid in grids]

    assert all(gcd(grid.rows, grid.columns) == 1 for grid in grids)
    assert all(grid.rows <= grid.columns <= ASPECT * grid.rows for grid in grids)
    assert min(share) >= 1
    assert max(share) < 1.2
    assert share[-1] < 1.01
