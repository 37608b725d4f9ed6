"""Runs in `.venv-competitors`: times a client of pure-ldp, or estimates, for each line of JSON.

A line in is {"function", "arguments"}; a line out is what the function returns. A client's variance
is computed from the probabilities that the client itself uses.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .stopwatch import Stopwatch
from .variance import supported

INPUTS = 1000

Figures = dict[str, Any]
Shares = list[float]


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
def _stopwatch(client: str, k: int, epsilon: float) -> tuple[Stopwatch, int, float]:
    """Return a stopwatch of a client with 1000 of its inputs, which count from 1."""
    ready, bits, variance = CLIENTS[client](k, epsilon)
    draw = random.Random(k)
    inputs = [draw.randint(1, k) for _ in range(INPUTS)]
    return Stopwatch(ready.privatise, inputs), bits, variance


def lap(client: str, k: int, epsilon: float, budget: float) -> Figures:
    """Time a client once."""
    stopwatch, bits, variance = _stopwatch(client, k, epsilon)
    return {"us": stopwatch.microseconds(budget), "bits": bits, "variance": variance}


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


# -- estimates of a population ---------------------------------------------------------------------


def pure_oue(k: int, epsilon: float, inputs: list[int]) -> Shares:
    """pure-ldp's optimized unary encoding."""
    server = _oracle("unary_encoding").UEServer(epsilon, k, use_oue=True)
    return _pure(unary_encoding(k, epsilon)[0], server, k, inputs)


def pure_olh(k: int, epsilon: float, inputs: list[int]) -> Shares:
    """pure-ldp's optimized local hashing."""
    server = _oracle("local_hashing").LHServer(epsilon, k, use_olh=True)
    return _pure(local_hashing(k, epsilon)[0], server, k, inputs)


def pure_hr(k: int, epsilon: float, inputs: list[int]) -> Shares:
    """pure-ldp's Hadamard response."""
    server = _oracle("hadamard_response").HadamardResponseServer(epsilon, k)
    return _pure(hadamard_response(k, epsilon)[0], server, k, inputs)


def _pure(client: Any, server: Any, k: int, inputs: list[int]) -> Shares:
    """Send one report an input, which it counts from 1, and read the raw estimates."""
    for x in inputs:
        server.aggregate(client.privatise(x + 1))
    found = server.estimate_all(range(1, k + 1), suppress_warnings=True)
    return [float(share) / len(inputs) for share in found]


def multi_ss(k: int, epsilon: float, inputs: list[int]) -> Shares:
    """multi-freq-ldpy's subset selection."""
    return _multi("SS", k, epsilon, inputs)


def multi_oue(k: int, epsilon: float, inputs: list[int]) -> Shares:
    """multi-freq-ldpy's optimized unary encoding."""
    return _multi("UE", k, epsilon, inputs)


def multi_olh(k: int, epsilon: float, inputs: list[int]) -> Shares:
    """multi-freq-ldpy's optimized local hashing."""
    return _multi("LH", k, epsilon, inputs)


def _multi(name: str, k: int, epsilon: float, inputs: list[int]) -> Shares:
    """Send one report an input; its estimates have negative shares cut and add up to 1."""
    protocol = importlib.import_module(f"multi_freq_ldpy.pure_frequency_oracles.{name}")
    client, server = (getattr(protocol, f"{name}_{side}") for side in ("Client", "Aggregator_MI"))
    reports = [client(x, k, epsilon) for x in inputs]
    size = () if name == "UE" else (k,)  # unary reports have their k in them
    return [float(share) for share in server(np.array(reports), *size, epsilon)]


ESTIMATORS: dict[str, Callable[[int, float, list[int]], Shares]] = {
    estimator.__name__: estimator
    for estimator in (pure_oue, pure_olh, pure_hr, multi_ss, multi_oue, multi_olh)
}


def shares(competitor: str, k: int, epsilon: float, people: list[int], seed: int) -> Figures:
    """Return a competitor's estimates of one population; `people` are counts of values."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - what the competitors draw from
    inputs = [x for x, count in enumerate(people) for _ in range(count)]
    try:
        return {"shares": ESTIMATORS[competitor](k, epsilon, inputs)}
    except ImportError as error:
        return {"missing": str(error)}


FUNCTIONS: dict[str, Callable[..., Figures]] = {"lap": lap, "shares": shares}


def main() -> None:
    """Answer until there is nothing more to read."""
    for line in sys.stdin:
        request = json.loads(line)
        figures = FUNCTIONS[request["function"]](**request["arguments"])
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
