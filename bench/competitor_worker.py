"""Runs in `.venv-competitors`: times one client of pure-ldp for each line of JSON it is given.

A line in is {"client", "k", "epsilon", "budget"}; a line out is {"us", "bits", "variance"}. What is
known of a client's accuracy is computed from the probabilities that the client itself uses.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from .stopwatch import Stopwatch
from .variance import supported

INPUTS = 1000


@dataclass(frozen=True)
class Competitor:
    """One configured client."""

    stopwatch: Stopwatch
    bits: int
    variance: float

    def lap(self, budget: float) -> dict[str, float]:
        """Time it once."""
        us = self.stopwatch.microseconds(budget)
        return {"us": us, "bits": self.bits, "variance": self.variance}


def direct_encoding(k: int, epsilon: float) -> tuple[Any, int, float]:
    """k-ary randomized response."""
    client = _oracle("direct_encoding").DEClient(epsilon, k)
    return client, (k - 1).bit_length(), supported(k, client.p, client.q)


def local_hashing(k: int, epsilon: float) -> tuple[Any, int, float]:
    """Optimized local hashing; the message is the hash's 63-bit seed and its value."""
    client = _oracle("local_hashing").LHClient(epsilon, k, use_olh=True)
    bits = sys.maxsize.bit_length() + (client.g - 1).bit_length()
    return client, bits, supported(k, client.p, 1 / client.g)


def unary_encoding(k: int, epsilon: float) -> tuple[Any, int, float]:
    """Optimized unary encoding; the message is a bit for each of the k inputs."""
    client = _oracle("unary_encoding").UEClient(epsilon, k, use_oue=True)
    return client, k, supported(k, client.p, client.q)


def hadamard_response(k: int, epsilon: float) -> tuple[Any, int, float]:
    """Hadamard response: one block up to epsilon 1, several above."""
    oracle = _oracle("hadamard_response")
    hashes = oracle.HadamardResponseServer(epsilon, k).get_hash_funcs()
    client = oracle.HadamardResponseClient(epsilon, k, hashes)
    if epsilon <= 1:
        return client, client.hr.outbit, supported(k, 1 - client.hr.pri_para, 1 / 2)
    return client, client.hr.outbit, _in_blocks(k, client.hr)


def _in_blocks(k: int, hr: Any) -> float:
    """Return the variance with B blocks, where a report adds +1, -1 (same block) or 0 to an input.

    With c = 2B - 1 + e a report is uniform with probability 2B / c, else +1 for its input; the
    estimate is c / (e - 1) times the mean of these counts [ASZ19]. The last used block may be
    partly filled, and some are never used.
    """
    c, padding = 2 * hr.part - 1 + hr.exp, hr.partsz - 1
    filled = [min(padding, k - start) for start in range(0, k, padding)]
    same_block = sum((size / k) ** 2 for size in filled)
    square = (1 - 2 * hr.part / c) * same_block + 2 / c
    mean = (hr.exp - 1) / c / k
    return float((square - mean**2) * (c / (hr.exp - 1)) ** 2)


CLIENTS: dict[str, Callable[[int, float], tuple[Any, int, float]]] = {
    client.__name__: client
    for client in (direct_encoding, local_hashing, unary_encoding, hadamard_response)
}


@cache
def competitor(client: str, k: int, epsilon: float) -> Competitor:
    """Return a client with 1000 of its inputs, which count from 1."""
    ready, bits, variance = CLIENTS[client](k, epsilon)
    draw = random.Random(k)
    return Competitor(
        Stopwatch(ready.privatise, [draw.randint(1, k) for _ in range(INPUTS)]), bits, variance
    )


@cache
def _oracle(name: str) -> ModuleType:
    """Import one mechanism without its siblings, one of which needs undeclared packages."""
    place = "pure_ldp.frequency_oracles"
    if place not in sys.modules:
        parent = ModuleType(place)
        found = importlib.import_module("pure_ldp").__file__ or ""
        parent.__path__ = [str(Path(found).parent / "frequency_oracles")]
        sys.modules[place] = parent
    return importlib.import_module(f"{place}.{name}")


def main() -> None:
    """Answer until there is nothing more to read."""
    for line in sys.stdin:
        request = json.loads(line)
        lap = competitor(request["client"], request["k"], request["epsilon"]).lap(request["budget"])
        print(json.dumps(lap), flush=True)


if __name__ == "__main__":
    main()
