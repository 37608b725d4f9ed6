"""The combinations of linkage, presence, measure, held, route, unit and life, as plain data.

A member of an axis is one line here. `rows.txt` covers every pair of members that occurs in a valid
combination, and every triple of the axes that the promises are about, on each of the ways that
they tell apart; what validation refuses is refused here with its reason. A measure may be a group,
which is one question: of its members a device answers one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

from veilcount_shared import Collection, parse_collections
from veilcount_shared.errors import DefinitionError

from ..client.device_fixtures import definitions_text, file

ROWS = Path(__file__).with_name("rows.txt")  # `python -m tests.matrix.cells` writes them
SEED = 6
CANDIDATES = 300  # combinations that are compared for each row
DIGEST = "a" * 64  # of a key list that nobody verifies here
#: how a device runs, and when its person records: all in the same hour, or each at their own
ALWAYS, OWN_HOURS, TWO_HOURS = "always", "own hours", "two hours a day"

Keys = Mapping[str, Any]
NUMBER: Keys = {"range": [0, 9], "measure": "mean"}
CHOICE: Keys = {"values": ["x", "y", "z"]}
SEVERAL: Keys = {**CHOICE, "choose": "several"}

LINKAGES: Mapping[str, Keys] = {
    "collection": {"linkage": "collection"},
    "period": {"linkage": "period"},
    "none": {"linkage": "none"},
    "token": {"linkage": "token", "tokens": DIGEST},
}
PRESENCES: Mapping[str, Keys] = {"public": {"presence": "public"}, "hidden": {"presence": "hidden"}}
MEASURES: Mapping[str, Keys] = {
    "first": {**CHOICE, "takes": "first"},
    "last": {**CHOICE, "takes": "last"},
    "any": {"boolean": True, "takes": "any"},
    "max": {**NUMBER, "takes": "max"},
    "sum": {**NUMBER, "takes": "sum"},
    "returning": {"boolean": True, "takes": "returning"},
    "trend": {"boolean": True, "measure": "trend", "changes": 1},
    "distribution": {"range": [0, 9], "measure": "distribution"},
    "ranges": {"range": [0, 9], "measure": "ranges"},
    "moments": {"features": {"age": [0, 99], "hours": [0, 60]}, "measure": "moments"},
    "open strings": {"values": "open"},
    "several": {**SEVERAL, "most": 2},
    "any number": SEVERAL,
    "tables": {"questions": {"a": ["x", "y"], "b": ["x", "y"]}, "tables": True},
    "group": {},
    "cross": {"boolean": True, "cross": {"plan": ["free", "paid"]}},
}
#: the keys of the members, where a question is a group
GROUPS: Mapping[str, Sequence[Keys]] = {"group": (CHOICE, {"values": ["x", "y"]})}
#: two values of each measure, and one of no kind
VALUES: Mapping[str, tuple[object, object, object]] = {
    **dict.fromkeys(("first", "last", *GROUPS), ("x", "y", object())),
    **dict.fromkeys(("several", "any number"), (["x"], ["y", "z"], object())),
    "tables": ({"a": "x", "b": "x"}, {"a": "y", "b": "y"}, "?"),
    **dict.fromkeys(("any", "returning", "trend"), (True, False, "?")),
    **dict.fromkeys(("max", "sum", "distribution", "ranges"), (2, 7, "?")),
    "moments": ({"age": 20, "hours": 5}, {"age": 80, "hours": 50}, "?"),
    "open strings": ("one", "another", None),
    "cross": ((True, "free"), (False, "paid"), "?"),
}
HELD: Mapping[str, Keys] = {
    "unstated": {},
    "process": {"held": "process"},
    "device": {"held": "device"},
}
LATE_DAYS = 60  # what an earlier client sent for a month before is counted, and seen
COVERS = {"epsilon": 0.5, "delta": 1e-6, "covers": 6}
ROUTES: Mapping[str, Keys] = {
    "direct": {"late": LATE_DAYS},
    "relay": {"late": LATE_DAYS},
    "shuffler": {"batch": {"least": 2}},
    "shuffler with covers": {"model": "shuffled", "batch": {"least": 100, **COVERS}},
}
ONE_BY_ONE = "direct or relay"  # a server has the times of reports
WAYS = (ONE_BY_ONE, *(route for route, keys in ROUTES.items() if "batch" in keys))
#: four periods each; of a user's one period, four days
UNITS: Mapping[str, Keys] = {
    "event": {"unit": "event", "per_day": 1, "from": "2026-12-01", "until": "2026-12-05"},
    "day": {"unit": "day", "from": "2026-12-01", "until": "2026-12-05"},
    "week": {"unit": "week", "from": "2026-12-07", "until": "2027-01-04"},
    "month": {"unit": "month", "from": "2026-12-01", "until": "2027-04-01"},
    "user": {"unit": "user", "from": "2026-12-01", "until": "2026-12-05"},
}
PERIODS = 4
LIVES = (ALWAYS, OWN_HOURS, TWO_HOURS)
PROMISE_AXES = "linkage", "presence", "life"


@dataclass(frozen=True, slots=True)
class Combination:
    """One combination of members, one of each axis."""

    linkage: str
    presence: str
    measure: str
    held: str
    route: str
    unit: str
    life: str

    def __str__(self) -> str:
        return ", ".join(astuple(self))

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(zip(AXES, astuple(self), strict=True))

    @property
    def is_by_shuffler(self) -> bool:
        """Whether reports reach the server in batches, not one by one."""
        return "batch" in ROUTES[self.route]

    @property
    def way(self) -> str:
        """How reports reach the server: the routes on which promises are the same."""
        return self.route if self.is_by_shuffler else ONE_BY_ONE

    @property
    def subsets(self) -> frozenset[Subset]:
        """The pairs of members in it, and what a promise is about: a triple and its way."""
        triple = (member for member in self.members if member[0] in PROMISE_AXES)
        return frozenset((*combinations(self.members, 2), (*triple, ("way", self.way))))


AXES: Mapping[str, Sequence[str]] = {
    "linkage": tuple(LINKAGES),
    "presence": tuple(PRESENCES),
    "measure": tuple(MEASURES),
    "held": tuple(HELD),
    "route": tuple(ROUTES),
    "unit": tuple(UNITS),
    "life": LIVES,
}
Member = tuple[str, str]  # an axis and one of its members
Subset = tuple[Member, ...]
Question = tuple[str, str]  # what no other one has, and its name
assert list(AXES) == [axis.name for axis in fields(Combination)]


#: rows in any case: `planted` bugs were found in them, and must be
FIRST_ROWS = (
    Combination("period", "hidden", "cross", "unstated", "direct", "month", ALWAYS),
    Combination("token", "hidden", "last", "device", "relay", "month", ALWAYS),
    Combination("none", "hidden", "returning", "device", "direct", "week", ALWAYS),
    Combination("none", "public", "distribution", "unstated", "direct", "week", ALWAYS),
    Combination("period", "public", "max", "unstated", "direct", "day", ALWAYS),
    Combination("none", "public", "first", "unstated", "relay", "day", ALWAYS),
    Combination("none", "hidden", "first", "unstated", "shuffler with covers", "day", ALWAYS),
    Combination("token", "hidden", "last", "device", "shuffler", "day", ALWAYS),
    Combination("period", "hidden", "group", "unstated", "direct", "day", ALWAYS),
)


def all_combinations() -> Iterator[Combination]:
    return (Combination(*members) for members in product(*AXES.values()))


# -- definitions -----------------------------------------------------------------------------------


def definition_keys(combination: Combination) -> dict[str, Any]:
    """Return the keys of a question of a combination, as a file states them."""
    by_axis = (LINKAGES, PRESENCES, MEASURES, HELD, ROUTES, UNITS)
    members = (getattr(combination, axis) for axis in _DEFINED)
    keys: dict[str, Any] = {}
    for table, member in zip(by_axis, members, strict=True):
        keys |= table[member]
    if "held" in keys:  # of the first value nothing waits
        keys.setdefault("takes", "last")
    if combination.linkage == "token" and combination.unit != "user":
        keys["answers"] = PERIODS - 1
    return keys


def definitions(combination: Combination, *names: str, **more: Any) -> dict[str, Collection]:
    """Return questions of a combination, parsed as a file of them would be; of a group all members.

    These are called after the group and their place in it.
    """
    keys = definition_keys(combination) | more
    members = GROUPS.get(combination.measure)
    if members is None:
        return file(**dict.fromkeys(names, keys))
    groups = {
        name: {f"{name}-{place}": {**keys, **own} for place, own in enumerate(members)}
        for name in names
    }
    text = definitions_text(
        **{name: own for group in groups.values() for name, own in group.items()}
    )
    for name, group in groups.items():
        text += f"[group.{name}]\nquestions = {json.dumps([*group])}\n"
    return parse_collections(text, lambda _: [])


def question_of(collection: Collection) -> Question:
    """Return what one person answers: a group as a whole, else the collection itself."""
    group = collection.group
    return (group.digest, group.name) if group else (collection.fingerprint, collection.name)


def member_of(collection: Collection) -> int:
    """Return which question of its group a collection is."""
    return collection.group.number(collection.name) if collection.group else 0


def refusal(combination: Combination) -> str:
    """Return why validation refuses a combination; nothing if it is valid."""
    return _refusal(*(getattr(combination, axis) for axis in _DEFINED))


def is_valid(combination: Combination) -> bool:
    return not refusal(combination)


_DEFINED = ("linkage", "presence", "measure", "held", "route", "unit")


@cache
def _refusal(*members: str) -> str:
    combination = Combination(*(*members, LIVES[0]))
    try:
        definitions(combination, "it")
    except DefinitionError as error:
        return f"{error.key}: {error.fix}"
    return ""


@cache
def valid_combinations() -> tuple[Combination, ...]:
    return tuple(filter(is_valid, all_combinations()))


@cache
def valid_subsets() -> frozenset[Subset]:
    return frozenset().union(*(combination.subsets for combination in valid_combinations()))


def refused_pairs() -> dict[Subset, str]:
    """Return the pairs that no valid combination has, each with the reason.

    It is that of a combination in which nothing else is refused, if there is one.
    """
    counts: dict[Subset, Counter[tuple[int, str]]] = {}
    for combination in all_combinations():
        refused = frozenset(combinations(combination.members, 2)) - valid_subsets()
        for pair in refused:
            counts.setdefault(pair, Counter())[len(refused), refusal(combination)] += 1
    return {pair: _reason(counts[pair]) for pair in sorted(counts)}


def _reason(counts: Mapping[tuple[int, str], int]) -> str:
    """Return the most frequent reason of the combinations with the fewest refused pairs."""
    _, reason = min(counts, key=lambda key: (key[0], -counts[key], key))
    return reason


# -- the covering array ----------------------------------------------------------------------------


@cache
def rows() -> tuple[Combination, ...]:
    """Return the rows as a file has them: choosing them takes seconds, at each start of a test."""
    return tuple(Combination(*line.split(", ")) for line in ROWS.read_text("utf-8").splitlines())


def chosen_rows(seed: int = SEED) -> tuple[Combination, ...]:
    """Return combinations that cover all valid pairs: of some candidates the best, repeatedly."""
    randomness, uncovered_subsets = Random(seed), set(valid_subsets())
    by_subset: dict[Subset, list[Combination]] = {}
    for combination in valid_combinations():
        for subset in combination.subsets:
            by_subset.setdefault(subset, []).append(combination)
    covering = list(FIRST_ROWS)
    uncovered_subsets -= set().union(*(row.subsets for row in covering))
    while uncovered_subsets:
        rarest = min(uncovered_subsets, key=lambda subset: (len(by_subset[subset]), subset))
        candidates = by_subset[rarest]
        sample = randomness.sample(candidates, min(CANDIDATES, len(candidates)))
        best = max(sample, key=lambda combination: len(combination.subsets & uncovered_subsets))
        covering.append(best)
        uncovered_subsets -= best.subsets
    for row in covering[len(FIRST_ROWS) :]:  # later ones may have covered all that it was for
        others = [other for other in covering if other != row]
        covering = covering if uncovered(others) else others
    return tuple(covering)


def uncovered(covering: Iterable[Combination]) -> frozenset[Subset]:
    """Return the valid pairs, and triples on their way, that these combinations leave out."""
    return valid_subsets() - frozenset().union(*(combination.subsets for combination in covering))


if __name__ == "__main__":
    ROWS.write_text("".join(f"{row}\n" for row in chosen_rows()), "utf-8")
