"""What collections refer to: each other and value lists, refused with the key and the fix."""

from __future__ import annotations

import pytest

from .definition_harness import COHORT, CUT, TWINS, definition_file, refused


def two(first: str, second: str, names: tuple[str, str] = ("p", "q")) -> str:
    """Return a file with two boolean collections."""
    texts = [
        definition_file(f"boolean = true\n{lines}").replace("[q]", f"[{name}]")
        for name, lines in zip(names, (first, second), strict=True)
    ]
    return texts[0] + texts[1].replace('app = "acme"', "")


@pytest.mark.parametrize(
    ("first", "second", "key", "collection", "value", "fix"),
    [
        ("", 'replaces = "p"', "replaces", "q", "p", "still in this file"),
        (
            *('replaces = "old"', 'replaces = "old"', "replaces", "q", "old"),
            "[p] replaces it: only one collection may replace another",
        ),
        (
            *(COHORT.format('"d"', 3, 0), COHORT.format('"d"', 4, 0), "cohort.of", "p", 3),
            "[q] has of = 4 for the same draw",
        ),
    ],
)
def test_a_conflict_of_two_collections_is_named(  # noqa: PLR0917 - columns of the table
    first: str, second: str, key: str, collection: str, value: object, fix: str
) -> None:
    error = refused(two(first, second))

    assert (error.key, error.collection, error.value) == (key, collection, value)
    assert fix in error.fix


@pytest.mark.parametrize("name", ["P", "pQ", "Pq", "PQ"])
def test_names_that_differ_in_case_only_are_refused(name: str) -> None:
    """Some file systems take them for one."""
    error = refused(two("", "", (name.lower(), name)))

    assert (error.key, error.collection, error.value) == ("name", name, name)
    assert error.fix == f"[{name.lower()}] has the same name but for upper and lower case"


LOCAL, FAR = TWINS["near"], TWINS["far"]
SECOND = LOCAL.replace("[near]", "[second]")
NO_TWIN = LOCAL.replace('twin = "far"', "")
ANY = 'takes = "any"\n'
ON_DEVICE, IN_PROCESS = 'held = "device"\n', 'held = "process"\n'


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (LOCAL, "name a central collection of this file"),
        (LOCAL + NO_TWIN.replace("near", "far"), "name a central collection of this file"),
        (LOCAL + SECOND + FAR, "[near] already has this twin"),
        (NO_TWIN + FAR + 'twin = "near"', "on the local collection only"),
        (LOCAL + FAR.replace("boolean = true", "values = [1, 2]"), "same domain"),
        (LOCAL + FAR.replace('"month"', '"week"'), "same unit"),
        (LOCAL + FAR + ANY + ON_DEVICE, "same takes"),
        (LOCAL + ANY + IN_PROCESS + FAR + ANY + ON_DEVICE, "same held"),
        ((LOCAL + ANY + ON_DEVICE + FAR + ANY).replace('"month"', '"day"'), "same held"),
        (LOCAL + FAR.replace("2026-12-01", "2026-11-01"), "same from"),
        (LOCAL + FAR.replace("2027-12-01", "2027-11-01"), "same until"),
        (LOCAL + FAR + "answers = 3", "same answers"),
        (LOCAL + FAR + 'segments = {arm = ["A", "B"]}', "same segments"),
        (LOCAL + FAR + COHORT.format('"d"', 2, 0), "same cohort"),
        ((LOCAL + FAR + "per_day = 3").replace('"month"', '"event"'), "same per_day"),
    ],
)
def test_a_wrong_twin_is_refused(text: str, fix: str) -> None:
    error = refused('app = "acme"\n' + text)
    named = {"[near] already has this twin": "second", "on the local collection only": "far"}

    assert (error.key, error.file) == ("twin", "bad.toml")
    assert error.collection == named.get(fix, "near")
    assert fix in error.fix


# -- a value list in a file of its own -------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "value", "fix"),
    [
        (["a"], '["a"]', "at least two"),
        (["a", "x" * 201], CUT, "1 to 200"),
        (["a", "\ud800"], r'"\ud800"', "control characters"),
    ],
)
def test_a_wrong_value_list_is_refused_under_values_file(
    values: list[str], value: str, fix: str
) -> None:
    """As test_values_file.py has it of a file; here is what is quoted."""
    error = refused(definition_file('values_file = "v.txt"'), values)

    assert (error.key, error.collection) == ("values_file", "q")
    assert fix in error.fix
    assert str(error) == f"bad.toml [q]: values_file = {value}: {error.fix}"
