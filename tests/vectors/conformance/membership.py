"""Who may send what: of each mechanism the messages of an input, and their exact probabilities."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fractions import Fraction
from math import lcm
from typing import Any

from veilcount_shared.domain import GRID
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    DrawnBit,
    HashedStrings,
    MeanMechanism,
    Moments,
    PairTables,
    ProjectiveGeometry,
    RangeTree,
    SetSelection,
    SquareWave,
    SubsetSelection,
)
from veilcount_shared.mechanisms.square_wave import find_bucket
from veilcount_shared.randomness import WORDS

from ...enumeration import EnumeratedRandomSource, enumerate_branches, enumerate_distribution

MOST_LISTED = 70  # messages of a set; of a larger one the count and a digest
Document = dict[str, Any]


def check(document: Document) -> Document:
    """Return the document as the reference implementation computes it."""
    return {
        "about": document["about"],
        "nodes": (nodes_row(*row[:3]) for row in document["nodes"]),
        "points": (points_row(row[0]) for row in document["points"]),
        "rounding": (rounding_row(*row[:3]) for row in document["rounding"]),
        "sets": (sets_row(*row[:3]) for row in document["sets"]),
        "distributions": (distribution_row(*row[:3]) for row in document["distributions"]),
    }


def mechanism_of(epsilon: str, fields: Document) -> Any:
    """Return the mechanism of a canonical form."""
    return _DESIGNS[fields["design"]](Fraction(epsilon), fields)


def _window(epsilon: Fraction, fields: Document) -> SquareWave:
    return SquareWave(fields["M"], fields["W"], int(fields["a"]), epsilon)


def _plane(epsilon: Fraction, fields: Document) -> ProjectiveGeometry:
    k, q, t = (fields[key] for key in ("k", "q", "t"))
    return ProjectiveGeometry(k, q, t, int(fields["a"]), epsilon)


def _mean(epsilon: Fraction, fields: Document) -> MeanMechanism:
    return MeanMechanism(_window(epsilon, fields), tuple(fields["values"]))


_DESIGNS: dict[str, Any] = {
    "subset": lambda epsilon, fields: SubsetSelection(
        fields["k"], fields["w"], int(fields["a"]), epsilon
    ),
    "set": lambda epsilon, fields: SetSelection(
        fields["k"], fields["most"], fields["w"], int(fields["a"]), epsilon
    ),
    "bit": lambda epsilon, fields: DrawnBit(fields["k"], int(fields["a"]), epsilon),
    "plane": _plane,
    "mean": _mean,
    "distribution": lambda epsilon, fields: DistributionMechanism(_window(epsilon, fields)),
    "hierarchy": lambda epsilon, fields: RangeTree(
        tuple(mechanism_of(str(epsilon), level) for level in fields["levels"])
    ),
    "hashed": lambda epsilon, fields: HashedStrings(
        _plane(epsilon, fields["part"]), fields["parts"]
    ),
    "moments": lambda epsilon, fields: Moments(_mean(epsilon, fields["mean"]), fields["features"]),
    "pairs": lambda epsilon, fields: PairTables(
        tuple(fields["answers"]),
        tuple(mechanism_of(str(epsilon), subset) for subset in fields["subsets"]),
    ),
}


# -- what an input's messages are ------------------------------------------------------------------


class Inside(EnumeratedRandomSource):
    """Draws every message of an input's set: the set is always the one that is drawn from."""

    __slots__ = ()

    def bernoulli(self, numerator: int, denominator: int = WORDS) -> bool:
        """Fall inside where a threshold is drawn; a number is not rounded up."""
        return denominator == WORDS and 0 < numerator < WORDS


def sets_row(epsilon: str, fields: Document, inputs: list[Any]) -> list[Any]:
    """Return the sets of some inputs, and how long a message is."""
    mechanism = mechanism_of(epsilon, fields)
    sets = [_listed(_set(mechanism, x)) for x in inputs]
    return [epsilon, fields, inputs, sets, mechanism.bits]


def _set(mechanism: Any, x: Any) -> list[int]:
    x = packed(mechanism, x)
    return sorted(set(enumerate_branches(lambda source: mechanism.randomize(x, source), Inside)))


def packed(mechanism: Any, x: Any) -> int:
    """Return an input as one number: its parts as digits, the first the highest."""
    digits = x if isinstance(x, list) else [x]
    size = GRID + 1 if isinstance(mechanism, Moments) else getattr(mechanism, "k", 0)
    number = 0
    for digit, own in zip(digits, getattr(mechanism, "sizes", [size] * len(digits)), strict=True):
        number = number * own + digit
    return number


def _listed(messages: list[int]) -> Any:
    """Return integers, of many the count and a digest."""
    if len(messages) <= MOST_LISTED:
        return messages
    digest = hashlib.sha256(",".join(map(str, messages)).encode()).hexdigest()
    return {"count": len(messages), "sha256": digest}


def distribution_row(epsilon: str, fields: Document, x: Any) -> list[Any]:
    """Return the exact probability of each message of an input, as integers and their sum."""
    mechanism = mechanism_of(epsilon, fields)
    number = packed(mechanism, x)
    exact = enumerate_distribution(lambda source: mechanism.randomize(number, source))
    whole = lcm(*(each.denominator for each in exact.values()))
    listed = {str(message): str(int(exact[message] * whole)) for message in sorted(exact)}
    weights = listed if len(listed) <= MOST_LISTED else _listed([*map(int, listed.values())])
    return [epsilon, fields, x, weights, str(whole)]


# -- numbers ---------------------------------------------------------------------------------------


class Noted(EnumeratedRandomSource):
    """Rounds down, and notes with what probability it would have rounded up."""

    __slots__ = ("up",)

    def bernoulli(self, numerator: int, denominator: int = WORDS) -> bool:
        """Note the probability."""
        self.up = Fraction(numerator, denominator)
        return False


def rounding_row(epsilon: str, fields: Document, rounded: list[Any]) -> list[Any]:
    """Return of each point the start that it is rounded down to, and how likely up."""
    mean = _mean(Fraction(epsilon), fields)
    return [epsilon, fields, [_rounded(mean, grid) for grid, *_ in rounded]]


def _rounded(mean: MeanMechanism, grid: int) -> list[Any]:
    source = Noted([])
    start = mean.start(grid, source)
    return [grid, start, f"{source.up.numerator}/{source.up.denominator}"]


def points_row(points: list[int]) -> list[Any]:
    """Return the features of each moment of some points, and the point of the moment."""
    mechanism = Moments.for_epsilon(Fraction(5), len(points))
    x = packed(mechanism, points)
    numbered = enumerate(mechanism.moments)
    return [points, [[list(pair), mechanism.point(x, moment)] for moment, pair in numbered]]


def nodes_row(epsilon: str, fields: Document, grid: int) -> list[Any]:
    """Return the bucket of a point, its node of each level, and the first message of each."""
    tree = mechanism_of(epsilon, fields)
    bucket = find_bucket(grid)
    nodes = [tree.node(level, bucket) for level in range(len(tree.levels))]
    return [epsilon, fields, grid, bucket, nodes, list(tree.starts)]


# -- which are pinned ------------------------------------------------------------------------------


def _subsets() -> Iterator[list[Any]]:
    for epsilon, k, w, inputs in [
        ("1", 2, 1, [0, 1]),
        ("1", 5, 1, [0, 2, 4]),
        ("0.5", 4, 2, [0, 1, 2, 3]),  # a mask, as long as a list
        ("0.5", 7, 3, [0, 3, 6]),  # a mask
        ("1", 9, 2, [0, 4, 8]),  # a list
        ("2", 20, 2, [0, 10, 19]),
        ("3", 17, 3, [0, 1, 8, 16]),
    ]:
        fields = SubsetSelection.for_epsilon(Fraction(epsilon), k, w).canonical()
        yield [epsilon, fields, inputs]


def _several() -> Iterator[list[Any]]:
    """Yield sets whose inputs are masks, in each encoding, and drawn bits."""
    for epsilon, k, most, w, inputs in [
        ("1", 4, 2, 2, [0, 1, 0b1000, 0b0110]),  # a mask
        ("1", 7, 2, 2, [0, 0b100, 0b1000001]),  # a list
        ("2", 6, 3, 1, [0, 0b11, 0b101010]),  # the one member
        ("0.5", 7, 3, 3, [0b10, 0b1110000]),
    ]:
        mechanism = SetSelection.for_epsilon(Fraction(epsilon), k, most, w)
        yield [epsilon, mechanism.canonical(), inputs]
    yield ["1", DrawnBit.for_epsilon(Fraction(1), 5).canonical(), [0, 0b1, 0b10110, 0b11111]]


#: q and t: each field of 2^m elements, small primes, and the largest one in use
_GEOMETRIES = [
    *((2, 3), (2, 5), (3, 3), (3, 5), (4, 3), (4, 4), (5, 3), (7, 4), (8, 3), (11, 3), (13, 3)),
    *((16, 3), (32, 3), (53, 3), (64, 3), (128, 3), (256, 3), (2039, 3)),
]


def _planes() -> Iterator[list[Any]]:
    for q, t in _GEOMETRIES:
        points = (q**t - 1) // (q - 1)
        plane = ProjectiveGeometry.for_epsilon(Fraction(2), points, q, t)
        few = [0, 1, q, q + 1, q + 2, points // 2 + 3, points - 2, points - 1]
        inputs = list(range(points)) if points <= 21 else few
        yield ["2", plane.canonical(), inputs]


def _numbers() -> Iterator[list[Any]]:
    tree = RangeTree.for_epsilon(Fraction(2)).canonical()
    yield ["2", tree, [bucket << 24 for bucket in (0, 1, 5, 64, 100, 255)] + [GRID]]
    for epsilon, buckets in [("1", (0, 1, 128, 255)), ("5", (*range(0, 256, 6), 255))]:
        fields = DistributionMechanism.for_epsilon(Fraction(epsilon)).canonical()
        yield [epsilon, fields, [bucket << 24 for bucket in buckets]]
    for epsilon in ("1", "1.5", "4.5", "7"):
        mean = MeanMechanism.for_epsilon(Fraction(epsilon))
        yield [epsilon, mean.canonical(), [*_exact_points(mean), GRID]]


def _exact_points(mean: MeanMechanism) -> list[int]:
    """Return a point a little above each start: rounded down, it is that start."""
    first, last = mean.means[0], mean.means[-1]
    ends = [-int(-GRID * (each - first) // (last - first)) for each in mean.means]
    return ends[:-1]


def _drawn_parts() -> Iterator[list[Any]]:
    hashed = HashedStrings(ProjectiveGeometry.for_epsilon(Fraction(1), 16, 4, 3), 5)
    yield ["1", hashed.canonical(), [[0, 1, 2, 3, 4], [15, 8, 4, 2, 1]]]
    halves = HashedStrings(ProjectiveGeometry.for_epsilon(Fraction(1), 16, 3, 4), 2)
    yield ["1", halves.canonical(), [[0, 15], [15, 0], [7, 9]]]
    moments = Moments.for_epsilon(Fraction(5), 3).canonical()
    yield ["5", moments, [[0, GRID, GRID // 2], [GRID, GRID // 3, 7]]]
    for epsilon, sizes in [("1", (3, 3, 2)), ("2", (2, 3, 5))]:  # masks and members; inputs too
        pairs = PairTables.for_epsilon(Fraction(epsilon), sizes).canonical()
        yield [epsilon, pairs, [[0, 0, 0], [1, 0, 1], [0, 2, 0], [1, 2, 1]]]


def _distributions() -> Iterator[list[Any]]:
    subset = [[epsilon, fields, inputs[1]] for epsilon, fields, inputs in _subsets()]
    yield from (row for row in subset if row[1]["k"] < 10)
    yield from ([epsilon, fields, inputs[1]] for epsilon, fields, inputs in _several())
    yield from ([epsilon, fields, 5] for epsilon, fields, _ in _planes() if fields["k"] < 32)
    for epsilon in ("1", "4.5"):
        mean = MeanMechanism.for_epsilon(Fraction(epsilon)).canonical()
        yield from ([epsilon, mean, grid] for grid in (0, GRID // 3, GRID))
    hashed = list(_drawn_parts())[:2]
    yield from ([epsilon, fields, inputs[1]] for epsilon, fields, inputs in hashed)
    two = Moments.for_epsilon(Fraction(5), 2).canonical()
    yield ["5", two, [GRID // 3, GRID]]
    yield ["1", PairTables.for_epsilon(Fraction(1), (2, 3, 2)).canonical(), [1, 0, 0]]
    yield ["2", RangeTree.for_epsilon(Fraction(2)).canonical(), 100 << 24]


def inputs() -> Document:
    """Return what is pinned, without the results."""
    points = (0, 1, GRID // 7, GRID // 3, GRID // 2 - 1, GRID // 2, GRID // 4 * 3 + 5, GRID)
    means = [
        [epsilon, MeanMechanism.for_epsilon(Fraction(epsilon)).canonical()]
        for epsilon in ("0.1", "1", "1.5", "1.75", "3.5", "4.5", "5", "7")
    ]
    tree = RangeTree.for_epsilon(Fraction(4)).canonical()
    return {
        "about": ABOUT,
        "sets": [*_subsets(), *_several(), *_planes(), *_numbers(), *_drawn_parts()],
        "distributions": list(_distributions()),
        "rounding": [[*mean, [[grid] for grid in points]] for mean in means],
        "points": [[[0, GRID]], [[GRID // 3, 5, GRID - 1]], [[1, GRID // 2 + 1, GRID // 5, 77]]],
        "nodes": [
            ["4", tree, grid]
            for grid in (0, (1 << 24) - 1, 1 << 24, GRID // 2, 100 << 24, GRID - 1, GRID)
        ],
    }


ABOUT = (
    "Each row begins with epsilon and a mechanism's canonical form. `sets`: inputs, the set S_x of"
    " each, ascending (of a long one the count, and the SHA-256 of its numbers in decimals with"
    " commas between), and the bits of a message. `distributions`: an input, the exact probability"
    " of each message that can be sent, as integers (of many the count, and a digest of them in the"
    " order of the messages), and their sum. An input is the number of the"
    " input, of a range a point of the grid, of open strings the bucket of each part, of features"
    " the point of each, of questions the answer to each. In `sets` a point of a mean lies at or"
    " above a start and counts as it; what is drawn first (a level, a part, a moment, a pair) is"
    " any, so the sets of all are one."
    " `rounding`: points, of each the start below it and the probability of the next one."
    " `points`: points of features, then each moment's features and its point. `nodes`: a point,"
    " its bucket, its node of each level, the number of the first message of each level."
)
