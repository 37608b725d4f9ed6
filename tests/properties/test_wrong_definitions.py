"""What is wrong is said by file, collection, key, value and fix; nothing else ever escapes."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.test_collections import CENTRAL, EVENTS, FULL, TWINS, file
from veilcount_shared.collection import parse_collections
from veilcount_shared.errors import DefinitionError

BOOLEAN = "boolean = true"
RANGE = 'range = [0, 240]\nmeasure = "mean"'
CURATED = 'boolean = true\nmodel = "central"'
LONG = "x" * 201
CUT = '"' + "x" * 76 + "..."
MANY = ", ".join(map(str, range(1001)))

#: (the lines of [q], the key that is named, the value as the message shows it, a piece of the fix)
WRONG_LINES = [
    # keys
    (f"{BOOLEAN}\nepsilom = 1", "epsilom", "1", "did you mean epsilon?"),
    (f"{BOOLEAN}\nlinkages = 1", "linkages", "1", "did you mean linkage?"),
    (f"{BOOLEAN}\nxyzzy = 'no'", "xyzzy", '"no"', "unknown key: remove it"),
    (f"{BOOLEAN}\nstart = 2026-12-01", "start", "2026-12-01", "unknown key"),
    # numbers that are no epsilon
    (f"{BOOLEAN}\nepsilon = 0", "epsilon", "0", "above 0"),
    (f"{BOOLEAN}\nepsilon = 0.0", "epsilon", "0", "above 0"),
    (f"{BOOLEAN}\nepsilon = -1", "epsilon", "-1", "above 0"),
    (f"{BOOLEAN}\nepsilon = 16.000001", "epsilon", "16.000001", "at most 16"),
    (f"{BOOLEAN}\nepsilon = 17", "epsilon", "17", "at most 16"),
    (f"{BOOLEAN}\nepsilon = nan", "epsilon", "nan", "give a number, finite"),
    (f"{BOOLEAN}\nepsilon = -inf", "epsilon", "-inf", "give a number, finite"),
    (f"{BOOLEAN}\nepsilon = inf", "epsilon", "inf", "give a number, finite"),
    (f"{BOOLEAN}\nepsilon = '1'", "epsilon", '"1"', "give a number"),
    (f"{BOOLEAN}\nepsilon = true", "epsilon", "true", "give a number"),
    (f"{BOOLEAN}\nepsilon = 1e999999999", "epsilon", "1e999999999", "ordinary length"),
    (f"{BOOLEAN}\nepsilon = 1e-999999999", "epsilon", "1e-999999999", "ordinary length"),
    (f"{BOOLEAN}\nepsilon = 1.{'0' * 99}", "epsilon", f"1.{'0' * 75}...", "ordinary length"),
    (f"{BOOLEAN}\nepsilon = 1{'0' * 60}", "epsilon", "1" + "0" * 60, "ordinary length"),
    (f"{BOOLEAN}\nepsilon = 0.1234567", "epsilon", "1234567/10000000", "six decimals"),
    (f"{BOOLEAN}\nepsilon = [1]", "epsilon", "[1]", "give a number"),
    (f"{BOOLEAN}\nepsilon = {{event = 1}}", "epsilon", "{event = 1}", "give a number"),
    (
        f"{BOOLEAN}\nepsilon = {{a = [true, 0.5], b = {{c = 'd'}}}}",
        "epsilon",
        '{a = [true, 0.5], b = {c = "d"}}',
        "give a number",
    ),
    # labels
    ('values = ["a", "b", "a"]', "values", '"a"', "twice"),
    ("values = [1, 2, 1]", "values", "1", "twice"),
    ('values = ["a", 1]', "values", '["a", 1]', "all strings or all integers"),
    ("values = [1, 1.5]", "values", "[1, 1.5]", "all strings or all integers"),
    ("values = [0.5, 1.5]", "values", "0.5", "a string or an integer"),
    ("values = [inf, nan]", "values", "inf", "a string or an integer"),
    ("values = [true, false]", "values", "true", "a string or an integer"),
    ("values = [[1], [2]]", "values", "[1]", "a string or an integer"),
    ("values = [{a = 1}, {a = 2}]", "values", "{a = 1}", "a string or an integer"),
    ("values = [2026-12-01, 2026-12-02]", "values", "2026-12-01", "a string or an integer"),
    ("values = []", "values", "[]", "at least two"),
    ('values = ["a"]', "values", '["a"]', "at least two"),
    ('values = ["a", ""]', "values", '""', "1 to 200 characters"),
    ('values = ["a", " b"]', "values", '" b"', "no space around"),
    ('values = ["a", "b "]', "values", '"b "', "no space around"),
    (r'values = ["a", "b\tc"]', "values", r'"b\tc"', "control characters"),
    (r'values = ["a", "b\u0000c"]', "values", r'"b\u0000c"', "control characters"),
    (r'values = ["a", "b\u202Ec"]', "values", r'"b\u202ec"', "control characters"),
    (r'values = ["a", "e\u0301"]', "values", '"e\u0301"', "normal form C"),
    (f'values = ["a", "{LONG}"]', "values", CUT, "1 to 200 characters"),
    (f"values = [1, {2**53}]", "values", str(2**53), "2^53"),
    (f"values = [1, -{2**53}]", "values", str(-(2**53)), "2^53"),
    ('values = "a"', "values", '"a"', "give a list"),
    ("values = {a = 1}", "values", "{a = 1}", "give a list"),
    ("boolean = false", "boolean", "false", "boolean = true"),
    ("boolean = 1", "boolean", "1", "boolean = true"),
    ('values = ["a", "b"]\nrange = [0, 1]', "values", '["values", "range"]', "exactly one of"),
    (f'{BOOLEAN}\nvalues_file = "v"', "values", '["values_file", "boolean"]', "exactly one of"),
    ("", "values", "(missing)", "exactly one of"),
    ("values_file = 1", "values_file", "1", "give a string"),
    # other
    (f'{BOOLEAN}\nother = "else"', "other", '"else"', "no meaning for a boolean"),
    (f'{RANGE}\nother = "else"', "other", '"else"', "no meaning for a range"),
    ('values = ["a", "b"]\nother = "a"', "other", '"a"', "not in values"),
    ('values = ["a", "b"]\nother = ""', "other", '""', "1 to 200 characters"),
    ('values = ["a", "b"]\nother = true', "other", "true", "give a string"),
    ('values = ["a", "b"]\nother = nan', "other", "nan", "give a string"),
    # cross
    (f'{RANGE}\ncross = {{p = ["a", "b"]}}', "cross", '{p = ["a", "b"]}', "no meaning for a range"),
    (f'{BOOLEAN}\ncross = ["a", "b"]', "cross", '["a", "b"]', "give a table"),
    (f"{BOOLEAN}\ncross = {{}}", "cross", "{}", "give a table"),
    (f'{BOOLEAN}\ncross = {{p = ["a"]}}', "cross.p", '["a"]', "at least two"),
    (f'{BOOLEAN}\ncross = {{p = ["a", "a"]}}', "cross.p", '"a"', "twice"),
    (f'{BOOLEAN}\ncross = {{p = "a"}}', "cross.p", '"a"', "give a list"),
    (f'{BOOLEAN}\ncross = {{"a b" = [1, 2]}}', "cross", '"a b"', "give a letter"),
    (
        f"values = [{MANY}]\ncross = {{p = [{MANY}]}}",
        "cross",
        str(1001 * 1001),
        "at most 1,000,000 combinations",
    ),
    # range and measure
    ("range = [240, 0]\nmeasure = 'mean'", "range", "[240, 0]", "low below high"),
    ("range = [0.5, -1.25]\nmeasure = 'mean'", "range", "[0.5, -1.25]", "low below high"),
    ("range = [5, 5.0]\nmeasure = 'mean'", "range", "[5, 5]", "low below high"),
    ("range = [0, 120, 240]\nmeasure = 'mean'", "range", "[0, 120, 240]", "give two numbers"),
    ("range = [240]\nmeasure = 'mean'", "range", "[240]", "give two numbers"),
    ("range = 240\nmeasure = 'mean'", "range", "240", "give two numbers"),
    ('range = ["a", "b"]\nmeasure = "mean"', "range", '"a"', "give a number"),
    ("range = [0, inf]\nmeasure = 'mean'", "range", "inf", "give a number, finite"),
    ("range = [0, 1e50]\nmeasure = 'mean'", "range", "1" + "0" * 50, "ordinary length"),
    ("range = [false, true]\nmeasure = 'mean'", "range", "false", "give a number"),
    ("range = [0, 240]", "measure", "(missing)", 'measure = "mean"'),
    (f'{BOOLEAN}\nmeasure = "mean"', "measure", '"mean"', "only for a range"),
    ("range = [0, 1]\nmeasure = 'median'", "measure", '"median"', '"mean", "distribution"'),
    ("range = [0, 1]\nmeasure = 1", "measure", "1", '"mean", "distribution"'),
    # dates
    (f"{BOOLEAN}\nuntil = 2026-11-30", "until", "2026-11-30", "a day after from"),
    (f"{BOOLEAN}\nuntil = 2026-12-01", "until", "2026-12-01", "a day after from"),
    (
        f"{BOOLEAN}\nfrom = 2026-12-01T00:00:00Z",
        "from",
        "2026-12-01 00:00:00+00:00",
        "UTC date without quotes",
    ),
    (
        f"{BOOLEAN}\nuntil = 2027-12-01T00:00:00",
        "until",
        "2027-12-01 00:00:00",
        "UTC date without quotes",
    ),
    (f"{BOOLEAN}\nfrom = 12:00:00", "from", "12:00:00", "UTC date without quotes"),
    (f'{BOOLEAN}\nfrom = "2026-12-01"', "from", '"2026-12-01"', "UTC date without quotes"),
    (f"{BOOLEAN}\nfrom = 2026", "from", "2026", "UTC date without quotes"),
    (f"{BOOLEAN}\nfrom = 1999-12-31", "from", "1999-12-31", "year 2000 to 2999"),
    (f"{BOOLEAN}\nuntil = 3000-01-01", "until", "3000-01-01", "year 2000 to 2999"),
    (f"{BOOLEAN}\nuntil = 2126-12-03", "until", "2126-12-03", "100 years at most"),
    # counts
    (f"{BOOLEAN}\nanswers = 0", "answers", "0", "give 1 to 12, the number of months"),
    (f"{BOOLEAN}\nanswers = -1", "answers", "-1", "give 1 to 12"),
    (f"{BOOLEAN}\nanswers = 13", "answers", "13", "give 1 to 12"),
    (f"{BOOLEAN}\nanswers = 1.0", "answers", "1", "whole number"),
    (f'{BOOLEAN}\nunit = "event"\nanswers = 366', "answers", "366", "365, the number of days"),
    (f'{BOOLEAN}\nunit = "user"\nanswers = 2', "answers", "2", "1, the number of campaigns"),
    (f"{BOOLEAN}\nper_day = 2", "per_day", "2", "a month has one answer"),
    (f'{BOOLEAN}\nunit = "event"\nper_day = 0', "per_day", "0", "1 to 1,024"),
    (f'{BOOLEAN}\nunit = "event"\nper_day = 1025', "per_day", "1025", "1 to 1,024"),
    (f'{BOOLEAN}\nunit = "event"\nper_day = true', "per_day", "true", "whole number"),
    (f"{BOOLEAN}\nlate = -1", "late", "-1", "0 to 365"),
    (f"{BOOLEAN}\nlate = 366", "late", "366", "0 to 365"),
    (f"{BOOLEAN}\nlate = 0x{'f' * 5000}", "late", "(a number of thousands of digits)", "0 to 365"),
    (f'{BOOLEAN}\nlate = "30"', "late", '"30"', "whole number"),
    # units, linkage, takes
    (f'{BOOLEAN}\nunit = "year"', "unit", '"year"', '"event", "day", "week", "month", "user"'),
    (f"{BOOLEAN}\nunit = 1", "unit", "1", '"event", "day"'),
    (
        f'{BOOLEAN}\nunit = "event"\nper_day = 3\nlinkage = "collection"',
        "linkage",
        '"collection"',
        "1,095 slots an epoch, at most 1,024: use a longer unit, nearer dates, or linkage =",
    ),
    (
        f'{BOOLEAN}\nunit = "day"\nuntil = 2029-09-21\nlinkage = "collection"',
        "linkage",
        '"collection"',
        "1,025 slots an epoch",
    ),
    (f'{BOOLEAN}\nlinkage = "user"', "linkage", '"user"', '"collection", "period", "none"'),
    (f'{BOOLEAN}\nunit = "event"\ntakes = "last"', "takes", '"last"', "every event is reported"),
    ('values = ["a", "b"]\ntakes = "any"', "takes", '"any"', "only for boolean"),
    (f'{RANGE}\ntakes = "any"', "takes", '"any"', "only for boolean"),
    ('values = [1, 2]\ntakes = "max"', "takes", '"max"', "only for a range"),
    (f'{BOOLEAN}\ntakes = "sum"', "takes", '"sum"', "only for a range"),
    (f'{BOOLEAN}\ntakes = "all"', "takes", '"all"', '"first", "last", "any", "max", "sum"'),
    # held
    *(
        (f'{BOOLEAN}\nunit = "{unit}"\ntakes = "last"', "held", "(missing)", piece)
        for unit in ("week", "month", "user")
        for piece in (
            f'a {unit} with takes = "last" needs it: held = "process" (the answer is',
            "is about the first process that recorded: a server that never restarts)",
            'or held = "device" (the running value is kept on the device)',
        )
    ),
    (f'{CURATED}\ntakes = "any"', "held", "(missing)", 'a month with takes = "any" needs it'),
    (f'{BOOLEAN}\nheld = "device"', "held", '"device"', 'only where takes is not "first", or for'),
    (f'{BOOLEAN}\nheld = "process"', "held", '"process"', "does a value wait: remove held"),
    (
        f'{BOOLEAN}\nunit = "event"\nheld = "device"',
        "held",
        '"device"',
        'or for model = "central", does a value wait',
    ),
    (f'{BOOLEAN}\ntakes = "any"\nheld = "disk"', "held", '"disk"', '"process", "device"'),
    (f'{BOOLEAN}\ntakes = "any"\nheld = true', "held", "true", 'give one of "process", "device"'),
    # presence
    (f'{RANGE}\npresence = "hidden"', "presence", '"hidden"', "no cell for absent"),
    (
        'boolean = true\npresence = "hidden"\nsegments = {arm = ["A", "B"]}',
        "presence",
        '"hidden"',
        "an absence has no segment",
    ),
    (f'{CURATED}\npresence = "hidden"', "presence", '"hidden"', "curator sees presence"),
    (f'{BOOLEAN}\npresence = "secret"', "presence", '"secret"', '"public", "hidden"'),
    # central
    (f"{CURATED}\nbudget = 0", "budget", "0", "above 0"),
    (f"{CURATED}\nepsilon = 1", "epsilon", "1", "states budget instead"),
    (f'{CURATED}\nlinkage = "none"', "linkage", '"none"', "cannot enforce the contribution cap"),
    (f'{CURATED}\nadjacency = "event"', "adjacency", '"event"', '"add-remove", "substitute"'),
    (f"{RANGE}\nmodel = 'central'", "measure", '"mean"', "only for a range under the local model"),
    ("range = [0, 0.5]\nmodel = 'central'", "range", "[0, 0.5]", "give integer bounds"),
    (f"range = [0, {1 << 20}]\nmodel = 'central'", "range", "[0, 1048576]", "1,048,576 integers"),
    (f'{BOOLEAN}\nmodel = "shuffled"', "model", '"shuffled"', '"local", "central"'),
    (f"{BOOLEAN}\nbudget = 1", "budget", "1", "a local collection states epsilon instead"),
    (f'{BOOLEAN}\nadjacency = "substitute"', "adjacency", '"substitute"', "only for model"),
    # segments
    (f'{BOOLEAN}\nsegments = ["A", "B"]', "segments", '["A", "B"]', "give a table"),
    (f"{BOOLEAN}\nsegments = {{}}", "segments", "{}", "give a table"),
    (f'{BOOLEAN}\nsegments = {{arm = ["A"]}}', "segments.arm", '["A"]', "at least two"),
    (f"{BOOLEAN}\nsegments = {{arm = []}}", "segments.arm", "[]", "at least two"),
    (f'{BOOLEAN}\nsegments = {{arm = "A"}}', "segments.arm", '"A"', "give a list"),
    (f'{BOOLEAN}\nsegments = {{arm = ["A", 1]}}', "segments.arm", '["A", 1]', "all strings or"),
    (f'{BOOLEAN}\nsegments = {{arm = ["A", "A"]}}', "segments.arm", '"A"', "twice"),
    (
        f"{BOOLEAN}\nsegments = {{arm = [inf, nan]}}",
        "segments.arm",
        "inf",
        "a string or an integer",
    ),
    (f'{BOOLEAN}\nsegments = {{"a b" = [1, 2]}}', "segments", '"a b"', "give a letter"),
    (
        f"{BOOLEAN}\nsegments = {{a = [1, 2, 3], b = {list(range(11))}}}",
        "segments",
        '"33 cells"',
        "at most 32: fewer values, or cross",
    ),
    # cohorts
    (f"{BOOLEAN}\ncohort = 1", "cohort", "1", "write cohort = {draw"),
    (
        f'{BOOLEAN}\ncohort = {{draw = "d", of = 3}}',
        "cohort",
        '{draw = "d", of = 3}',
        "write cohort = {draw",
    ),
    (
        f'{BOOLEAN}\ncohort = {{draw = "d", of = 3, number = 0, more = 1}}',
        "cohort",
        '{draw = "d", of = 3, number = 0, more = 1}',
        "write cohort = {draw",
    ),
    (f"{BOOLEAN}\ncohort = {{draw = 1, of = 3, number = 0}}", "cohort.draw", "1", "give a string"),
    (
        f'{BOOLEAN}\ncohort = {{draw = "a b", of = 3, number = 0}}',
        "cohort.draw",
        '"a b"',
        "give a letter",
    ),
    (f'{BOOLEAN}\ncohort = {{draw = "d", of = 3, number = 3}}', "cohort.number", "3", "0 to 2"),
    (f'{BOOLEAN}\ncohort = {{draw = "d", of = 3, number = -1}}', "cohort.number", "-1", "0 to 2"),
    (f'{BOOLEAN}\ncohort = {{draw = "d", of = 1, number = 0}}', "cohort.of", "1", "2 to 1,024"),
    (f'{BOOLEAN}\ncohort = {{draw = "d", of = 1025, number = 0}}', "cohort.of", "1025", "2 to 1,0"),
    (
        f'{BOOLEAN}\ncohort = {{draw = "d", of = "3", number = 0}}',
        "cohort.of",
        '"3"',
        "whole number",
    ),
    # lineage
    (f'{BOOLEAN}\nreplaces = "q"', "replaces", '"q"', "name another collection"),
    (f'{BOOLEAN}\nreplaces = "a b"', "replaces", '"a b"', "give a letter"),
    (f'{BOOLEAN}\ntwin = "q"', "twin", '"q"', "name another collection"),
    (f'{BOOLEAN}\ntwin = "nowhere"', "twin", '"nowhere"', "a central collection of this file"),
    (f"{BOOLEAN}\ntwin = ['p']", "twin", '["p"]', "give a string"),
    # texts
    (f'{BOOLEAN}\nquestion = ""', "question", '""', "one line of 1 to 300"),
    (f'{BOOLEAN}\nquestion = "{"x" * 301}"', "question", CUT, "one line of 1 to 300"),
    (f'{BOOLEAN}\nquestion = """one\ntwo"""', "question", r'"one\ntwo"', "one line"),
    (f"{BOOLEAN}\nquestion = 1", "question", "1", "give a string"),
    (f'{BOOLEAN}\nowner = ""', "owner", '""', "one line"),
    (f"{BOOLEAN}\npurpose = []", "purpose", "[]", "give a string"),
]


def no_values(_: str) -> NoReturn:
    """Stand in for the reader of value lists where none is named."""
    raise AssertionError("no values_file is named")


def refused(text: str) -> DefinitionError:
    """Return the error that refuses a text."""
    with pytest.raises(DefinitionError) as caught:
        parse_collections(text, lambda _: ["a", "b"], "bad.toml")
    return caught.value


@pytest.mark.parametrize(("lines", "key", "value", "fix"), WRONG_LINES)
def test_a_wrong_line_is_named_with_its_file_collection_key_value_and_fix(
    lines: str, key: str, value: str, fix: str
) -> None:
    """All five stand in the error's text, so that the author can go and mend it."""
    error = refused(file(lines))

    assert (key, "q", "bad.toml") == (error.key, error.collection, error.file)
    assert fix in error.fix
    assert str(error) == f"bad.toml [q]: {key} = {value}: {error.fix}"


#: controls, separators of lines and paragraphs, marks that turn the direction of what follows
UNSEEN = [
    *(0x00, 0x09, 0x0A, 0x0D, 0x1B, 0x7F, 0x80, 0x85, 0x9F, 0x2028, 0x2029, 0x200E, 0x200F),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
]


@pytest.mark.parametrize("point", UNSEEN, ids=hex)
@pytest.mark.parametrize(
    "lines",
    [
        'values = ["a", "b{}c"]',
        'values = ["a", "b"]\nother = "b{}c"',
        'boolean = true\ncross = {{p = ["a", "b{}c"]}}',
        'boolean = true\nsegments = {{arm = ["a", "b{}c"]}}',
    ],
)
def test_a_label_that_hides_a_character_is_refused(lines: str, point: int) -> None:
    """Two labels that look alike, or one that turns the line around, would deceive."""
    assert (
        refused(file(lines.format(f"\\u{point:04x}"))).fix == "control characters are not allowed"
    )


@pytest.mark.parametrize("point", UNSEEN, ids=hex)
@pytest.mark.parametrize("key", ["question", "owner", "purpose"])
def test_a_text_that_hides_a_character_is_refused(key: str, point: int) -> None:
    """What people read to decide is one line, and stands as it is written."""
    error = refused(file(f'{BOOLEAN}\n{key} = "b\\u{point:04x}c"'))

    assert (error.key, error.fix) == (key, "give one line of 1 to 300 characters")


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("question", "the question in plain words"),
        ("unit", "what epsilon protects"),
        ("from", "the first day"),
        ("until", "the first day after"),
        ("epsilon", "a local collection needs it"),
    ],
)
def test_a_missing_key_is_named_with_what_it_says(key: str, fix: str) -> None:
    """`(missing)` stands where its value would."""
    whole = file(BOOLEAN).splitlines()
    error = refused("\n".join(line for line in whole if not line.startswith(f"{key} = ")))

    assert (key, "q", None) == (error.key, error.collection, error.value)
    assert str(error) == f"bad.toml [q]: {key} = (missing): {error.fix}"
    assert fix in error.fix


def test_a_central_collection_without_a_budget_is_refused() -> None:
    """Its releases would have no end."""
    error = refused(CENTRAL.replace("budget = 1", ""))

    assert (error.key, error.collection) == ("budget", "q")
    assert "a central collection needs it: budget = 1" in error.fix


#: the beginning of [q], as a table of 80 characters shows it
WHOLE = 'boolean = true, question = "What is it?", unit = "month", from = 2026-12-01'

#: (a whole file, the key, the collection, the value shown, a piece of the fix)
WRONG_FILES = [
    (file(BOOLEAN).replace('"acme"', '"an app"'), "app", "q", '"an app"', "give a letter"),
    (file(BOOLEAN).replace('"acme"', '""'), "app", "q", '""', "give a letter"),
    (
        file(BOOLEAN).replace('"acme"', f'"{"a" * 64}"'),
        "app",
        "q",
        '"' + "a" * 64 + '"',
        "63 at most",
    ),
    (file(BOOLEAN).replace('"acme"', "1"), "app", "", "1", "give a string"),
    (file(BOOLEAN).replace('app = "acme"', ""), "app", "", "(missing)", "give a string"),
    ("", "app", "", "(missing)", "give a string"),
    ("[app]\nquestion = 'x'", "app", "", '{question = "x"}', "give a string"),
    (file(BOOLEAN).replace("[q]", "[1q]"), "name", "1q", '"1q"', "give a letter"),
    (file(BOOLEAN).replace("[q]", '["a b"]'), "name", "a b", '"a b"', "give a letter"),
    (file(BOOLEAN).replace("[q]", '["\u00e9"]'), "name", "\u00e9", '"\u00e9"', "give a letter"),
    (
        file(BOOLEAN).replace("[q]", f"[{'q' * 64}]"),
        "name",
        "q" * 64,
        '"' + "q" * 64 + '"',
        "63 at most",
    ),
    (file(BOOLEAN).replace("[q]", '[""]'), "name", "", '""', "give a letter"),
    (file(BOOLEAN).replace("[q]", "[a.b]"), "b", "a", f"{{{WHOLE},...", "unknown key"),
    (file(BOOLEAN).replace("[q]", "[[q]]"), "q", "q", f"[{{{WHOLE}...", "outside a [collection]"),
    (file(BOOLEAN).replace("[q]", ""), "boolean", "boolean", "true", "outside a [collection]"),
    ("app = 'a'\nq = 1", "q", "q", "1", "only app may be outside"),
    ('app = "acme', "file", "", '"bad.toml"', "not readable TOML"),
    ("{", "file", "", '"bad.toml"', "not readable TOML"),
    (file(f"{BOOLEAN}\n{BOOLEAN}"), "file", "", '"bad.toml"', "not readable TOML"),
    (file(BOOLEAN) + file(BOOLEAN), "file", "", '"bad.toml"', "not readable TOML"),
    (file(f"{BOOLEAN}\nlate = 2026-02-30"), "file", "", '"bad.toml"', "not readable TOML"),
    (file("boolean = True"), "file", "", '"bad.toml"', "not readable TOML"),
    (file(f"{BOOLEAN}\nepsilon = .5"), "file", "", '"bad.toml"', "not readable TOML"),
    (file(f"{BOOLEAN}\nlate = {'1' * 5000}"), "file", "", '"bad.toml"', "not readable TOML"),
    (file(f"{BOOLEAN}\nx = {'[' * 5000}"), "file", "", '"bad.toml"', "not readable TOML"),
    (file(f"{BOOLEAN}\nx{'.x' * 5000} = 1"), "file", "", '"bad.toml"', "not readable TOML"),
    (file(r'values = ["a", "\uD800"]'), "file", "", '"bad.toml"', "not readable TOML"),
    ("\ufeff" + file(BOOLEAN), "file", "", '"bad.toml"', "not readable TOML"),
]


@pytest.mark.parametrize(("text", "key", "collection", "value", "fix"), WRONG_FILES)
def test_a_wrong_file_is_refused_by_what_is_wrong_with_it(
    text: str, key: str, collection: str, value: str, fix: str
) -> None:
    """Its app, its names, its form."""
    error = refused(text)

    assert (key, collection) == (error.key, error.collection)
    assert fix in error.fix
    assert "bad.toml" in str(error)
    assert str(error).endswith(f"{key} = {value}: {error.fix}")


# -- what collections say of each other ------------------------------------------------------------


def two(first: str, second: str) -> str:
    """Return a file with [p] and [q]."""
    return file(first).replace("[q]", "[p]") + file(second).replace('app = "acme"', "")


def test_a_collection_that_is_replaced_must_be_gone() -> None:
    """Its spend belongs to the one that replaces it."""
    error = refused(two(BOOLEAN, f'{BOOLEAN}\nreplaces = "p"'))

    assert (error.key, error.collection, error.value) == ("replaces", "q", "p")
    assert "still in this file" in error.fix


def test_only_one_collection_may_replace_another() -> None:
    """Else its spend would count twice, or not at all."""
    error = refused(two(f'{BOOLEAN}\nreplaces = "old"', f'{BOOLEAN}\nreplaces = "old"'))

    assert (error.key, error.collection, error.value) == ("replaces", "q", "old")
    assert error.fix == "[p] replaces it: only one collection may replace another"


@pytest.mark.parametrize("name", ["P", "pQ", "Pq", "PQ"])
def test_names_that_differ_in_their_capitals_only_are_refused(name: str) -> None:
    """Some file systems take them for one."""
    text = two(BOOLEAN, BOOLEAN).replace("[q]", f"[{name}]").replace("[p]", f"[{name.lower()}]")
    error = refused(text)

    assert (error.key, error.collection, error.value) == ("name", name, name)
    assert error.fix == f"[{name.lower()}] has the same name but for upper and lower case"


def test_one_draw_has_one_number_of_cohorts() -> None:
    """Thirds and quarters of one draw would overlap."""
    cohort = BOOLEAN + '\ncohort = {{draw = "d", of = {}, number = 0}}'
    error = refused(two(cohort.format(3), cohort.format(4)))

    assert (error.key, error.collection) == ("cohort.of", "p")
    assert "[q] has of = 4 for the same draw" in error.fix


LOCAL, FAR = TWINS["near"], TWINS["far"]
ANY = 'takes = "any"'
SECOND = LOCAL.replace("[near]", "[second]")


@pytest.mark.parametrize(
    ("text", "collection", "fix"),
    [
        (LOCAL, "near", "name a central collection of this file"),
        (
            LOCAL + FAR.replace('model = "central"', "").replace("budget", "epsilon"),
            "near",
            "name a central collection of this file",
        ),
        (LOCAL + SECOND + FAR, "second", "[near] already has this twin"),
        (FAR + LOCAL + SECOND, "second", "[near] already has this twin"),
        (
            LOCAL.replace('twin = "far"', "") + FAR + 'twin = "near"',
            "far",
            "on the local collection only",
        ),
        (LOCAL + FAR + 'twin = "near"', "far", "on the local collection only"),
        (LOCAL + FAR.replace("boolean = true", "values = [1, 2]"), "near", "same domain"),
        (LOCAL + FAR.replace('"month"', '"week"'), "near", "same unit"),
        (LOCAL + FAR + 'takes = "any"\nheld = "device"', "near", "same takes"),
        (
            LOCAL + f'{ANY}\nheld = "process"\n' + FAR + f'{ANY}\nheld = "device"',
            "near",
            "same held",
        ),
        (
            LOCAL.replace('"month"', '"day"')
            + f'{ANY}\nheld = "device"\n'
            + FAR.replace('"month"', '"day"')
            + ANY,
            "near",
            "same held",
        ),
        (LOCAL + FAR.replace("2026-12-01", "2026-11-01"), "near", "same from"),
        (LOCAL + FAR.replace("2027-12-01", "2027-11-01"), "near", "same until"),
        (LOCAL + FAR + "answers = 3", "near", "same answers"),
        (LOCAL + "answers = 3\n" + FAR, "near", "same answers"),
        (LOCAL + "answers = 3\n" + FAR + "answers = 4", "near", "same answers"),
        (LOCAL + FAR + 'segments = {arm = ["A", "B"]}', "near", "same segments"),
        (LOCAL + FAR + 'cohort = {draw = "d", of = 2, number = 0}', "near", "same cohort"),
        (
            (LOCAL + "per_day = 2\n" + FAR + "per_day = 3").replace('"month"', '"event"'),
            "near",
            "same per_day",
        ),
    ],
)
def test_a_twin_that_is_none_is_refused(text: str, collection: str, fix: str) -> None:
    """A twin is central, in the file, named once and by the local side, and asks the same."""
    error = refused('app = "acme"\n' + text)

    assert ("twin", collection, "bad.toml") == (error.key, error.collection, error.file)
    assert fix in error.fix


# -- a value list that is elsewhere ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "value", "fix"),
    [
        (["a"], '["a"]', "at least two"),
        ([], "[]", "at least two"),
        (["a", "b", "a"], '"a"', "twice"),
        (["a", ""], '""', "1 to 200"),
        (["a", "e\u0301"], '"e\u0301"', "normal form C"),
        (["a", "\ud800"], r'"\ud800"', "control characters"),
        (["a", "b\r"], r'"b\r"', "no space around"),
    ],
)
def test_a_wrong_value_list_is_refused_under_values_file(
    lines: list[str], value: str, fix: str
) -> None:
    """That is the key that stands in the file."""
    with pytest.raises(DefinitionError) as caught:
        parse_collections(file('values_file = "v.txt"'), lambda _: lines, "bad.toml")

    assert (caught.value.key, caught.value.collection) == ("values_file", "q")
    assert fix in caught.value.fix
    assert str(caught.value) == f"bad.toml [q]: values_file = {value}: {caught.value.fix}"


def test_an_other_that_is_in_the_value_list_is_refused_under_other() -> None:
    """Not under values_file."""
    error = refused(file('values_file = "v.txt"\nother = "b"'))

    assert (error.key, error.value) == ("other", "b")


# -- nothing else escapes --------------------------------------------------------------------------


class Raw(str):
    """TOML as it stands, not a string of it."""

    __slots__ = ()


def written(value: object) -> str:
    """Return a value as TOML."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = (c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in value)
        return '"' + "".join(escaped) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(k)} = {written(v)}" for k, v in value.items()) + "}"
    return str(value)


RAWS = [
    "nan",
    "inf",
    "-inf",
    "1e999999999",
    "-0.0",
    "0x" + "f" * 4000,
    "2026-12-01",
    "2999-12-31",
    "0001-01-01",
    "9999-12-31",
    "9999-12-31T23:59:59.999999-23:59",
    "2026-12-01T00:00:00Z",
    "07:32:00",
    "1_000",
    "0b1",
    "''",
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
KEYS = [
    "question", "values", "values_file", "boolean", "range", "measure", "other", "cross", "epsilon",
    "unit", "per_day", "takes", "held", "from", "until", "answers", "late", "linkage", "presence",
    "segments", "cohort", "model", "twin", "budget", "adjacency", "owner", "purpose", "replaces",
]  # fmt: skip
EXAMPLES = 4 * settings().max_examples  # most of them are refused at the first look
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
    st.sampled_from([FULL, EVENTS, CENTRAL, file(BOOLEAN), file(RANGE)]),
    st.dictionaries(st.one_of(st.sampled_from(KEYS), TEXTS), VALUES, min_size=1, max_size=3),
    st.sets(st.sampled_from(KEYS), max_size=2),
)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
def test_any_values_of_any_types_for_any_keys_raise_nothing_but_definition_errors(
    text: str, changes: dict[str, Any], dropped: set[str]
) -> None:
    """And what is accepted has a fingerprint, three figures and a message for everything."""
    gone = {*changes, *dropped}
    kept = [line for line in text.splitlines() if line.split(" = ")[0] not in gone]
    mutated = "\n".join([*kept, *(f"{written(k)} = {written(v)}" for k, v in changes.items())])
    try:
        collections = parse_collections(mutated, lambda _: ["a", "b"], "bad.toml")
    except DefinitionError:
        return

    for collection in collections.values():
        assert len(collection.fingerprint) == 64
        assert 0 < collection.epsilon_event <= collection.epsilon_day <= collection.epsilon_user


@given(st.text(max_size=60), st.sampled_from(["", 'app = "acme"\n', 'app = "acme"\n[q]\n']))
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
def test_any_text_at_all_raises_nothing_but_definition_errors(text: str, before: str) -> None:
    """Hardly any is TOML; none of it names a collection that could be asked."""
    try:
        collections = parse_collections(before + text, no_values)
    except DefinitionError:
        return

    assert not collections


@given(st.data())
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
def test_a_file_cut_or_torn_anywhere_raises_nothing_but_definition_errors(
    data: st.DataObject,
) -> None:
    """Some bytes of a good file are lost or doubled."""
    text = data.draw(st.sampled_from([FULL, EVENTS, CENTRAL]))
    start, end = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=2)))
    middle = data.draw(st.sampled_from(["", text[start:end] * 2, "]", "=", '"', "\n", "9" * 30]))
    try:
        collections = parse_collections(text[:start] + middle + text[end:], no_values, "bad.toml")
    except DefinitionError:
        return

    assert all(len(collection.fingerprint) == 64 for collection in collections.values())
