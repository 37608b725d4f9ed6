"""What the reports of a mean decode to, as the nearest floats, for the range [0, 1]."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from veilcount_shared.mechanisms import MeanMechanism

from .confidence_intervals import Floats


@lru_cache(maxsize=256)
def decoded_levels(mechanism: MeanMechanism) -> Floats:
    """Return the number that each level decodes to: 0 is the low end of the range, 1 the high."""
    return np.array([float(level) for level in mechanism.decoded])


@lru_cache(maxsize=256)
def transition_matrix(mechanism: MeanMechanism) -> Floats:
    """Return the probability of each level, a row for each start."""
    return np.array([[float(chance) for chance in row] for row in mechanism.transition_matrix])


@lru_cache(maxsize=256)
def least_noise(mechanism: MeanMechanism) -> float:
    """Return the least variance of one decoded report.

    Between two starts the variance is concave in the number, so the least is at a start.
    """
    decoded, rows = decoded_levels(mechanism), transition_matrix(mechanism)
    return float((rows @ decoded**2 - (rows @ decoded) ** 2).min())
