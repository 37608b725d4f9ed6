"""Where noised totals cross a share of all: a quantile, and the places that noise leaves possible.

With T(v) = (answers up to v) - p (all answers), the p-quantile is the least v with T(v) >= 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def crossing(above: NDArray[Any], reach: NDArray[Any]) -> tuple[int, int, int]:
    """Return the place where T turns positive, and the first and the last that is possible.

    `reach` is how far each T's noise goes. A place is possible unless its own T, or that of the
    place before, contradicts it; only these two T can drop the true one. The place itself is where
    the nearest ascending T, midway between the largest so far and the least to come, is not below
    0. If T ends below 0, no answers are left under the noise.
    """
    if above[-1] < 0:
        return len(above) // 2, 0, len(above) - 1
    rising = np.maximum.accumulate(above) + np.minimum.accumulate(above[::-1])[::-1]
    place = int(np.argmax(rising >= 0))
    before, reach_before = np.append(-1, above[:-1]), np.append(0, reach[:-1])
    near = np.flatnonzero((above >= -reach) & (before < reach_before))
    return place, int(min(near.min(initial=place), place)), int(max(near.max(initial=place), place))
