"""Reports: random words to messages, for clients that draw as the reference implementation does."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from veilcount_shared.collection import Collection, parse_collections
from veilcount_shared.domain import GRID
from veilcount_shared.mechanisms import Moments, TrendMechanism
from veilcount_shared.randomness import RandomSource
from veilcount_shared.schedule import draw_trend

from ...properties.definition_harness import no_values_file

Vector = dict[str, Any]


class ListedRandomSource(RandomSource):
    """Serves the words of a list."""

    def __init__(self, words: list[str]) -> None:
        self.words = [int(word) for word in words]

    def word(self) -> int:
        if not self.words:
            raise AssertionError("more words are taken than are listed")
        return self.words.pop(0)

    def taken(self, words: list[str]) -> list[str]:
        """Return the words that were taken, of those listed."""
        return words[: len(words) - len(self.words)]


def _single(definition: list[str]) -> Collection:
    return parse_collections("".join(definition), no_values_file)["q"]


def moments(document: Vector) -> Vector:
    """Return the mechanisms of features, and the message of each list of words."""
    mechanisms = [
        [epsilon, features, Moments.for_epsilon(Fraction(epsilon), features).canonical()]
        for epsilon, features, _ in document["mechanisms"]
    ]
    return {"mechanisms": mechanisms, "reports": [_moment(*row) for row in document["reports"]]}


def _moment(epsilon: str, points: list[int], words: list[str], _: int) -> list[Any]:
    mechanism = Moments.for_epsilon(Fraction(epsilon), len(points))
    randomness, place = ListedRandomSource(words), 0
    for point in points:
        place = place * (GRID + 1) + point
    message = mechanism.randomize(place, randomness)
    return [epsilon, points, randomness.taken(words), message]


def trend(document: Vector) -> Vector:
    """Return the mechanisms of trends, their messages over time, and what a secret draws."""
    mechanisms = [
        [*shape, TrendMechanism.for_epsilon(Fraction(shape[0]), *shape[1:]).canonical()]
        for *shape, _ in document["mechanisms"]
    ]
    collection = _single(document["definition"])
    states = [[secret, *_state(secret, collection)] for secret, *_ in document["states"]]
    reports = [_history(*row) for row in document["reports"]]
    return document | {"mechanisms": mechanisms, "reports": reports, "states": states}


def _state(secret: str, collection: Collection) -> tuple[int, int]:
    drawn = draw_trend(bytes.fromhex(secret), collection)
    return drawn.level, drawn.signs


def _history(shape: list[Any], values: list[int], words: list[str], _: Any) -> list[Any]:
    epsilon, periods, changes = shape
    mechanism = TrendMechanism.for_epsilon(Fraction(epsilon), periods, changes)
    randomness, sent = ListedRandomSource(words), []
    state = mechanism.draw_state(randomness)
    for period, value in enumerate(values):
        if mechanism.last_period(state.level, period) == period:
            message, state = mechanism.report(state, value, randomness)
            sent.append([period, message])
    return [shape, values, randomness.taken(words), sent]


def central_strings(document: Vector) -> Vector:
    """Return the message of each string to a curator."""
    collection = _single(document["definition"])
    return document | {"reports": [_curated(collection, *row[:2]) for row in document["reports"]]}


def _curated(collection: Collection, string: str, words: list[str]) -> list[Any]:
    randomness = ListedRandomSource(words)
    message = collection.reveal(string, randomness)
    return [string, randomness.taken(words), message, collection.pack(message).hex()]
