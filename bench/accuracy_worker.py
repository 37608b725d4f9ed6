"""Runs in `.venv-competitors`: one competitor's estimate for each line of JSON.

A line in is {"competitor", "k", "epsilon", "people", "seed"}, `people` counts of values; a line
out is {"shares"}, or {"missing"} where the competitor is not installed.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .competitor_worker import _oracle, hadamard_response, local_hashing, unary_encoding

Shares = list[float]


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


COMPETITORS: dict[str, Callable[[int, float, list[int]], Shares]] = {
    competitor.__name__: competitor
    for competitor in (pure_oue, pure_olh, pure_hr, multi_ss, multi_oue, multi_olh)
}


def answer(request: dict[str, Any]) -> dict[str, object]:
    """Return a competitor's estimates of one population."""
    random.seed(request["seed"])
    np.random.seed(request["seed"])  # noqa: NPY002 - what the competitors draw from
    inputs = [x for x, count in enumerate(request["people"]) for _ in range(count)]
    try:
        return {
            "shares": COMPETITORS[request["competitor"]](request["k"], request["epsilon"], inputs)
        }
    except ImportError as error:
        return {"missing": str(error)}


def main() -> None:
    """Answer until there is nothing more to read."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
