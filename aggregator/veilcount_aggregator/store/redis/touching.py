"""Which counters some messages touch, and how often: a tally without its zeros."""

from __future__ import annotations

from collections import Counter

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.design import Subset

from ...counting import tally
from ..contract import Bytes


def touched(collection: Collection, messages: Bytes) -> tuple[list[int], list[int]]:
    """Return the places of counters, and what to add to each."""
    design = collection.design
    if isinstance(design, Subset) and design.w > 1:  # one message touches many
        counters = tally(collection, messages)
        places = np.flatnonzero(counters)
        return places.tolist(), counters[places].tolist()
    wide = np.zeros((len(messages), 8), np.uint8)
    wide[:, 8 - messages.shape[1] :] = messages
    found = Counter(wide.view(">u8").ravel().tolist())
    return list(found), list(found.values())
