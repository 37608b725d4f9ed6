"""An error names file, collection, key, value and fix; no other error leaves the parser."""

from __future__ import annotations

import pytest

from .definition_harness import COHORT, CUT, definition_file, refused

RANGE = 'range = [0, 240]\nmeasure = "mean"'
RANGES = RANGE.replace("mean", "ranges")
AB = 'values = ["a", "b"]'
CURATED = 'boolean = true\nmodel = "central"'
EVENTS = 'unit = "event"'
MANY = ", ".join(map(str, range(1001)))

#: a piece of the fix -> lines of [q], of which the last is refused and quoted as it is written
QUOTED_LINES: dict[str, list[str]] = {
    # keys
    "did you mean epsilon?": ["epsilom = 1"],
    "did you mean linkage?": ["linkages = 1"],
    "unknown key: remove it": ["xyzzy = 'no'", "start = 2026-12-01"],
    # numbers
    "above 0": ["epsilon = 0", "epsilon = -1", f"{CURATED}\nbudget = 0"],
    "at most 16": ["epsilon = 16.000001", "epsilon = 17"],
    "give a number, finite": ["epsilon = nan", "epsilon = -inf", "epsilon = inf"],
    "ordinary length": [
        "epsilon = 1e999999999",
        "epsilon = 1e-999999999",
        f"epsilon = 1{'0' * 60}",
    ],
    "give a number": [
        *("epsilon = '1'", "epsilon = true", "epsilon = [1]", "epsilon = {event = 1}"),
        "epsilon = {a = [true, 0.5], b = {c = 'd'}}",
    ],
    "whole number": [f"{EVENTS}\nper_day = true", 'late = "30"'],
    "give 1 to 12, the number of months": ["answers = 0", "answers = -1", "answers = 13"],
    "365, the number of days": [f"{EVENTS}\nanswers = 366"],
    "1, the number of campaigns": ['unit = "user"\nanswers = 2'],
    "a month has one answer": ["per_day = 2"],
    "1 to 1,024": [f"{EVENTS}\nper_day = 0", f"{EVENTS}\nper_day = 1025"],
    "0 to 365": ["late = -1", "late = 366"],
    # domains
    "all strings or all integers": ['values = ["a", 1]', "values = [1, 1.5]"],
    "at least two": ["values = []", 'values = ["a"]'],
    "give a list": ['values = "a"', "values = {a = 1}"],
    "boolean = true": ["boolean = false", "boolean = 1"],
    "no meaning for a boolean": ['other = "else"'],
    "no meaning for a range": [f'{RANGE}\nother = "else"', f'{RANGE}\ncross = {{p = ["a", "b"]}}'],
    "not in values": [f'{AB}\nother = "a"'],
    "1 to 200 characters": [f'{AB}\nother = ""'],
    "give a table": [
        *('cross = ["a", "b"]', "cross = {}", 'segments = ["A", "B"]', "segments = {}")
    ],
    'give one of "mean", "distribution"': [
        "range = [0, 1]\nmeasure = 'median'",
        "range = [0, 1]\nmeasure = 1",
    ],
    # dates
    "a day after from": ["until = 2026-11-30", "until = 2026-12-01"],
    "UTC date without quotes": ["from = 12:00:00", 'from = "2026-12-01"', "from = 2026"],
    "year 2000 to 2999": ["from = 1999-12-31", "until = 3000-01-01"],
    "100 years at most": ["until = 2126-12-03"],
    # closed lists
    'give one of "event", "day", "week", "month", "user"': ['unit = "year"', "unit = 1"],
    'give one of "collection", "period", "none"': ['linkage = "user"'],
    'give one of "first", "last", "any", "max", "sum"': ['takes = "all"'],
    'give one of "process", "device"': [
        'takes = "any"\nheld = "disk"',
        'takes = "any"\nheld = true',
    ],
    'give one of "public", "hidden"': ['presence = "secret"'],
    'give one of "add-remove", "substitute"': [f'{CURATED}\nadjacency = "event"'],
    'give one of "local", "shuffled", "central"': ['model = "mixed"'],
    # what does not go together
    "1,095 slots an epoch, at most 1,024: use a longer unit, nearer dates, or linkage =": [
        f'{EVENTS}\nper_day = 3\nlinkage = "collection"'
    ],
    "1,025 slots an epoch": ['unit = "day"\nuntil = 2029-09-21\nlinkage = "collection"'],
    "every event is reported": [f'{EVENTS}\ntakes = "last"'],
    "only for boolean": [f'{AB}\ntakes = "any"', f'{RANGE}\ntakes = "any"'],
    "no cell for absent": [f'{each}\npresence = "hidden"' for each in (RANGE, RANGES)],
    "only for a range": [f'{AB}\ntakes = "max"', 'takes = "sum"', 'measure = "mean"'],
    'only where takes is not "first", or for model = "central", does a value wait: remove held': [
        *('held = "device"', 'held = "process"', f'{EVENTS}\nheld = "device"')
    ],
    "curator sees presence": [f'{CURATED}\npresence = "hidden"'],
    "states budget instead": [f"{CURATED}\nepsilon = 1"],
    "cannot enforce the contribution cap": [f'{CURATED}\nlinkage = "none"'],
    "a local collection is pure epsilon-DP": ["delta = 0.000001"],
    "give 1e-12 to 0.001": [
        f"{CURATED}\ndelta = {each}" for each in ("0", "0.01", "0.0000000000001")
    ],
    "a local collection states epsilon instead": ["budget = 1"],
    'only for values = "open" and': ['noise = "laplace"', f'{CURATED}\nnoise = "laplace"'],
    'give one of "laplace"': [f'{CURATED}\nnoise = "gaussian"'],
    "only for model": ['adjacency = "substitute"'],
    "write cohort = {draw": [
        *("cohort = 1", 'cohort = {draw = "d", of = 3}'),
        'cohort = {draw = "d", of = 3, number = 0, more = 1}',
    ],
    # names and texts
    "name another collection": ['replaces = "q"', 'twin = "q"'],
    "give a letter": ['replaces = "a b"'],
    "a central collection of this file": ['twin = "nowhere"'],
    "one line of 1 to 300": ['question = ""', 'owner = ""'],
    "give a string": [
        *("question = 1", "purpose = []", "twin = ['p']", "values_file = 1"),
        *(f"{AB}\nother = true", f"{AB}\nother = nan"),
    ],
}

ARMS = 'segments = {arm = ["A", "B"]}'


def raked(shares: str, source: str = '"Census"', as_of: str = "2026-01-01") -> str:
    """Return the lines of segments and of margins."""
    return f"{ARMS}\nmargins = {{{shares}, source = {source}, as_of = {as_of}}}"


#: (lines of [q], the key that is named, the value as the message quotes it, a piece of the fix)
WRONG_LINES = [
    (f"epsilon = 1.{'0' * 99}", "epsilon", f"1.{'0' * 75}...", "ordinary length"),
    ("epsilon = 0.1234567", "epsilon", "0.1234567", "six decimals"),
    ("answers = 1.0", "answers", "1", "whole number"),
    (f"late = 0x{'f' * 5000}", "late", "(a number of thousands of digits)", "0 to 365"),
    # labels
    ('values = ["a", "b", "a"]', "values", '"a"', "twice"),
    ("values = [2026-12-01, 2026-12-02]", "values", "2026-12-01", "a string or an integer"),
    ('values = ["a", " b"]', "values", '" b"', "no space around"),
    (f'values = ["a", "{"x" * 201}"]', "values", CUT, "1 to 200 characters"),
    (f"values = [1, -{2**53}]", "values", str(-(2**53)), "2^53"),
    (f"values = [1, {2**53}]", "values", str(2**53), "2^53"),
    (f"{AB}\nrange = [0, 1]", "values", '["values", "range"]', "exactly one of"),
    ('boolean = true\nvalues_file = "v"', "values", '["values_file", "boolean"]', "exactly one of"),
    ("\n", "values", "(missing)", "exactly one of"),
    ('cross = {p = ["a"]}', "cross.p", '["a"]', "at least two"),
    ('cross = {"a b" = [1, 2]}', "cross", '"a b"', "give a letter"),
    (f"values = [{MANY}]\ncross = {{p = [{MANY}]}}", "cross", "1002001", "at most 1,000,000 comb"),
    # ranges
    ("range = [0.5, -1.25]\nmeasure = 'mean'", "range", "[0.5, -1.25]", "low below high"),
    ("range = [5, 5.0]\nmeasure = 'mean'", "range", "[5, 5]", "low below high"),
    ("range = 240\nmeasure = 'mean'", "range", "240", "give two numbers"),
    ("range = [0, 120, 240]\nmeasure = 'mean'", "range", "[0, 120, 240]", "give two numbers"),
    ('range = ["a", "b"]\nmeasure = "mean"', "range", '"a"', "give a number"),
    ("range = [false, true]\nmeasure = 'mean'", "range", "false", "give a number"),
    ("range = [0, 240]", "measure", "(missing)", '"mean", "distribution" or "ranges"'),
    (RANGES + "\nmodel = 'central'", "measure", '"ranges"', "only for a range under the local"),
    (f"{RANGE}\nmodel = 'central'", "measure", '"mean"', "only for a range under the local model"),
    ("range = [0, 0.5]\nmodel = 'central'", "range", "[0, 0.5]", "give integer bounds"),
    (f"range = [0, {1 << 20}]\nmodel = 'central'", "range", "[0, 1048576]", "1,048,576 integers"),
    # dates
    ("from = 2026-12-01T00:00:00Z", "from", "2026-12-01 00:00:00+00:00", "UTC date without quotes"),
    # held
    *(
        (f'unit = "{unit}"\ntakes = "last"', "held", "(missing)", piece)
        for unit in ("week", "month", "user")
        for piece in (
            f'a {unit} with takes = "last" needs it: held = "process" (the answer is',
            "is about the first process that recorded: a server that never restarts)",
            'or held = "device" (the running value is kept on the device)',
        )
    ),
    (f'{CURATED}\ntakes = "any"', "held", "(missing)", 'a month with takes = "any" needs it'),
    # segments
    ('segments = {arm = "A"}', "segments.arm", '"A"', "give a list"),
    ('segments = {arm = ["A"]}', "segments.arm", '["A"]', "at least two"),
    (
        f"segments = {{a = [1, 2, 3], b = {list(range(11))}}}",
        *("segments", '"33 cells"', "at most 32: fewer values, or cross"),
    ),
    (
        'presence = "hidden"\nsegments = {arm = ["A", "B"]}',
        *("presence", '"hidden"', "an absence has no segment"),
    ),
    # what a number is measured in
    ('range = [0, 9]\nmeasure = "mean"\nmeasured_in = ""', "measured_in", '""', "one line"),
    ('measured_in = "minutes"', "measured_in", '"minutes"', "only a number, with range"),
    # margins
    (f"{ARMS}\nmargins = [40, 60]", "margins", "[40, 60]", "give a table: margins = {age ="),
    (f"{ARMS}\nmargins = {{arm = [40, 60]}}", "margins.source", "(missing)", "this key is missing"),
    (f'{ARMS}\nmargins = {{source = "C"}}', "margins.as_of", "(missing)", "this key is missing"),
    (
        f'{ARMS}\nmargins = {{source = "C", as_of = 2026-01-01}}',
        *("margins", "{}", "give a list of shares for one segment or several"),
    ),
    (f"{ARMS}\nmargins = {{source = 1, as_of = 1}}", "margins", "{}", "for one segment"),
    (raked("arm = [40, 60]", source='""'), "margins.source", '""', "one line"),
    (raked("arm = [40, 60]", source="1"), "margins.source", "1", "a string"),
    (
        raked("arm = [40, 60]", as_of='"2026"'),
        *("margins.as_of", '"2026"', "a UTC date without quotes"),
    ),
    (raked("arm = 40"), "margins.arm", "40", "give a list of shares"),
    (raked('arm = ["A", "B"]'), "margins.arm", '"A"', "give a number"),
    (raked("age = [40, 60]"), "margins", '"age"', "in segments, or leave it out"),
    (
        raked("arm = [40, 60]").replace(ARMS, "late = 30"),
        *("margins", '"arm"', "there are no segments"),
    ),
    (raked("arm = [40, 30, 30]"), "margins.arm", "[40, 30, 30]", "give 2 shares, one for"),
    (raked("arm = [0, 100]"), "margins.arm", "[0, 100]", "merge an empty category"),
    (raked("arm = [-10, 110]"), "margins.arm", "[-10, 110]", "give shares above 0"),
    (raked("arm = [40, 60.6]"), "margins.arm", "[40, 60.6]", "sum to 100, or to 1"),
    (raked("arm = [0.4, 0.59]"), "margins.arm", "[0.4, 0.59]", "within half a percent"),
    (
        f"{RANGE}\n{raked('arm = [40, 60]')}",
        *("margins", '"mean"', "only for listed values, and true or false"),
    ),
    (f"{CURATED}\n{raked('arm = [40, 60]')}", *("margins", '"central"', "released as they are")),
    # cohorts
    (COHORT.format('"a b"', 3, 0), "cohort.draw", '"a b"', "give a letter"),
    (COHORT.format('"d"', 3, 3), "cohort.number", "3", "0 to 2"),
    (COHORT.format('"d"', 3, -1), "cohort.number", "-1", "0 to 2"),
    (COHORT.format('"d"', 1, 0), "cohort.of", "1", "2 to 1,024"),
    (COHORT.format('"d"', 1025, 0), "cohort.of", "1025", "2 to 1,024"),
    (COHORT.format('"d"', '"3"', 0), "cohort.of", '"3"', "whole number"),
    # texts
    (f'question = "{"x" * 301}"', "question", CUT, "one line of 1 to 300"),
    ('question = """one\ntwo"""', "question", r'"one\ntwo"', "one line"),
]


def check_refused_lines(lines: str, key: str, value: str, fix: str) -> None:
    """Check the error of lines of [q], a boolean if they name no domain."""
    named = lines.startswith(("values", "range", "boolean", "\n"))
    error = refused(definition_file(lines if named else f"boolean = true\n{lines}"))

    assert (error.key, error.collection, error.file) == (key, "q", "bad.toml")
    assert fix in error.fix
    assert str(error) == f"bad.toml [q]: {key} = {value}: {error.fix}"


@pytest.mark.parametrize(
    ("lines", "fix"), [(lines, fix) for fix, wrong in QUOTED_LINES.items() for lines in wrong]
)
def test_a_wrong_line_is_quoted_with_its_file_collection_and_fix(lines: str, fix: str) -> None:
    key, value = lines.splitlines()[-1].split(" = ", 1)

    check_refused_lines(lines, key, value.replace("'", '"'), fix)


@pytest.mark.parametrize(("lines", "key", "value", "fix"), WRONG_LINES)
def test_a_wrong_value_is_named_with_its_key_and_fix(
    lines: str, key: str, value: str, fix: str
) -> None:
    check_refused_lines(lines, key, value, fix)


@pytest.mark.parametrize("point", [0x00, 0x0A, 0x7F, 0x2028, 0x200F, 0x202E, 0xE000], ids=hex)
def test_labels_and_texts_with_an_invisible_character_are_refused(point: int) -> None:
    hidden = f"b\\u{point:04x}c"
    labels = [
        f'values = ["a", "{hidden}"]',
        f'{AB}\nother = "{hidden}"',
        f'boolean = true\ncross = {{p = ["a", "{hidden}"]}}',
        f'boolean = true\nsegments = {{arm = ["a", "{hidden}"]}}',
    ]
    texts = [f'boolean = true\n{key} = "{hidden}"' for key in ("question", "owner", "purpose")]

    for lines in labels:
        assert "control characters" in refused(definition_file(lines)).fix
    for lines in texts:
        assert "give one line of 1 to 300 characters" in refused(definition_file(lines)).fix


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("question", "the question in plain words"),
        ("unit", "what epsilon protects"),
        ("from", "the first day"),
        ("until", "the first day after"),
        ("epsilon", "a local collection needs it"),
        ("budget", "a central collection needs it: budget = 1"),
    ],
)
def test_a_missing_key_is_named_with_its_meaning(key: str, fix: str) -> None:
    whole = definition_file(CURATED if key == "budget" else "boolean = true").splitlines()
    error = refused("\n".join(line for line in whole if not line.startswith(f"{key} = ")))

    assert (key, "q", None) == (error.key, error.collection, error.value)
    assert str(error) == f"bad.toml [q]: {key} = (missing): {error.fix}"
    assert fix in error.fix


#: the beginning of [q], as a table of 80 characters shows it
SHOWN = 'boolean = true, question = "What is it?", unit = "month", from = 2026-12-01'
FILE = definition_file("boolean = true")

#: (a whole file, the key, the collection, the value as it is quoted, a piece of the fix)
WRONG_FILES = [
    (FILE.replace('"acme"', '"an app"'), "app", "q", '"an app"', "give a letter"),
    (FILE.replace('"acme"', f'"{"a" * 64}"'), "app", "q", f'"{"a" * 64}"', "63 at most"),
    (FILE.replace('"acme"', "1"), "app", "", "1", "give a string"),
    (FILE.replace('app = "acme"', ""), "app", "", "(missing)", "give a string"),
    (FILE.replace("[q]", '["\u00e9"]'), "name", "\u00e9", '"\u00e9"', "give a letter"),
    (FILE.replace("[q]", '[""]'), "name", "", '""', "give a letter"),
    (FILE.replace("[q]", "[a.b]"), "b", "a", f"{{{SHOWN},...", "unknown key"),
    (FILE.replace("[q]", "[[q]]"), "q", "q", f"[{{{SHOWN}...", "outside a [collection]"),
    (FILE.replace("[q]", ""), "boolean", "boolean", "true", "outside a [collection]"),
    ("app = 'a'\nq = 1", "q", "q", "1", "only app may be outside"),
]
NOT_TOML = [
    *('app = "acme', "{", f"\ufeff{FILE}", FILE + FILE, f"{FILE}\nboolean = true"),
    *(f"{FILE}\nlate = 2026-02-30", f"{FILE}\nlate = .5", f"{FILE}\nlate = True"),
    *(f"{FILE}\nlate = {'1' * 5000}", f"{FILE}\nx = {'[' * 5000}", f"{FILE}\nx{'.x' * 5000} = 1"),
    rf'{FILE}\nother = "\uD800"'.replace(r"\n", "\n"),
]


@pytest.mark.parametrize(
    ("text", "key", "collection", "value", "fix"),
    [*WRONG_FILES, *((text, "file", "", '"bad.toml"', "not readable TOML") for text in NOT_TOML)],
)
def test_a_wrong_file_is_refused_by_what_is_wrong_with_it(
    text: str, key: str, collection: str, value: str, fix: str
) -> None:
    error = refused(text)

    assert (error.key, error.collection) == (key, collection)
    assert fix in error.fix
    assert "bad.toml" in str(error)
    assert str(error).endswith(f"{key} = {value}: {error.fix}")
