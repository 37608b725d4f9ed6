"""A trend is audited over a whole campaign, since all reports of a person together keep epsilon.

No two histories are easier to distinguish than alternations that begin one period apart: each sends
the same sign of a change where the other sends its opposite.
"""

from __future__ import annotations

from collections.abc import Callable

from veilcount_shared import RandomSource
from veilcount_shared.mechanisms import TrendMechanism

History = tuple[int, ...]  # the value at the end of each period


def history_pair(trend: TrendMechanism) -> tuple[History, History]:
    """Return the histories with the most changes, one of which begins a period later."""
    first = [min(period + 1, trend.changes) % 2 for period in range(trend.periods)]
    return tuple(first), (0, *first[:-1])


def campaign_emitter(trend: TrendMechanism, randomness: RandomSource) -> Callable[[object], bytes]:
    """Return what sends all reports of a history: its level, then the signs that can reveal it."""
    revealing = trend.changes + 1

    def emit(history: object) -> bytes:
        assert isinstance(history, tuple)  # noqa: S101 - of `history_pair`
        state, signs = trend.draw_state(randomness), 0
        reports = min(trend.reports(state.level), revealing)
        for interval in range(reports):
            last = ((interval + 1) << state.level) - 1
            message, state = trend.report(state, history[last], randomness)
            signs = signs << 1 | message & 1
        return bytes([state.level]) + signs.to_bytes(-(-revealing // 8), "big")

    return emit
