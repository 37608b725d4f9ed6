"""What goes wrong in a shuffler."""

from __future__ import annotations

from veilcount_shared.errors import VeilcountError


class ShufflerError(VeilcountError):
    """The store, its witness or its settings cannot be used as they are."""


class StateUnavailable(ShufflerError):
    """The file of states cannot be read or written just now."""


class AggregatorAway(ShufflerError):
    """The aggregator did not answer: the crowd waits."""


class NotTaken(ShufflerError):
    """The aggregator refused what was handed over, with this status."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(f"the aggregator answered {status} {problem}")
        self.status, self.problem = status, problem
