"""What a definition means: its figures, its slots, its segments, its doors, its fingerprint."""

from __future__ import annotations

from collections import UserString
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

import pytest

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.collection import (
    Adjacency,
    Cohort,
    Collection,
    Held,
    Linkage,
    Measure,
    Model,
    Presence,
    Takes,
    describe_held,
    load_collections,
    parse_collections,
)
from veilcount_shared.collection.toml import _DOMAIN_KEYS, _READERS
from veilcount_shared.domain import GRID, MAX_VALUES, Boolean, Choice, Cross, Number
from veilcount_shared.errors import DefinitionError, TrustModelError, UnknownSegment
from veilcount_shared.periods import Unit
from veilcount_shared.randomness import RandomSource

#: the two examples of the design, section 6
EXAMPLES = """
app = "acme-editor"

[theme]
question = "Which theme is active?"
values   = ["light", "dark", "system"]
epsilon  = 1
unit     = "month"
from     = 2026-12-01
until    = 2027-12-01

[session_minutes]
question = "How long was this session?"
range    = [0, 240]
measure  = "mean"
epsilon  = 0.5
unit     = "event"
per_day  = 4
answers  = 7
from     = 2026-12-01
until    = 2027-03-01
"""

#: every kind of domain, as the lines of a definition
KINDS = {
    "boolean": "boolean = true",
    "choice": 'values = ["a", "b", "c"]',
    "integers": "values = [1, 2, 30]",
    "other": 'values = ["a", "b"]\nother = "else"',
    "plane": f"values = {list(range(400))}",
    "cross": 'boolean = true\ncross = {plan = ["free", "paid"], tier = [1, 2, 3]}',
    "mean": 'range = [-1.5, 240]\nmeasure = "mean"',
    "distribution": 'range = [0, 1]\nmeasure = "distribution"',
}


def file(lines: str, **changed: str) -> str:
    """Return a file with one collection [q]: these lines, and what they leave out."""
    given = {line.split("=")[0].strip() for line in lines.splitlines()}
    defaults = {
        "question": '"What is it?"',
        "unit": '"month"',
        "from": "2026-12-01",
        "until": "2027-12-01",
        "epsilon": "1",
    }
    if "central" in lines:
        del defaults["epsilon"]
        defaults["budget"] = "1"
    rest = [f"{key} = {value}" for key, value in defaults.items() if key not in given]
    return "\n".join(['app = "acme"', "[q]", lines, *rest])


def no_values(_: str) -> NoReturn:
    """Stand in for the reader of value lists where none is named."""
    raise AssertionError("no values_file is named")


def one(lines: str) -> Collection:
    """Return the collection [q] of these lines."""
    return parse_collections(file(lines), no_values)["q"]


def figures(collection: Collection) -> tuple[Fraction | int, ...]:
    """Return epsilon per event, per day, per user."""
    return (collection.epsilon_event, collection.epsilon_day, collection.epsilon_user)


# -- the examples ----------------------------------------------------------------------------------


def test_the_examples_of_the_design_give_the_figures_written_next_to_them() -> None:
    """The comments in the design's own file are what the code computes."""
    theme, minutes = parse_collections(EXAMPLES, no_values).values()

    assert figures(theme) == (1, 1, 12)
    assert (Fraction(1, 2), 2, 14) == figures(minutes)


def test_collections_come_in_the_order_of_the_file() -> None:
    """Ceilings are reserved in file order, so the order is part of what is read."""
    assert list(parse_collections(EXAMPLES, no_values)) == ["theme", "session_minutes"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0.7", Fraction(7, 10)),
        ("0.1", Fraction(1, 10)),
        ("7e-1", Fraction(7, 10)),
        ("0.000001", Fraction(1, 10**6)),
        ("1_0.5", Fraction(21, 2)),
        ("16", Fraction(16)),
        ("1.50", Fraction(3, 2)),
    ],
)
def test_a_number_is_read_exactly(written: str, meant: Fraction) -> None:
    """No float exists between the file and the definition."""
    assert meant == one(f"boolean = true\nepsilon = {written}").epsilon


def test_a_range_is_read_exactly() -> None:
    """Bounds are fractions too, negative and small ones alike."""
    domain = one('range = [-0.1, 1e-9]\nmeasure = "mean"').domain

    assert Number(Fraction(-1, 10), Fraction(1, 10**9)) == domain


# -- every key -------------------------------------------------------------------------------------


def test_every_key_is_accepted_in_a_right_use() -> None:
    """Three collections use all keys between them; every field holds what was written."""
    collections = parse_collections(
        """
        app = "acme.editor-2"
        [usage]
        question = "Is it used?"
        boolean = true
        cross = {plan = ["free", "paid"]}
        epsilon = 0.25
        unit = "week"
        takes = "last"
        held = "device"
        from = 2026-12-01
        until = 2027-12-01
        answers = 10
        late = 7
        linkage = "period"
        segments = {arm = ["A", "B"], major = [1, 2]}
        cohort = {draw = "spring", of = 3, number = 2}
        model = "local"
        twin = "usage_central"
        owner = "Ada"
        purpose = "to decide"
        replaces = "use"
        [usage_central]
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
        model = "central"
        budget = 0.5
        adjacency = "substitute"
        [minutes]
        question = "How long?"
        range = [0, 240]
        measure = "distribution"
        epsilon = 1
        unit = "event"
        per_day = 3
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
        """,
        {"words.txt": ["yes", "no"]}.__getitem__,
    )

    day, year, week = date(2026, 12, 1), date(2027, 12, 1), date(2026, 12, 8)
    answer = Cross(Boolean(), (("plan", Choice(("free", "paid"))),))
    arms = (("arm", ("A", "B")), ("major", (1, 2)))
    local = Collection(
        app="acme.editor-2",
        name="usage",
        question="Is it used?",
        domain=answer,
        unit=Unit.WEEK,
        start=day,
        until=year,
        epsilon=Fraction(1, 4),
        takes=Takes.LAST,
        held=Held.DEVICE,
        answers=10,
        late=7,
        linkage=Linkage.PERIOD,
        segments=arms,
        cohort=Cohort("spring", 3, 2),
        twin="usage_central",
        owner="Ada",
        purpose="to decide",
        replaces="use",
    )
    central = Collection(
        app="acme.editor-2",
        name="usage_central",
        question="Is it used?",
        domain=answer,
        unit=Unit.WEEK,
        start=day,
        until=year,
        takes=Takes.LAST,
        held=Held.DEVICE,
        answers=10,
        segments=arms,
        cohort=Cohort("spring", 3, 2),
        model=Model.CENTRAL,
        budget=Fraction(1, 2),
        adjacency=Adjacency.SUBSTITUTE,
        twin="usage",
    )
    minutes = Collection(
        app="acme.editor-2",
        name="minutes",
        question="How long?",
        domain=Number(Fraction(0), Fraction(240)),
        unit=Unit.EVENT,
        start=day,
        until=week,
        epsilon=Fraction(1),
        measure=Measure.DISTRIBUTION,
        per_period=3,
    )
    words = Collection(
        app="acme.editor-2",
        name="words",
        question="Which word?",
        domain=Choice(("yes", "no"), "else"),
        unit=Unit.DAY,
        start=day,
        until=week,
        epsilon=Fraction(1),
        presence=Presence.HIDDEN,
    )
    expected = {"usage": local, "usage_central": central, "minutes": minutes, "words": words}
    assert expected == collections


@pytest.mark.parametrize("takes", ["first", "last", "any"])
def test_a_boolean_may_take_first_last_or_any(takes: str) -> None:
    """What a period reports of a yes or no."""
    assert takes == one(f'boolean = true\nunit = "day"\ntakes = "{takes}"').takes


@pytest.mark.parametrize("takes", ["first", "last", "max", "sum"])
def test_a_range_may_take_first_last_max_or_sum(takes: str) -> None:
    """What a period reports of numbers."""
    lines = f'range = [0, 1]\nmeasure = "mean"\nunit = "day"\ntakes = "{takes}"'
    assert takes == one(lines).takes


# -- held: where a value waits ---------------------------------------------------------------------

LONG = ["week", "month", "user"]
LAST = 'boolean = true\ntakes = "last"'
CURATED = 'boolean = true\nmodel = "central"'


@pytest.mark.parametrize("unit", ["day", *LONG])
@pytest.mark.parametrize(("held", "on_device"), [("process", False), ("device", True)])
def test_a_running_value_is_held_where_the_definition_states(
    unit: str, held: str, *, on_device: bool
) -> None:
    """Both are allowed for every unit that has a running value."""
    collection = one(f'{LAST}\nunit = "{unit}"\nheld = "{held}"')

    assert (collection.held, collection.held_on_device) == (held, on_device)


def test_a_day_is_held_by_the_process_by_default() -> None:
    """As it was before the key: most days of most apps are one process, or few."""
    collection = one(f'{LAST}\nunit = "day"')

    assert collection.held is None
    assert not collection.held_on_device


@pytest.mark.parametrize("unit", ["event", "day", *LONG])
@pytest.mark.parametrize("held", Held)
def test_a_true_value_may_be_held_of_every_unit(unit: str, held: Held) -> None:
    """It waits for its own instant, of whatever unit, and whichever value it is."""
    assert one(f'{CURATED}\nunit = "{unit}"\nheld = "{held}"').held is held


@pytest.mark.parametrize("unit", LONG)
def test_a_file_of_an_earlier_release_means_process(unit: str) -> None:
    """It had no `held`: its series goes on, read as it was meant."""
    text = file(f'{LAST}\nunit = "{unit}"')
    read = parse_collections(text, no_values, legacy=True)["q"]

    assert read.held is Held.PROCESS
    assert read.fingerprint == one(f'{LAST}\nunit = "{unit}"\nheld = "process"').fingerprint
    with pytest.raises(DefinitionError, match=r"held = \(missing\)"):
        parse_collections(text, no_values)


def test_a_file_of_an_earlier_release_may_be_loaded_from_the_disk(tmp_path: Path) -> None:
    """For comparing a new file with the one that devices have."""
    path = tmp_path / "old.toml"
    path.write_text(file(LAST), encoding="utf-8")

    assert load_collections(path, legacy=True)["q"].held is Held.PROCESS
    with pytest.raises(DefinitionError, match=r"held = \(missing\)"):
        load_collections(path)


def test_what_is_stated_counts_in_a_file_of_an_earlier_release_too() -> None:
    """Only what is missing is filled in, and only where it is needed."""
    stated = parse_collections(file(f'{LAST}\nheld = "device"'), no_values, legacy=True)["q"]
    first = parse_collections(file("boolean = true"), no_values, legacy=True)["q"]

    assert (stated.held, first.held) == (Held.DEVICE, None)


@pytest.mark.parametrize(
    ("lines", "meaning"),
    [
        ('held = "process"', "the answer is about the first process that recorded in the period"),
        ('held = "process"', "in memory only, and lost with the process if it is killed"),
        (
            'held = "device"',
            "the running value is kept on the device's disk, readable by the app's",
        ),
        ('held = "device"', "user only, until it is frozen, forgotten or withdrawn"),
    ],
)
def test_held_is_explained(lines: str, meaning: str) -> None:
    assert meaning in describe_held(one(f"{LAST}\n{lines}"))


@pytest.mark.parametrize(
    ("lines", "meaning"),
    [
        ("", "the true value is in memory only, and lost with the process if it is killed"),
        ('held = "process"', "the true value is in memory only"),
        ('held = "device"', "the true value is kept on the device's disk"),
        ('held = "device"', "until it is delivered, forgotten or withdrawn"),
        ('takes = "last"\nheld = "device"', "the running value is kept on the device's disk"),
    ],
)
def test_held_is_explained_of_a_true_value(lines: str, meaning: str) -> None:
    assert meaning in describe_held(one(f"{CURATED}\n{lines}"))


def test_nothing_is_explained_where_no_value_waits() -> None:
    """A first value is frozen as it is recorded."""
    assert describe_held(one("boolean = true")) == ""


def test_a_central_collection_hides_taking_part_unless_told_otherwise() -> None:
    """Add-remove is the default adjacency."""
    assert Adjacency.ADD_REMOVE is one('boolean = true\nmodel = "central"').adjacency


@pytest.mark.parametrize(
    "lines",
    [
        "epsilon = 16",
        "epsilon = 0.000001",
        "late = 0",
        "late = 365",
        "answers = 12",
        "from = 2000-01-01\nuntil = 2000-01-02",
        "unit = 'user'\nuntil = 2126-12-02",
        "unit = 'week'\nfrom = 2999-01-01\nuntil = 2999-12-31",
        "unit = 'event'\nper_day = 1024",
        f"question = '{'x' * 300}'",
        "cohort = {draw = 'd', of = 1024, number = 1023}",
        "cohort = {draw = 'd', of = 2, number = 0}",
        f"segments = {{a = [1, 2], b = {list(range(16))}}}",
        f"cross = {{a = ['{'x' * 200}', 'y']}}",
        f"cross = {{a = [{2**53 - 1}, {1 - 2**53}]}}",
        f"replaces = '{'x' * 63}'",
    ],
)
def test_a_limit_itself_is_allowed(lines: str) -> None:
    """Only what lies beyond it is refused."""
    assert len(one("boolean = true\n" + lines).fingerprint) == 64


# -- the three figures -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "event", "day", "user"),
    [
        ('unit = "event"', 1, 1, 365),
        ('unit = "event"\nper_day = 2', 1, 2, 730),
        ('unit = "event"\nanswers = 7', 1, 1, 7),
        ('unit = "event"\nanswers = 7\nper_day = 3', 1, 3, 21),
        ('unit = "day"', 1, 1, 365),
        ('unit = "day"\nanswers = 30', 1, 1, 30),
        ('unit = "week"', 1, 1, 53),  # 2026-12-01 is a Tuesday: both ends are cut
        ('unit = "week"\nanswers = 1', 1, 1, 1),
        ('unit = "month"', 1, 1, 12),
        ('unit = "month"\nanswers = 5', 1, 1, 5),
        ('unit = "user"', 1, 1, 1),
        ('unit = "user"\nanswers = 1', 1, 1, 1),
    ],
)
def test_the_three_figures_follow_from_unit_answers_and_per_day(
    lines: str, event: int, day: int, user: int
) -> None:
    """Day = epsilon x per_day, user = day x answering periods."""
    assert (event, day, user) == figures(one("boolean = true\n" + lines))


def test_a_central_collection_spends_its_budget_in_place_of_epsilon() -> None:
    """All releases of a period together cost one budget."""
    collection = one('boolean = true\nmodel = "central"\nbudget = 0.5')

    assert (Fraction(1, 2), Fraction(1, 2), 6) == figures(collection)


# -- linkage and slots -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "linkage"),
    [
        ("event", Linkage.PERIOD),
        ("day", Linkage.PERIOD),
        ("week", Linkage.COLLECTION),
        ("month", Linkage.COLLECTION),
        ("user", Linkage.COLLECTION),
    ],
)
def test_short_units_link_a_period_and_long_units_the_collection(
    unit: str, linkage: Linkage
) -> None:
    """The default reaches as far as the server needs to enforce a cap at little linkage."""
    assert linkage is one(f'boolean = true\nunit = "{unit}"').linkage


@pytest.mark.parametrize(
    ("lines", "slots"),
    [
        ('unit = "month"', 12),
        ('unit = "month"\nlinkage = "period"', 1),
        ('unit = "month"\nlinkage = "none"', 1),
        ('unit = "event"\nper_day = 4', 4),
        ('unit = "event"\nper_day = 1024', 1024),
        ('unit = "event"\nper_day = 2\nlinkage = "collection"', 730),
        ('unit = "event"\nper_day = 4\nlinkage = "none"', 1),
        ('unit = "day"\nuntil = 2029-09-20\nlinkage = "collection"', 1024),
        ('unit = "user"', 1),
    ],
)
def test_an_epoch_has_the_slots_that_its_linkage_reaches(lines: str, slots: int) -> None:
    """Collection: every answer of the campaign; period: those of one; none: a single one."""
    assert slots == one("boolean = true\n" + lines).slots


# -- segments --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "segments",
    ['{arm = ["A", "B"], major = [7, 8, 9]}', '{major = [7, 8, 9], arm = ["A", "B"]}'],
)
def test_segments_are_numbered_in_mixed_radix_the_first_name_highest(segments: str) -> None:
    """The cells of {arm: 2, major: 3} count 0..5, in whatever order the file has the names."""
    collection = one(f"boolean = true\nsegments = {segments}")
    cells = [collection.segment(arm=arm, major=major) for arm in "AB" for major in (7, 8, 9)]

    assert (collection.cells, cells) == (6, [0, 1, 2, 3, 4, 5])
    assert collection.segments == (("arm", ("A", "B")), ("major", (7, 8, 9)))


def test_a_collection_without_segments_has_one_cell() -> None:
    """Everybody is in cell 0."""
    collection = one("boolean = true")

    assert (collection.cells, collection.segment()) == (1, 0)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"arm": "C", "major": 1}, "arm"),
        ({"arm": "A"}, "major"),
        ({}, "arm"),
        ({"arm": "A", "major": "1"}, "major"),
        ({"arm": None, "major": 1}, "arm"),
        ({"arm": "A", "major": 1, "minor": 2}, "minor"),
    ],
)
def test_a_segment_that_is_not_declared_is_refused_by_name(
    given: dict[str, object], name: str
) -> None:
    """Missing, unknown or of another value: the error says which."""
    collection = one('boolean = true\nsegments = {arm = ["A", "B"], major = [1, 2]}')
    with pytest.raises(UnknownSegment, match=name) as caught:
        collection.segment(**given)

    assert name == caught.value.name


def test_a_segment_may_have_any_name_that_a_definition_may_give_it() -> None:
    """Not even `self` is taken."""
    collection = one('boolean = true\nsegments = {self = ["A", "B"]}')

    assert collection.segment(self="B") == 1


# -- domains ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("boolean", 2),
        ("choice", 3),
        ("integers", 3),
        ("other", 3),
        ("plane", 400),
        ("cross", 12),
        ("mean", GRID + 1),
        ("distribution", GRID + 1),
    ],
)
def test_a_domain_has_as_many_inputs_as_values(kind: str, size: int) -> None:
    """`other` counts, a crossing multiplies, a number lies on its grid."""
    assert size == one(KINDS[kind]).domain.size


@pytest.mark.parametrize(
    "cross",
    ['{plan = ["free", "paid"], tier = [1, 2, 3]}', '{tier = [1, 2, 3], plan = ["free", "paid"]}'],
)
def test_a_crossing_numbers_its_combinations_with_the_answer_highest(cross: str) -> None:
    """The inputs of {no, yes} x {free, paid} x {1, 2, 3} count 0..11: answer, then names."""
    domain, randomness = one(f"boolean = true\ncross = {cross}").domain, SeededRandomSource(1)
    assert isinstance(domain, Cross)
    places = [domain.input(label, randomness) for label in domain.labels]

    assert (list(range(12)), (True, "paid", 3)) == (places, domain.labels[-1])


#: what may stand within a label or a text though str.isprintable() says no
VISIBLE = {
    "no-break space": "10\u00a0km",
    "narrow no-break space": "10\u202fkm",
    "emoji joined of three": "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "unassigned": "a\u0378b",
    "private use": "a\ue000b",
}


@pytest.mark.parametrize("label", VISIBLE.values(), ids=VISIBLE)
def test_a_label_may_hold_joined_emoji_fixed_spaces_and_what_unicode_has_yet_to_name(
    label: str,
) -> None:
    """What Python knows of Unicode must not decide which definitions are right."""
    assert one(f'values = ["a", "{label}"]').domain == Choice(("a", label))
    assert one(f'boolean = true\nsegments = {{arm = ["a", "{label}"]}}').segment(arm=label) == 1


@pytest.mark.parametrize("text", VISIBLE.values(), ids=VISIBLE)
@pytest.mark.parametrize("key", ["question", "owner", "purpose"])
def test_a_text_may_hold_joined_emoji_fixed_spaces_and_what_unicode_has_yet_to_name(
    key: str, text: str
) -> None:
    """As a label may."""
    assert getattr(one(f'boolean = true\n{key} = "{text}"'), key) == text


def test_hidden_presence_adds_one_input() -> None:
    """An absent answer has a cell of its own, the last."""
    hidden, public = one(KINDS["choice"] + '\npresence = "hidden"'), one(KINDS["choice"])

    assert (hidden.inputs, public.inputs) == (4, 3)
    assert (hidden.domain.size, public.domain.size) == (3, 3)


def test_an_absent_answer_is_a_valid_message_where_presence_is_hidden() -> None:
    """It looks like any other."""
    hidden = one(KINDS["choice"] + '\npresence = "hidden"')
    randomness = SeededRandomSource(2)

    assert all(hidden.mechanism.valid(hidden.randomize_absent(randomness)) for _ in range(50))


def test_an_absent_answer_is_refused_where_presence_is_public() -> None:
    """There, nothing is sent."""
    with pytest.raises(TrustModelError):
        one(KINDS["choice"]).randomize_absent(SeededRandomSource(1))


# -- twins and cohorts -----------------------------------------------------------------------------

TWINS = {
    "near": """
        [near]
        question = "Is it used?"
        boolean = true
        epsilon = 1
        unit = "month"
        from = 2026-12-01
        until = 2027-12-01
        twin = "far"
        """,
    "far": """
        [far]
        question = "Is it used?"
        boolean = true
        model = "central"
        budget = 1
        unit = "month"
        from = 2026-12-01
        until = 2027-12-01
        """,
}


@pytest.mark.parametrize(
    ("near", "far"),
    [
        ("", 'held = "device"'),
        ("", 'held = "process"'),
        ('takes = "last"', 'takes = "last"\nheld = "process"'),
        ('takes = "last"\nheld = "device"', 'takes = "last"\nheld = "device"'),
    ],
)
def test_twins_report_the_same_value_wherever_the_curators_waits(near: str, far: str) -> None:
    """A first value is the same one, on the disk or in memory; a running value must be."""
    text = f"app = 'acme'\n{TWINS['near']}\n{near}\n{TWINS['far']}\n{far}"

    local, central = parse_collections(text.replace('"month"', '"day"'), no_values).values()

    assert local.twin == central.name


@pytest.mark.parametrize("order", [("near", "far"), ("far", "near")])
def test_each_twin_knows_the_other_in_either_order(order: tuple[str, str]) -> None:
    """Only the local one names it; the central one is told."""
    text = 'app = "acme"' + "".join(TWINS[name] for name in order)
    collections = parse_collections(text, no_values)

    assert (list(order), "far", "near") == (
        list(collections),
        collections["near"].twin,
        collections["far"].twin,
    )


@pytest.mark.parametrize(("near", "far"), [("", "answers = 12"), ("answers = 12\n", "")])
def test_twins_answer_alike_however_it_is_written(near: str, far: str) -> None:
    """Twelve of twelve months are all of them."""
    text = 'app = "acme"' + TWINS["near"] + near + TWINS["far"] + far
    collections = parse_collections(text, no_values)

    assert {each.answering for each in collections.values()} == {12}


def test_twins_may_name_their_segments_and_attributes_in_another_order() -> None:
    """Their cells and inputs are the same all the same."""
    one_order = "cross = {p = [1, 2], r = [3, 4]}\nsegments = {a = [1, 2], b = [3, 4]}\n"
    other_order = "cross = {r = [3, 4], p = [1, 2]}\nsegments = {b = [3, 4], a = [1, 2]}\n"
    text = 'app = "acme"' + TWINS["near"] + one_order + TWINS["far"] + other_order
    near, far = parse_collections(text, no_values).values()

    assert (near.domain, near.segments) == (far.domain, far.segments)


def test_a_told_twin_changes_the_central_fingerprint() -> None:
    """The central series with a twin asks other persons than the one without."""
    alone = parse_collections('app = "acme"' + TWINS["far"], no_values)["far"]
    told = parse_collections('app = "acme"' + TWINS["near"] + TWINS["far"], no_values)["far"]

    assert alone.fingerprint != told.fingerprint


def test_collections_may_share_the_cohorts_of_one_draw() -> None:
    """Two of three cohorts, each in its own collection."""
    cohort = 'cohort = {{draw = "spring", of = 3, number = {}}}'
    text = file("boolean = true\n" + cohort.format(0)).replace("[q]", "[p]")
    text += file("boolean = true\n" + cohort.format(2)).replace('app = "acme"', "")

    assert [
        collection.cohort.number
        for collection in parse_collections(text, no_values).values()
        if collection.cohort
    ] == [0, 2]


# -- values_file -----------------------------------------------------------------------------------


def with_values(folder: Path, raw: bytes, name: str = "words.txt") -> Path:
    """Write a definitions file and the value list it names; return the former."""
    place = folder / name
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(raw)
    definitions = folder / "collections.toml"
    definitions.write_text(file(f'values_file = "{name}"'), encoding="utf-8")
    return definitions


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        (b"yes\nno\n", ("yes", "no")),
        (b"yes\nno", ("yes", "no")),
        (b"yes\r\nno\r\n", ("yes", "no")),
        (b"yes\r\nno", ("yes", "no")),
        ("ja\nn\u00f6\n".encode(), ("ja", "n\u00f6")),
        (b"1\n2\n", ("1", "2")),
        (b"\xef\xbb\xbfyes\nno\n", ("yes", "no")),
        (b"\xef\xbb\xbfyes\r\nno", ("yes", "no")),
    ],
)
def test_a_values_file_is_one_value_a_line_however_lines_end(
    tmp_path: Path, raw: bytes, values: tuple[str, ...]
) -> None:
    """A newline at the end adds no value, nor a mark at the beginning; digits stay strings."""
    assert Choice(values) == load_collections(with_values(tmp_path, raw))["q"].domain


def test_a_values_file_lies_relative_to_the_definitions_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not to where the process happens to run."""
    definitions = with_values(tmp_path, b"yes\nno\n", "lists/words.txt")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    assert Choice(("yes", "no")) == load_collections(definitions)["q"].domain


def test_values_in_a_file_and_in_the_definition_are_the_same_series(tmp_path: Path) -> None:
    """Where the list is written does not count, what it says does."""
    listed = load_collections(with_values(tmp_path, b"yes\nno\n"))["q"]

    assert one('values = ["yes", "no"]').fingerprint == listed.fingerprint


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"yes\nn\xf6\n", "not UTF-8"),
        (b"yes\nno\nyes\n", "twice"),
        (b"yes\n\nno\n", "1 to 200 characters"),
        (b"yes\nno\n\n", "1 to 200 characters"),
        (b"yes \nno\n", "no space around"),
        (b"yes\nn\to\n", "control characters"),
        (b"yes\n", "at least two"),
        (b"", "at least two"),
        (b"x" * 201 + b"\nno\n", "1 to 200 characters"),
    ],
)
def test_a_values_file_with_a_wrong_line_is_refused(tmp_path: Path, raw: bytes, why: str) -> None:
    """Under the key that stands in the definitions file."""
    with pytest.raises(DefinitionError, match=why) as caught:
        load_collections(with_values(tmp_path, raw))

    assert (
        caught.value.key,
        caught.value.collection,
        caught.value.file,
    ) == ("values_file", "q", "collections.toml")


@pytest.mark.parametrize("name", ["missing.txt", ".", "", "no/such/folder.txt", r"a\u0000b"])
def test_a_values_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    """Missing, a folder, or no name that a file could have."""
    definitions = tmp_path / "collections.toml"
    definitions.write_text(file(f'values_file = "{name}"'), encoding="utf-8")
    with pytest.raises(DefinitionError, match="cannot be read") as caught:
        load_collections(definitions)

    assert (caught.value.key, caught.value.collection) == ("values_file", "q")


def test_a_huge_values_file_is_refused_without_being_read_to_its_end(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 stand behind the first line too many, and are never met."""
    definitions = with_values(tmp_path, b"x\n" * (MAX_VALUES + 100_000) + b"\xff" * 10_000_000)
    with pytest.raises(DefinitionError, match="at most 1,000,000") as caught:
        load_collections(definitions)

    assert caught.value.key == "values_file"


def test_a_million_values_are_accepted(tmp_path: Path) -> None:
    """The limit itself is allowed."""
    lines = "\n".join(map(str, range(MAX_VALUES)))

    assert load_collections(with_values(tmp_path, lines.encode()))["q"].domain.size == MAX_VALUES


def test_a_definitions_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Some editors write one, and nobody sees it."""
    definitions = with_values(tmp_path, b"\xef\xbb\xbfyes\nno\n")
    plain = load_collections(definitions)
    definitions.write_bytes(b"\xef\xbb\xbf" + definitions.read_bytes())

    assert load_collections(definitions) == plain


@pytest.mark.parametrize("raw", [None, b"\xff\xfe"])
def test_a_definitions_file_that_cannot_be_read_is_refused(
    tmp_path: Path, raw: bytes | None
) -> None:
    """Missing, or not UTF-8: the file is named."""
    definitions = tmp_path / "collections.toml"
    if raw is not None:
        definitions.write_bytes(raw)
    with pytest.raises(DefinitionError, match=r"collections\.toml.*cannot be read"):
        load_collections(definitions)


# -- the doors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["boolean", "choice", "cross"])
def test_randomize_is_refused_on_a_central_collection(kind: str) -> None:
    """A curator takes the true value, by the door that says so."""
    with pytest.raises(TrustModelError, match="use reveal"):
        one(KINDS[kind] + '\nmodel = "central"').randomize(True, SeededRandomSource(1))


@pytest.mark.parametrize("kind", KINDS)
def test_reveal_is_refused_on_a_local_collection(kind: str) -> None:
    """No true value leaves where noise was promised."""
    with pytest.raises(TrustModelError, match="use randomize"):
        one(KINDS[kind]).reveal(1, SeededRandomSource(1))


@pytest.mark.parametrize(
    ("lines", "value", "message"),
    [
        ("boolean = true", True, 1),
        ('values = ["a", "b", "c"]', "c", 2),
        (KINDS["cross"], (True, "paid", 3), 11),
        ("range = [-10, 10]", -10, 0),
        ("range = [-10, 10]", 0, 10),
        ("range = [-10, 10]", 2.4, 12),
        ("range = [-10, 10]", 2.6, 13),
        ("range = [-10, 10]", 1e9, 20),
        (f"range = [0, {(1 << 20) - 1}]", 777_777, 777_777),
    ],
)
def test_reveal_returns_the_true_input(lines: str, value: object, message: int) -> None:
    """A number is rounded to the nearest integer of its range, and clamped."""
    collection = one(lines + '\nmodel = "central"')

    assert message == collection.reveal(value, SeededRandomSource(1))


class Hostile:
    """A value whose every method raises."""

    def __hash__(self) -> int:
        """Raise."""
        raise RuntimeError("no hash")

    def __eq__(self, other: object) -> bool:
        """Raise."""
        raise RuntimeError("no equality")

    def __float__(self) -> float:
        """Raise."""
        raise RuntimeError("no number")

    def __len__(self) -> int:
        """Raise."""
        raise RuntimeError("no length")

    def __repr__(self) -> str:
        """Raise."""
        raise RuntimeError("no text")


class Collides(str):
    """A label's double, with an equality that raises when the hashes meet."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        """Raise."""
        raise RuntimeError("no equality")


class UnwillingTuple(tuple[object, ...]):
    """A tuple that does not hand out its parts."""

    __slots__ = ()

    def __iter__(self) -> NoReturn:
        """Raise."""
        raise RuntimeError("no parts")


class UnwillingList(list[object]):
    """A list that neither hands out its parts nor counts them."""

    def __iter__(self) -> NoReturn:
        """Raise."""
        raise RuntimeError("no parts")

    def __len__(self) -> NoReturn:
        """Raise."""
        raise RuntimeError("no length")


class Uncounted(list[object]):
    """A list that hands out its parts and does not count them."""

    def __len__(self) -> NoReturn:
        """Raise."""
        raise RuntimeError("no length")


class Breaking(tuple[object, ...]):
    """A tuple that hands out one part, then raises."""

    __slots__ = ()

    def __iter__(self) -> Iterator[object]:
        """Yield True, then raise."""
        yield True
        raise RuntimeError("no more parts")


UNWILLING = [kind((True, "free", 1)) for kind in (UnwillingTuple, UnwillingList, Breaking)]

ODD: list[object] = [
    *UNWILLING,
    Uncounted((True, "free", 1)),
    None,
    True,
    0,
    -1,
    10**400,
    -(10**400),
    0.1,
    float("nan"),
    float("inf"),
    float("-inf"),
    1e308,
    5e-324,
    Decimal("0.3"),
    Decimal("1e9999"),
    Decimal("nan"),
    Decimal("snan"),
    Fraction(1, 3),
    1j,
    "a",
    "1",
    "",
    "\ud800",
    "x" * 100_000,
    b"a",
    bytearray(b"a"),
    memoryview(b"a"),
    UserString("a"),
    [],
    ["a"],
    [[]],
    (True, "free", 1),
    (True, "free", 1, "more"),
    ([], {}, set()),
    (None,),
    {"a": 1},
    {"a"},
    frozenset({"a"}),
    object(),
    object,
    print,
    NotImplemented,
    Ellipsis,
    Exception("a"),
    Hostile(),
    (Hostile(), Hostile(), Hostile()),
    Collides("a"),
    date(2026, 12, 1),
    range(3),
    Unit.DAY,
]


@pytest.mark.parametrize("kind", KINDS)
def test_randomize_never_raises_whatever_the_value(kind: str) -> None:
    """Whether a report exists must never depend on its value."""
    collection, randomness = one(KINDS[kind]), SeededRandomSource(3)
    messages = [collection.randomize(value, randomness) for value in ODD]

    assert all(map(collection.mechanism.valid, messages))


@pytest.mark.parametrize("kind", ["boolean", "choice", "other", "cross"])
def test_randomize_never_raises_where_presence_is_hidden(kind: str) -> None:
    """No value is ever taken for `absent`."""
    collection = one(KINDS[kind] + '\npresence = "hidden"')
    randomness = SeededRandomSource(4)

    assert all(collection.domain.input(value, randomness) < collection.inputs - 1 for value in ODD)
    assert all(collection.mechanism.valid(collection.randomize(value, randomness)) for value in ODD)


@pytest.mark.parametrize("kind", ["boolean", "choice", "other", "cross"])
def test_reveal_never_raises_whatever_the_value(kind: str) -> None:
    """The curator's door is as total as the other."""
    collection, randomness = one(KINDS[kind] + '\nmodel = "central"'), SeededRandomSource(5)

    assert all(collection.mechanism.valid(collection.reveal(value, randomness)) for value in ODD)


@pytest.mark.parametrize("value", UNWILLING, ids=lambda value: type(value).__name__)
def test_a_crossed_value_that_does_not_hand_out_its_parts_is_drawn_from_all(
    value: object,
) -> None:
    """As one that is missing: every combination comes up."""
    domain, randomness = one(KINDS["cross"]).domain, SeededRandomSource(7)

    assert {domain.input(value, randomness) for _ in range(500)} == set(range(12))


def test_an_integer_label_is_found_under_its_equals() -> None:
    """30, 30.0 and Fraction(30) are one value; "30" is none of them."""
    domain = one("values = [1, 2, 30]\nother = 'else'").domain
    found = [domain.input(value, SeededRandomSource(1)) for value in (30, 30.0, Fraction(30), "30")]

    assert found == [2, 2, 2, 3]


class Fixed(RandomSource):
    """Coins that never fall: whoever throws one fails the test."""

    __slots__ = ()

    def word(self) -> int:
        """Refuse."""
        raise AssertionError("a known value needs no coin")


def test_a_known_value_is_found_without_a_coin() -> None:
    """Only what fits nowhere is drawn."""
    domain = one('values = ["a", "b"]').domain

    assert domain.input("b", Fixed()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_comes_back_from_its_packed_form(kind: str) -> None:
    """At a fixed width, whatever the message."""
    collection, randomness = one(KINDS[kind]), SeededRandomSource(6)
    messages = [collection.randomize(1, randomness) for _ in range(20)]

    packed = [collection.pack(message) for message in messages]
    assert {collection.message_bytes} == set(map(len, packed))
    assert messages == [collection.unpack(raw) for raw in packed]


# -- the fingerprint -------------------------------------------------------------------------------

FULL = """
app = "acme"
[q]
question = "Which?"
values = ["a", "b", "c"]
other = "else"
cross = {plan = ["free", "paid"]}
epsilon = 1
unit = "week"
takes = "first"
from = 2026-12-01
until = 2027-12-01
answers = 10
late = 30
linkage = "collection"
presence = "public"
segments = {arm = ["A", "B"]}
cohort = {draw = "spring", of = 3, number = 0}
model = "local"
owner = "Ada"
purpose = "to decide"
replaces = "old"
"""
EVENTS = """
app = "acme"
[q]
question = "How long?"
range = [0, 240]
measure = "mean"
epsilon = 1
unit = "event"
per_day = 2
from = 2026-12-01
until = 2026-12-31
"""
CENTRAL = """
app = "acme"
[q]
question = "Is it?"
boolean = true
model = "central"
budget = 1
adjacency = "add-remove"
unit = "month"
from = 2026-12-01
until = 2027-12-01
"""
RUNNING = FULL.replace('takes = "first"', 'takes = "last"\nheld = "process"')
CHANGES = [
    (FULL, "app", '"acme2"'),
    (FULL, "values", '["a", "b", "d"]'),
    (FULL, "values", '["b", "a", "c"]'),
    (FULL, "values", '["a", "b"]'),
    (FULL, "other", '"rest"'),
    (FULL, "other", None),
    (FULL, "cross", '{plan = ["paid", "free"]}'),
    (FULL, "cross", '{tier = ["free", "paid"]}'),
    (FULL, "cross", None),
    (FULL, "epsilon", "1.000001"),
    (FULL, "unit", '"month"'),
    (FULL.replace('"week"', '"day"'), "takes", '"last"'),
    (RUNNING, "held", '"device"'),
    (FULL, "from", "2026-12-02"),
    (FULL, "until", "2027-12-02"),
    (FULL, "answers", "11"),
    (FULL, "answers", None),
    (FULL, "late", "31"),
    (FULL, "linkage", '"period"'),
    (FULL, "linkage", '"none"'),
    (FULL.replace('segments = {arm = ["A", "B"]}\n', ""), "presence", '"hidden"'),
    (FULL, "segments", '{arm = ["B", "A"]}'),
    (FULL, "segments", '{leg = ["A", "B"]}'),
    (FULL, "segments", None),
    (FULL, "cohort", '{draw = "spring", of = 3, number = 1}'),
    (FULL, "cohort", '{draw = "spring", of = 4, number = 0}'),
    (FULL, "cohort", '{draw = "autumn", of = 3, number = 0}'),
    (FULL, "cohort", None),
    (EVENTS, "range", "[0, 241]"),
    (EVENTS, "range", "[0.001, 240]"),
    (EVENTS, "measure", '"distribution"'),
    (EVENTS, "per_day", "3"),
    (CENTRAL, "budget", "2"),
    (CENTRAL, "adjacency", '"substitute"'),
    (CENTRAL, "boolean", None),
    (CENTRAL, "model", None),
]
SAME = [
    (FULL, "question", '"What now?"'),
    (FULL, "owner", '"Bob"'),
    (FULL, "owner", None),
    (FULL, "purpose", '"for fun"'),
    (FULL, "purpose", None),
    (FULL, "replaces", '"older"'),
    (FULL, "replaces", None),
    (FULL, "epsilon", "1.0"),
    (FULL, "epsilon", "10e-1"),
    (FULL, "takes", None),
    (RUNNING.replace('"week"', '"day"'), "held", None),
    (FULL, "late", None),
    (FULL, "linkage", None),
    (FULL, "presence", None),
    (FULL, "model", None),
    (EVENTS, "range", "[0.0, 240.00]"),
    (CENTRAL, "adjacency", None),
]


def fingerprint(text: str) -> str:
    """Return the fingerprint of the collection [q]."""
    return parse_collections(text, no_values)["q"].fingerprint


def changed(text: str, key: str, value: str | None) -> str:
    """Return a file with another value of one key, or without it."""
    lines = [line for line in text.splitlines() if not line.startswith(f"{key} = ")]
    assert len(lines) == len(text.splitlines()) - 1
    if key == "app":
        return f"app = {value}\n" + "\n".join(lines)
    if key == "model" and value is None:  # local: the other figure, and no adjacency
        return "\n".join(lines).replace("budget", "epsilon").replace('adjacency = "add-remove"', "")
    if key == "boolean" and value is None:
        lines.append('values = ["False", "True"]')
    return "\n".join([*lines, f"{key} = {value}" if value else ""])


@pytest.mark.parametrize(("text", "key", "value"), CHANGES)
def test_a_change_that_affects_privacy_or_decoding_is_another_series(
    text: str, key: str, value: str | None
) -> None:
    """Every such key is in the fingerprint."""
    assert fingerprint(text) != fingerprint(changed(text, key, value))


@pytest.mark.parametrize(("text", "key", "value"), SAME)
def test_a_change_of_words_only_is_the_same_series(text: str, key: str, value: str | None) -> None:
    """A question may be reworded, a default spelled out, a number written in another way."""
    assert fingerprint(text) == fingerprint(changed(text, key, value))


def test_the_tests_above_change_every_key_there_is() -> None:
    """So a new key cannot be forgotten here: values_file and twin have tests of their own."""
    tested = {key for _, key, _ in [*CHANGES, *SAME]} | {"values_file", "twin"}
    assert {*_DOMAIN_KEYS, *_READERS, "app"} == tested


def test_the_name_is_in_the_fingerprint() -> None:
    """A renamed collection is another series."""
    renamed = parse_collections(FULL.replace("[q]", "[p]"), no_values)["p"]

    assert fingerprint(FULL) != renamed.fingerprint


def test_answers_in_all_periods_is_the_same_series_as_no_answers() -> None:
    """What is fingerprinted is in how many periods a person answers."""
    assert one("boolean = true").fingerprint == one("boolean = true\nanswers = 12").fingerprint


@pytest.mark.parametrize("text", [FULL, EVENTS, CENTRAL])
def test_the_order_of_the_keys_does_not_count(text: str) -> None:
    """The same lines, last to first."""
    head, lines = text.splitlines()[1:3], text.splitlines()[3:]

    assert fingerprint(text) == fingerprint("\n".join([*head, *reversed(lines)]))


@pytest.mark.parametrize(
    ("lines", "reordered"),
    [
        (
            'segments = {arm = ["A", "B"], major = [1, 2]}',
            'segments = {major = [1, 2], arm = ["A", "B"]}',
        ),
        (
            'segments = {arm = ["A", "B"], major = [1, 2]}',
            '[q.segments]\nmajor = [1, 2]\narm = ["A", "B"]',
        ),
        (
            'cross = {plan = ["free", "paid"], tier = [1, 2]}',
            'cross = {tier = [1, 2], plan = ["free", "paid"]}',
        ),
        (
            'cross = {plan = ["free", "paid"], tier = [1, 2]}',
            'cross.tier = [1, 2]\ncross.plan = ["free", "paid"]',
        ),
        (
            'cohort = {draw = "spring", of = 3, number = 0}',
            'cohort = {number = 0, of = 3, draw = "spring"}',
        ),
    ],
)
def test_the_order_within_a_table_does_not_count(lines: str, reordered: str) -> None:
    """Two files that say the same are one series: TOML tables have no order."""
    plain = file("boolean = true")

    assert fingerprint(f"{plain}\n{lines}") == fingerprint(f"{plain}\n{reordered}")


def test_the_order_within_a_list_counts() -> None:
    """A list has one, and cells and inputs follow it."""
    prints = {
        one(f"boolean = true\n{table} = {{a = {values}, b = [1, 2]}}").fingerprint
        for table in ("segments", "cross")
        for values in ("[1, 2]", "[2, 1]")
    }

    assert len(prints) == 4


@pytest.mark.parametrize("unit", Unit)
def test_one_answer_a_day_may_be_said_of_every_unit(unit: Unit) -> None:
    """It is what they have anyway, and the same series as without."""
    lines = f'boolean = true\nunit = "{unit}"'

    assert one(f"{lines}\nper_day = 1").fingerprint == one(lines).fingerprint


def test_labels_that_look_alike_are_different_series() -> None:
    """1 and "1" are different values, and so are two ways to cut a list."""
    prints = {
        one(f"values = {values}").fingerprint
        for values in ("[1, 2]", '["1", "2"]', '["1,2", "3"]', '["1", "2", "3"]', '["1", "2,3"]')
    }

    assert len(prints) == 5


@pytest.mark.parametrize(
    "key", ["unit", "measure", "takes", "held", "linkage", "presence", "model", "adjacency"]
)
def test_a_definition_made_in_python_uses_the_closed_lists(key: str) -> None:
    """A plain string is none of their words, and would silently mean the default."""
    with pytest.raises(DefinitionError, match=rf'{key} = "central": give one of \w+\.\w+'):
        replace(one("boolean = true"), **{key: "central"})  # type: ignore[arg-type] # the point
