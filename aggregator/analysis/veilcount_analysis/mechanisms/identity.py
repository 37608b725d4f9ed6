"""True values for a trusted curator: counted like reports, estimated and audited by nobody."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from veilcount_shared.composition import Overlap
from veilcount_shared.errors import TrustModelError
from veilcount_shared.mechanisms import Identity

from ..series.hash_counts import DENSE_LIMIT, merge_hash_counts
from ..series.packed_rows import Counters, Packed, numbers
from .handler import MechanismHandler, handles
from .sampling import Ints


@handles(Identity)
class IdentityHandler(MechanismHandler[Identity]):
    """A message is the input itself."""

    def describe(self) -> str:
        return "none: true values, sent to a trusted curator"

    def noise_variance(self) -> float:
        """Return 0: only the curator's release adds noise."""
        return 0.0

    def reach(self) -> tuple[float, float]:
        return 1.0, 0.0

    def overlaps(self) -> tuple[Overlap, ...]:
        raise TrustModelError("identity", "true values are not randomized")

    def tally(self, rows: Packed) -> Counters:
        """Return a counter for each value, or of hashes those that occur."""
        if self.mechanism.counters <= DENSE_LIMIT:
            return super().tally(rows)
        messages = numbers(rows)
        return merge_hash_counts([np.stack([messages, np.ones_like(messages)])])

    def draw_messages(self, inputs: Ints, generator: Generator) -> Ints:  # noqa: ARG002 - nothing is drawn
        return inputs

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:  # noqa: ARG002 - nothing is drawn
        return held.copy()
