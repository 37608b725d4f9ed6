"""Definitions: the canonical form, its fingerprint, the selected mechanism, the compiled file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from veilcount_shared.collection import Collection, parse_collections
from veilcount_shared.collection.canonical import canonical_text
from veilcount_shared.collection.compiled import parse_compiled
from veilcount_shared.compilation import compile_collections
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    HashedStrings,
    MeanMechanism,
    RangeTree,
    select_mechanism,
)

from ...properties.definition_harness import no_values_file
from ..vector_files import require

Vector = dict[str, Any]


def filled(vector: Vector, text: str) -> str:
    """Put the list of values where the vector abbreviates it, by the rule the file states."""
    values = [f"value {number}" for number in range(vector.get("values", 0))]
    return text.replace("@values", json.dumps(values, separators=(",", ":")))


def parsed(lines: list[str]) -> dict[str, Collection]:
    """Return the collections of a file's lines."""
    return parse_collections("\n".join(lines), no_values_file)


def defined(vector: Vector) -> Collection:
    """Return the collection that the vector's TOML defines."""
    return parsed([filled(vector, line) for line in vector["toml"]])[vector["collection"]]


def definitions(document: Vector) -> Vector:
    """Return the document, if its definitions have these forms and fingerprints."""
    for vector in document["vectors"]:
        collection = defined(vector)
        form = canonical_text(collection, collection.mechanism)
        wanted = filled(vector, vector["canonical"])
        digest = hashlib.sha256(form.encode()).hexdigest()
        require(wanted, form, vector["title"])
        require([vector["fingerprint"]] * 2, [digest, collection.fingerprint], vector["title"])
    return document


def plan(rows: list[Any]) -> Iterator[list[Any]]:
    """Yield the mechanism of each number of inputs and epsilon."""
    for k, epsilon, _ in rows:
        yield [k, epsilon, select_mechanism(k, epsilon).mechanism.canonical()]


def number(rows: list[Any]) -> Iterator[list[Any]]:
    """Yield the mechanisms of a number at each epsilon."""
    for epsilon, *_ in rows:
        designs = (MeanMechanism, DistributionMechanism)
        yield [epsilon, *(each.for_epsilon(Fraction(epsilon)).canonical() for each in designs)]


def ranges(document: Vector) -> Vector:
    """Return the levels of ranges at each epsilon."""
    designs = document["designs"]
    return document | {
        "designs": (
            [each, RangeTree.for_epsilon(Fraction(each)).canonical()] for each, _ in designs
        )
    }


def hashed(rows: list[Any]) -> Iterator[list[Any]]:
    """Yield the mechanism of open strings at each epsilon."""
    for epsilon, _ in rows:
        yield [epsilon, HashedStrings.for_epsilon(Fraction(epsilon), 20, 2).canonical()]


def compiled(document: Vector) -> Vector:
    """Return the compiled file of the definitions; read back, it has the same fingerprints."""
    collections = parsed(document["toml"])
    text = compile_collections(collections.values())
    again = parse_compiled(json.dumps(document["compiled"]))
    if {name: each.fingerprint for name, each in again.items()} != {
        name: each.fingerprint for name, each in collections.items()
    }:
        raise AssertionError("the compiled file stands for other definitions")
    return document | {"compiled": json.loads(text)}


_FILE = """
app = "acme"

[theme]
question = {en = "Which theme?", de = "Welches \\"Farbschema\\"?"}
purpose = {en = "To design it.", de = "Um es zu gestalten."}
values = ["light", "dark"]
other = "rest"
labels = {de = ["hell", "dunkel", "sonst"]}
owner = "Ada Byron"
replaces = "colours"
epsilon = 1
unit = "month"

[many]
question = "How many?"
values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
epsilon = 0.25
unit = "week"
segments = {arm = ["A", "B"]}

[hours]
question = "How long?"
range = [0, 24]
measure = "ranges"
epsilon = 2
unit = "month"

[income]
question = "How much?"
range = [0, 0.5]
measure = "mean"
epsilon = 1.75
unit = "user"

[word]
question = "Which word?"
values = "open"
epsilon = 2
unit = "month"

[opened]
question = "Is it open?"
boolean = true
measure = "trend"
changes = 3
epsilon = 1
unit = "day"

[habits]
question = "What do you do?"
questions = {walk = ["no", "yes"], theme = ["light", "dark"], pets = [0, 1, 2], age = [1, 2, 3]}
tables = true
epsilon = 1
unit = "month"

[pair]
question = "Is it used?"
boolean = true
epsilon = 1
unit = "month"
twin = "curated"

[curated]
question = "Is it used?"
boolean = true
model = "central"
budget = 1
unit = "month"

[mixed]
question = "Is it used?"
boolean = true
epsilon = 4
unit = "month"
model = "shuffled"
batch = {epsilon = 1, delta = 1e-6, covers = 110}

[drawn]
question = "Is it drawn?"
boolean = true
epsilon = 1
unit = "week"

[other]
question = "Which other?"
values = [1, 2]
epsilon = 1
unit = "week"

[group.habits]
questions = ["other", "drawn"]
"""


def compiled_inputs() -> Vector:
    """Return the definitions of several kinds, and what is compiled of them."""
    lines = []
    for line in _FILE.strip().splitlines():
        lines.append(line)
        if line.startswith("unit"):
            lines += ["from = 2026-12-01", "until = 2027-12-01"]
    text = compile_collections(parsed(lines).values())
    about = "`toml`: the lines of a file. `compiled`: what `veilcount compile` makes of it."
    return {"about": about, "toml": lines, "compiled": json.loads(text)}
