"""How a call is timed: the same lines for ours and for theirs, in whichever process runs them.

CPU time, so that waiting for a core is not counted; a machine that changes its pace is answered by
alternation (see `randomize`), not here. The standard library only: `.venv-competitors` runs it too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import process_time
from timeit import Timer
from typing import Any, TypeVar

T = TypeVar("T")


class Stopwatch:
    """Times `call(x)`, or `call(x, randomness)`, over a list of inputs."""

    def __init__(
        self, call: Callable[..., object], inputs: Sequence[Any], randomness: object = None
    ) -> None:
        self._names = {"call": call, "randomness": randomness}
        self._call = "call(x)" if randomness is None else "call(x, randomness)"
        self._inputs = inputs
        self._calls = 0

    def microseconds(self, budget: float) -> float:
        """Return the CPU time of one call, from as many as fit into about `budget` seconds."""
        if not self._calls:
            self._calls = self._fit(budget)
        return self._seconds(self._calls) / self._calls * 1e6

    def _fit(self, budget: float) -> int:
        """Return how many calls take that long. Trying it also warms everything up."""
        calls = 1
        self._seconds(calls)
        while (taken := self._seconds(calls)) < budget / 4 or not taken:
            calls *= 2
        return max(1, round(calls * budget / taken))

    def _seconds(self, calls: int) -> float:
        whole, rest = divmod(calls, len(self._inputs))
        total = self._loop(self._inputs, whole) if whole else 0.0
        return total + (self._loop(self._inputs[:rest], 1) if rest else 0.0)

    def _loop(self, inputs: Sequence[Any], rounds: int) -> float:
        """Run the calls in one compiled loop, the garbage collector off [timeit]."""
        names = {**self._names, "inputs": inputs}
        loop = Timer(f"for x in inputs: {self._call}", timer=process_time, globals=names)
        return loop.timeit(rounds)


def timed(call: Callable[..., T], *arguments: object, **options: object) -> tuple[float, T]:
    """Return the CPU microseconds of one call, and its result."""
    begun = process_time()
    result = call(*arguments, **options)
    return (process_time() - begun) * 1e6, result


def cpu_us(call: Callable[..., object], *arguments: object, **options: object) -> float:
    """Return the CPU microseconds of one call."""
    return timed(call, *arguments, **options)[0]
