"""No file, value or damage makes the parser raise anything but a DefinitionError."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from veilcount_shared.collection import parse_collections
from veilcount_shared.collection.toml import _READERS
from veilcount_shared.errors import DefinitionError
from veilcount_shared.kinds import DOMAIN_KEYS

from .definition_harness import CENTRAL, EVENTS, FULL, definition_file, no_values_file

RANGE = 'range = [0, 240]\nmeasure = "mean"'


class Raw(str):
    """TOML source, not a string value."""

    __slots__ = ()


def as_toml(value: object) -> str:
    """Return a value as TOML."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = (c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in value)
        return '"' + "".join(escaped) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_toml(k)} = {as_toml(v)}" for k, v in value.items()) + "}"
    return str(value)


RAWS = [
    *("nan", "inf", "-inf", "1e999999999", "-0.0", "0x" + "f" * 4000, "1_000", "0b1", "''"),
    *("2026-12-01", "2999-12-31", "0001-01-01", "9999-12-31", "2026-12-01T00:00:00Z", "07:32:00"),
    "9999-12-31T23:59:59.999999-23:59",
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
SCALARS = st.one_of(
    st.sampled_from([Raw(raw) for raw in RAWS]),
    st.sampled_from(
        ["a", "q", "month", "event", "hidden", "central", "mean", "sum", "period", "device"]
    ),
    st.integers(-(10**60), 10**60),
    st.integers(-3, 40),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: Raw(f"{x:.17e}")),
    st.booleans(),
    TEXTS,
)
KEYS = sorted({*DOMAIN_KEYS, *_READERS})
EXAMPLES = 3 * settings().max_examples  # most of them are refused at the first look
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(st.sampled_from(["draw", "of", "number", "arm"]), TEXTS), inner, max_size=4
        ),
    ),
    max_leaves=8,
)


@given(
    st.sampled_from(
        [FULL, EVENTS, CENTRAL, definition_file("boolean = true"), definition_file(RANGE)]
    ),
    st.dictionaries(st.one_of(st.sampled_from(KEYS), TEXTS), VALUES, min_size=1, max_size=3),
    st.sets(st.sampled_from(KEYS), max_size=2),
)
@settings(max_examples=EXAMPLES)
def test_any_values_of_any_types_for_any_keys_raise_nothing_but_definition_errors(
    text: str, changes: dict[str, Any], dropped: set[str]
) -> None:
    gone = {*changes, *dropped}
    kept = [line for line in text.splitlines() if line.split(" = ")[0] not in gone]
    mutated = "\n".join([*kept, *(f"{as_toml(k)} = {as_toml(v)}" for k, v in changes.items())])
    try:
        collections = parse_collections(mutated, lambda _: ["a", "b"], "bad.toml")
    except DefinitionError:
        return

    for collection in collections.values():
        assert collection.fingerprint
        assert 0 < collection.epsilon_event <= collection.epsilon_day <= collection.epsilon_user


@given(st.data())
@settings(max_examples=EXAMPLES)
def test_a_damaged_file_raises_nothing_but_definition_errors(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([FULL, EVENTS, CENTRAL]))
    start, end = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=2)))
    twice = text[start:end] * 2
    middle = data.draw(
        st.sampled_from(["", twice, "]", "=", '"', "\n", "9" * 30]) | st.text(max_size=9)
    )
    try:
        collections = parse_collections(
            text[:start] + middle + text[end:], no_values_file, "bad.toml"
        )
    except DefinitionError:
        return

    assert all(collection.fingerprint for collection in collections.values())
