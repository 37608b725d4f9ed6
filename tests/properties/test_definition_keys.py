"""Every key of a definition file: how it is read, and which values are allowed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from veilcount_shared.collection import (
    Adjacency,
    Cohort,
    Collection,
    Held,
    Linkage,
    Measure,
    Model,
    Noise,
    Presence,
    Takes,
    describe_held,
    parse_collections,
)
from veilcount_shared.definition_record import PopulationMargins
from veilcount_shared.domain import Boolean, Choice, Cross, Number, OpenStrings
from veilcount_shared.errors import DefinitionError
from veilcount_shared.periods import Unit

from ..call_count import count_calls
from .definition_harness import COHORT, definition_file, no_values_file, parse_definition

LONG = ["week", "month", "user"]
LAST = 'boolean = true\ntakes = "last"'
CURATED = 'boolean = true\nmodel = "central"'


def test_a_number_is_read_exactly() -> None:
    written = ["0.7", "7e-1", "0.000001", "1_0.5", "16", "1.50"]
    domain = parse_definition('range = [-0.1, 1e-9]\nmeasure = "mean"').domain

    assert [parse_definition(f"boolean = true\nepsilon = {each}").epsilon for each in written] == [
        Fraction(each) for each in ("7/10", "7/10", "1/1000000", "21/2", "16", "3/2")
    ]
    assert Number(Fraction(-1, 10), Fraction(1, 10**9)) == domain


PAIRED = """
question = "Is it used?"
boolean = true
cross = {plan = ["free", "paid"]}
unit = "week"
takes = "last"
held = "device"
from = 2026-12-01
until = 2027-12-01
answers = 10
segments = {arm = ["A", "B"], major = [1, 2]}
cohort = {draw = "spring", of = 3, number = 2}
"""
EVERY_KEY = f"""
app = "acme.editor-2"
[usage]
{PAIRED}
epsilon = 0.25
late = 7
linkage = "period"
model = "local"
twin = "usage_central"
owner = "Ada"
purpose = "to decide"
replaces = "use"
margins = {{major = [30.5, 69], source = "Census", as_of = 2026-01-01}}
[usage_central]
{PAIRED}
model = "central"
budget = 0.5
adjacency = "substitute"
[minutes]
question = "How long?"
range = [0, 240]
measure = "distribution"
measured_in = "minutes"
epsilon = 1
unit = "event"
per_day = 3
from = 2026-12-01
until = 2026-12-08
[named]
question = "Which one?"
values = "open"
model = "central"
budget = 1
delta = 0.000001
noise = "laplace"
unit = "user"
from = 2026-12-01
until = 2026-12-08
[words]
question = "Which word?"
values_file = "words.txt"
other = "else"
epsilon = 1
unit = "day"
presence = "hidden"
from = 2026-12-01
until = 2026-12-08
"""


def test_every_key_is_read_into_its_field() -> None:
    app: dict[str, Any] = {"app": "acme.editor-2", "start": date(2026, 12, 1)}
    week = {**app, "until": date(2026, 12, 8)}
    paired = {
        **app,
        "until": date(2027, 12, 1),
        "question": "Is it used?",
        "domain": Cross(Boolean(), (("plan", Choice(("free", "paid"))),)),
        "unit": Unit.WEEK,
        "takes": Takes.LAST,
        "held": Held.DEVICE,
        "answers": 10,
        "segments": (("arm", ("A", "B")), ("major", (1, 2))),
        "cohort": Cohort("spring", 3, 2),
    }
    local = Collection(
        **paired,
        name="usage",
        epsilon=Fraction(1, 4),
        late=7,
        linkage=Linkage.PERIOD,
        twin="usage_central",
        owner="Ada",
        purpose="to decide",
        replaces="use",
        margins=PopulationMargins(
            (("major", (Fraction(61, 2), Fraction(69))),), "Census", date(2026, 1, 1)
        ),
    )
    central = Collection(
        **paired,
        name="usage_central",
        model=Model.CENTRAL,
        budget=Fraction(1, 2),
        adjacency=Adjacency.SUBSTITUTE,
        twin="usage",
    )
    minutes = Collection(
        **week,
        name="minutes",
        question="How long?",
        domain=Number(Fraction(0), Fraction(240)),
        unit=Unit.EVENT,
        epsilon=Fraction(1),
        measure=Measure.DISTRIBUTION,
        measured_in="minutes",
        per_day=3,
    )
    named = Collection(
        **week,
        name="named",
        question="Which one?",
        domain=OpenStrings("acme.editor-2/named/2026-12-01"),
        unit=Unit.USER,
        model=Model.CENTRAL,
        budget=Fraction(1),
        delta=Fraction(1, 10**6),
        noise=Noise.LAPLACE,
        adjacency=Adjacency.ADD_REMOVE,
    )
    words = Collection(
        **week,
        name="words",
        question="Which word?",
        domain=Choice(("yes", "no"), "else"),
        unit=Unit.DAY,
        epsilon=Fraction(1),
        presence=Presence.HIDDEN,
    )

    collections = parse_collections(EVERY_KEY, {"words.txt": ["yes", "no"]}.__getitem__)

    assert list(collections.values()) == [local, central, minutes, named, words]


@pytest.mark.parametrize(
    "lines",
    [
        "late = 0",
        "late = 365",
        "answers = 12",
        "from = 2000-01-01\nuntil = 2000-01-02",
        "unit = 'user'\nuntil = 2126-12-02",
        "unit = 'week'\nfrom = 2999-01-01\nuntil = 2999-12-31",
        "unit = 'event'\nper_day = 1024",
        f"question = '{'x' * 300}'",
        "cohort = {draw = 'd', of = 1024, number = 1023}",
        f"segments = {{a = [1, 2], b = {list(range(16))}}}",
        f"cross = {{a = ['{'x' * 200}', 'y']}}",
        f"cross = {{a = [{2**53 - 1}, {1 - 2**53}]}}",
        f"replaces = '{'x' * 63}'",
    ],
)
def test_a_limit_itself_is_allowed(lines: str) -> None:
    assert parse_definition("boolean = true\n" + lines).fingerprint


#: visible characters that str.isprintable() rejects
VISIBLE = {
    "no-break space": "10\u00a0km",
    "narrow no-break space": "10\u202fkm",
    "emoji joined of three": "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "unassigned": "a\u0378b",
}


@pytest.mark.parametrize("text", VISIBLE.values(), ids=VISIBLE)
def test_labels_and_texts_may_hold_any_visible_character(text: str) -> None:
    """What this Python knows of Unicode must not decide which definitions are valid."""
    segmented = parse_definition(f'boolean = true\nsegments = {{arm = ["a", "{text}"]}}')

    assert parse_definition(f'values = ["a", "{text}"]').domain == Choice(("a", text))
    assert segmented.segment(arm=text) == 1
    for key in ("question", "owner", "purpose"):
        assert getattr(parse_definition(f'boolean = true\n{key} = "{text}"'), key) == text


@pytest.mark.parametrize(
    "key",
    ["unit", "measure", "takes", "held", "linkage", "presence", "model", "adjacency", "noise"],
)
def test_a_definition_made_in_python_needs_enum_members(key: str) -> None:
    with pytest.raises(DefinitionError, match=rf'{key} = "central": give one of \w+\.\w+'):
        replace(parse_definition("boolean = true"), **{key: "central"})  # type: ignore[arg-type] # the point


# -- held ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["day", *LONG])
@pytest.mark.parametrize("held", Held)
def test_a_value_is_held_where_the_definition_states(unit: str, held: Held) -> None:
    """A running value, and a true value that waits for its delivery."""
    for lines in (LAST, CURATED):
        collection = parse_definition(f'{lines}\nunit = "{unit}"\nheld = "{held}"')

        assert (collection.held, collection.held_on_device) == (held, held is Held.DEVICE)


PROCESS = (
    "the answer is about the first process that recorded in the period, which suits a server that"
    " never restarts; the running value is in memory only, and lost with the process if it is"
    " killed"
)
MEMORY = "the true value is in memory only, and lost with the process if it is killed"
DISK = "the {} value is kept on the device's disk, readable by the app's user only, until it is {}"


@pytest.mark.parametrize(
    ("lines", "meaning"),
    [
        ("boolean = true", ""),
        (f'{LAST}\nheld = "process"', PROCESS),
        (f'{LAST}\nheld = "device"', DISK.format("running", "frozen, forgotten or withdrawn")),
        (CURATED, MEMORY),
        (f'{CURATED}\nheld = "process"', MEMORY),
        (f'{CURATED}\nheld = "device"', DISK.format("true", "delivered, forgotten or withdrawn")),
    ],
)
def test_held_is_explained(lines: str, meaning: str) -> None:
    assert describe_held(parse_definition(lines)) == meaning


def test_a_file_of_many_questions_takes_as_many_times_the_work() -> None:
    """No name, cohort or replacement is looked for among all others."""

    head, table = definition_file("boolean = true").split("[q]")

    def read(questions: int) -> int:
        text = head
        for n in range(questions):
            cohort = COHORT.format(f'"d{n}"', 3, n % 3)
            text += f'[q{n}]{table}\nreplaces = "old{n}"\n{cohort}\n'
        return count_calls(lambda: parse_collections(text, no_values_file))

    assert read(400) < 11 * read(40)
