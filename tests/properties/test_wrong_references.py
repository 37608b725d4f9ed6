"""What collections refer to: each other and value lists, refused with the key and the fix."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from veilcount_shared.definition_record import QuestionGroup
from veilcount_shared.errors import DefinitionError

from .definition_harness import COHORT, CUT, TWINS, definition_file, parse_definition, refused


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


# -- groups ----------------------------------------------------------------------------------------

PQ = '["p", "q"]'
CENTRAL = 'model = "central"'
IN_GROUP = "members of a group share it"


def grouped(tables: str, first: str = "", second: str = "") -> str:
    """Return a file with [p] and [q], and these tables of groups."""
    return f"{two(first, second)}\n{tables}"


def habits(names: str, more: str = "") -> str:
    """Return the table of a group."""
    return f"[group.habits]\nquestions = {names}\n{more}"


@pytest.mark.parametrize(
    ("tables", "key", "value", "fix"),
    [
        ("[group.habits]", "questions", None, "give a list"),
        (habits('"p"'), "questions", "p", "give a list"),
        (habits('["p"]'), "questions", ["p"], "2 to 100 collections, each once"),
        (habits('["p", "p"]'), "questions", ["p", "p"], "each once"),
        (habits(str([f"p{n}" for n in range(101)])), "questions", None, "2 to 100"),
        (habits('["p", "x"]'), "questions", "x", "collections of this file"),
        (habits('["p", 1]'), "questions", 1, "collections of this file"),
        (habits(PQ, "epsilon = 1"), "epsilon", 1, "a group has questions alone"),
        (habits(PQ) + f"[group.more]\nquestions = {PQ}", "questions", "p", "in group.habits"),
        (f"[group.2nd]\nquestions = {PQ}", "group", "2nd", "give a letter"),
        ('[group]\nquestion = "Is it?"', "group", "question", "cannot be called group"),
    ],
)
def test_a_wrong_group_is_refused(tables: str, key: str, value: object, fix: str) -> None:
    error = refused(grouped(tables))

    assert error.key == key
    assert value is None or error.value == value
    assert fix in error.fix
    assert error.collection in {"group.habits", "group.more", "group.2nd", "group.question"}


def test_a_collection_called_group_in_place_of_tables_is_refused() -> None:
    error = refused(f"group = 3\n{two('', '')}")

    assert (error.key, error.value) == ("group", 3)
    assert "[group.habits]" in error.fix


@pytest.mark.parametrize(
    ("first", "second", "key", "ours", "theirs"),
    [
        ("epsilon = 1", "epsilon = 2", "epsilon", "1", 2),
        ('unit = "week"', 'unit = "month"', "unit", '"week"', "month"),
        ("from = 2026-11-01", "", "from", "2026-11-01", date(2026, 12, 1)),
        ("", "until = 2027-11-01", "until", "2027-12-01", date(2027, 11, 1)),
        ("answers = 3", "answers = 4", "answers", "3", 4),
        ('linkage = "period"', 'linkage = "none"', "linkage", '"period"', "none"),
        ("", 'presence = "hidden"', "presence", '"public"', "hidden"),
        ('unit = "event"\nper_day = 2', 'unit = "event"', "per_day", "2", 1),
        ('takes = "last"\nheld = "process"', "", "held", '"process"', None),
        ("", "batch = {}", "linkage", '"collection"', "none"),
        ('linkage = "none"', "batch = {}", "batch", "(missing)", ...),
        ("batch = {least = 60}", "batch = {}", "batch", "{least = 60", ...),
    ],
)
def test_members_of_a_group_that_differ_are_named_with_key_and_values(
    first: str, second: str, key: str, ours: str, theirs: object
) -> None:
    error = refused(grouped(habits(PQ), first, second))

    assert (error.key, error.collection) == (key, "q")
    assert theirs in [error.value, ...]
    assert error.fix.startswith(f"[p] has {key} = {ours}")
    assert error.fix.endswith(IN_GROUP)


@pytest.mark.parametrize(
    ("lines", "key", "fix"),
    [
        (CENTRAL, "model", "no less for a drawn question"),
        (COHORT.format('"d"', 3, 0), "cohort", "a group draws who answers"),
    ],
)
def test_what_has_another_draw_or_no_noise_of_its_own_is_in_no_group(
    lines: str, key: str, fix: str
) -> None:
    error = refused(grouped(habits(PQ), lines, lines))

    assert (error.key, error.collection) == (key, "group.habits")
    assert fix in error.fix


def test_paired_collections_are_in_no_group() -> None:
    third = definition_file("boolean = true").replace('app = "acme"', "").replace("[q]", "[third]")
    tables = habits('["near", "third"]')
    error = refused(f'app = "acme"\n{LOCAL}{FAR}{third}\n{tables}')

    assert (error.key, error.value) == ("twin", "far")


def test_a_group_has_a_member_of_its_name_alone() -> None:
    group = QuestionGroup("habits", ("a", "b"), "ab" * 32)

    with pytest.raises(DefinitionError, match="it has no q"):
        replace(parse_definition("boolean = true"), group=group)
