"""A load through a shuffler: it is right with a kill -9 in the middle, and finds what is wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from loadtests.through_shuffler import EnvelopeRun, problems, run_through_shuffler

TRUTH: Counter[str | None] = Counter({"light": 60, "dark": 30, None: 10})
FOUND = {
    "n": 100,
    "figures": [
        {"of": "light", "figure": 0.58, "low": 0.5, "high": 0.7},
        {"of": "dark", "figure": 0.32, "low": 0.2, "high": 0.4},
        {"of": "absent", "figure": 0.1, "low": 0.0, "high": 0.2},
    ],
}


@pytest.mark.full
def test_every_envelope_is_counted_once_though_the_shuffler_is_killed(tmp_path: Path) -> None:
    assert run_through_shuffler(EnvelopeRun(1_000, 16, 6, 1, kill=True), tmp_path) == []


@pytest.mark.parametrize(
    ("change", "left", "words"),
    [
        ({}, 0, []),
        ({"n": 99}, 0, ["n is 99, and 100 were held"]),
        ({"n": 101}, 0, ["n is 101, and 100 were held"]),
        ({}, 3, ["3 envelopes were never held"]),
        ({"figures": [{**FOUND["figures"][0], "high": 0.59}]}, 0, ["light: 0.6000 is not in"]),  # type: ignore[index] # of a row
    ],
)
def test_what_is_wrong_fails_the_run(
    change: dict[str, object], left: int, words: list[str]
) -> None:
    document = json.loads(json.dumps({"series": [{"ranges": [FOUND | change]}]}))
    found = list(problems(document, TRUTH, left))

    assert len(found) == len(words)
    assert all(word in line for word, line in zip(words, found, strict=True))
