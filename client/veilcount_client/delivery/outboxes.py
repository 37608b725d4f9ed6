"""The two outboxes as one: stored reports in the state, and true values in memory.

The drawer adds true values to the one in memory; whatever else is done with either is done here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..state import ClientState, Outbox, OutboxLimits, memory_outbox
from ..state.memory_outbox import MemoryOutbox


@dataclass(frozen=True, slots=True)
class Outboxes:
    """All that waits to be sent, and how many seconds it is spread over."""

    state: ClientState
    memory: MemoryOutbox
    jitter: float
    limits: OutboxLimits = field(default_factory=OutboxLimits)

    def __iter__(self) -> Iterator[tuple[Outbox, float]]:
        """Yield each outbox with how long its reports are spread over at most."""
        yield self.state, self.jitter
        yield self.memory, min(self.jitter, memory_outbox.JITTER)

    @property
    def has_true_values(self) -> bool:
        """Whether anything waits that the end of the process would lose."""
        return self.memory.next_due() is not None

    def waiting(self, now: float) -> int:
        """Return how many reports may leave now."""
        return sum(outbox.waiting(now) for outbox, _ in self)

    def next_due(self) -> float | None:
        """Return when the next report is due."""
        dues = [outbox.next_due() for outbox, _ in self]
        return min((due for due in dues if due is not None), default=None)

    def expire(self, now: float) -> None:
        """Drop what is too old, and what the state holds over its limits."""
        self.state.expire(now, self.limits)
        self.memory.expire(now)
