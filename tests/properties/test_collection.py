"""What a collection computes: its three epsilons, slots, segments, inputs and messages."""

from __future__ import annotations

from fractions import Fraction

import pytest

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.collection import Linkage, parse_collections
from veilcount_shared.errors import TrustModelError, UnknownSegment
from veilcount_shared.periods import Unit

from .definition_harness import (
    KINDS,
    TWINS,
    definition_file,
    epsilons,
    no_values_file,
    parse_definition,
)
from .hostile_values import ODD, UNREADABLE

BOOLEAN = "boolean = true\n"


@pytest.mark.parametrize(
    ("lines", "event", "day", "user"),
    [
        ('unit = "event"\nper_day = 2', 1, 2, 730),
        ('unit = "event"\nanswers = 7\nper_day = 3', 1, 3, 21),
        ('unit = "day"', 1, 1, 365),
        ('unit = "week"', 1, 1, 53),  # 2026-12-01 is a Tuesday: both ends are cut
        ('unit = "month"\nanswers = 5', 1, 1, 5),
        ('unit = "user"', 1, 1, 1),
        ('model = "central"\nbudget = 0.5', Fraction(1, 2), Fraction(1, 2), 6),
    ],
)
def test_epsilon_a_day_is_times_per_day_and_a_user_times_answering_periods(
    lines: str, event: int | Fraction, day: int | Fraction, user: int
) -> None:
    assert epsilons(parse_definition(BOOLEAN + lines)) == (event, day, user)


def test_by_default_short_units_link_a_period_and_long_units_the_collection() -> None:
    """The default reaches as far as the server needs to enforce a cap at little linkage."""
    linkages = [parse_definition(f'{BOOLEAN}unit = "{unit}"').linkage for unit in Unit]

    assert linkages == [Linkage.PERIOD] * 2 + [Linkage.COLLECTION] * 3


@pytest.mark.parametrize(
    ("lines", "slots"),
    [
        ('unit = "month"', 12),
        ('unit = "month"\nlinkage = "period"', 1),
        ('unit = "event"\nper_day = 1024', 1024),
        ('unit = "event"\nper_day = 2\nlinkage = "collection"', 730),
        ('unit = "event"\nper_day = 4\nlinkage = "none"', 1),
        ('unit = "day"\nuntil = 2029-09-20\nlinkage = "collection"', 1024),
    ],
)
def test_an_epoch_has_as_many_slots_as_reports_that_are_linked(lines: str, slots: int) -> None:
    assert parse_definition(BOOLEAN + lines).slots == slots


# -- segments and inputs ---------------------------------------------------------------------------

SEGMENTS = 'segments = {arm = ["A", "B"], major = [7, 8, 9]}'
REORDERED = 'segments = {major = [7, 8, 9], arm = ["A", "B"]}'


def test_true_is_no_segment_though_it_equals_1() -> None:
    collection = parse_definition(BOOLEAN + "segments = {major = [0, 1]}")

    assert collection.segment(major=1) == 1
    with pytest.raises(UnknownSegment, match="major"):
        collection.segment(major=True)


@pytest.mark.parametrize("segments", [SEGMENTS, REORDERED])
def test_segments_are_numbered_in_mixed_radix_the_first_name_highest(segments: str) -> None:
    collection, none = parse_definition(BOOLEAN + segments), parse_definition(BOOLEAN)
    named_self = parse_definition(BOOLEAN + 'segments = {self = ["A", "B"]}')
    cells = [collection.segment(arm=arm, major=major) for arm in "AB" for major in (7, 8, 9)]

    assert (collection.cells, cells) == (6, [0, 1, 2, 3, 4, 5])
    assert collection.segments == (("arm", ("A", "B")), ("major", (7, 8, 9)))
    assert (none.cells, none.segment()) == (1, 0)
    assert named_self.segment(self="B") == 1


@pytest.mark.parametrize(
    ("labels", "name", "problem"),
    [
        ({"arm": "C", "major": 7}, "arm", "not listed"),
        ({"arm": "A"}, "major", "missing"),
        ({"arm": None, "major": 7}, "arm", "not listed"),
        ({"arm": "A", "major": "7"}, "major", "not listed"),
        ({"arm": "A", "major": 7, "minor": 2}, "minor", "not declared"),
        ({"arm": "A", "mayor": 7}, "mayor", "not declared"),
    ],
)
def test_a_wrong_segment_is_refused_by_name_and_cause(
    labels: dict[str, object], name: str, problem: str
) -> None:
    with pytest.raises(UnknownSegment, match=name) as caught:
        parse_definition(BOOLEAN + SEGMENTS).segment(**labels)
    causes = [
        each for each in ("missing", "not declared", "not listed") if each in str(caught.value)
    ]

    assert caught.value.name == name
    assert causes == [problem]


def test_hidden_presence_adds_one_input_to_those_of_the_domain() -> None:
    public = parse_definition(KINDS["choice"])
    hidden = parse_definition(KINDS["choice"] + '\npresence = "hidden"')
    randomness = SeededRandomSource(2)

    assert (public.inputs, hidden.inputs, hidden.domain.size) == (3, 4, 3)
    assert all(hidden.mechanism.valid(hidden.randomize_absent(randomness)) for _ in range(50))
    with pytest.raises(TrustModelError):
        public.randomize_absent(randomness)


# -- twins and cohorts -----------------------------------------------------------------------------

CROSSED = "cross = {p = [1, 2], r = [3, 4]}\nsegments = {a = [1, 2], b = [3, 4]}\n"
CROSSED_REORDERED = "cross = {r = [3, 4], p = [1, 2]}\nsegments = {b = [3, 4], a = [1, 2]}\n"


@pytest.mark.parametrize(
    ("near", "far"),
    [
        ("", ""),
        ("", 'held = "device"'),
        ("", 'held = "process"'),
        ('takes = "last"', 'takes = "last"\nheld = "process"'),
        ('takes = "last"\nheld = "device"', 'takes = "last"\nheld = "device"'),
        ("", "answers = 365"),
        ("answers = 365", ""),
        (CROSSED, CROSSED_REORDERED),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_twins_are_linked_both_ways_if_they_ask_the_same(near: str, far: str, order: int) -> None:
    """However it is written, in either order; a first value may be held anywhere."""
    tables = [f"{TWINS['near']}\n{near}\n", f"{TWINS['far']}\n{far}\n"][::order]
    text = "app = 'acme'\n" + "".join(tables).replace('"month"', '"day"')
    collections = parse_collections(text, no_values_file)
    local, central = collections["near"], collections["far"]

    assert list(collections) == ["near", "far"][::order]
    assert (local.twin, central.twin) == ("far", "near")
    assert (local.domain, local.segments) == (central.domain, central.segments)
    assert local.answering == central.answering == 365


def test_collections_may_share_the_cohorts_of_one_draw() -> None:
    cohort = BOOLEAN + 'cohort = {{draw = "spring", of = 3, number = {}}}'
    text = definition_file(cohort.format(0)).replace("[q]", "[p]")
    text += definition_file(cohort.format(2)).replace('app = "acme"', "")
    cohorts = [collection.cohort for collection in parse_collections(text, no_values_file).values()]

    assert [cohort and cohort.number for cohort in cohorts] == [0, 2]


# -- randomize and reveal --------------------------------------------------------------------------

CENTRAL = '\nmodel = "central"'
LABELLED = ("boolean", "choice", "other", "cross")


@pytest.mark.parametrize("kind", KINDS)
def test_randomize_never_raises_whatever_the_value(kind: str) -> None:
    collection, randomness = parse_definition(KINDS[kind]), SeededRandomSource(3)

    assert all(collection.mechanism.valid(collection.randomize(value, randomness)) for value in ODD)
    with pytest.raises(TrustModelError, match="use randomize"):
        collection.reveal(1, randomness)


@pytest.mark.parametrize("kind", LABELLED)
def test_reveal_never_raises_and_no_value_is_taken_for_absent(kind: str) -> None:
    central, randomness = parse_definition(KINDS[kind] + CENTRAL), SeededRandomSource(4)
    hidden = parse_definition(KINDS[kind] + '\npresence = "hidden"')

    assert all(central.mechanism.valid(central.reveal(value, randomness)) for value in ODD)
    assert all(hidden.mechanism.valid(hidden.randomize(value, randomness)) for value in ODD)
    assert all(hidden.domain.input(value, randomness) < hidden.inputs - 1 for value in ODD)
    with pytest.raises(TrustModelError, match="use reveal"):
        central.randomize(True, randomness)


@pytest.mark.parametrize(
    ("lines", "value", "message"),
    [
        ("boolean = true", True, 1),
        (KINDS["cross"], (True, "paid", 3), 11),
        ("range = [-10, 10]", -10, 0),
        ("range = [-10, 10]", 2.4, 12),
        ("range = [-10, 10]", 2.6, 13),
        ("range = [-10, 10]", 1e9, 20),
        (f"range = [0, {(1 << 20) - 1}]", 777_777, 777_777),
    ],
)
def test_reveal_returns_the_true_input_a_number_rounded_and_clamped(
    lines: str, value: object, message: int
) -> None:
    assert parse_definition(lines + CENTRAL).reveal(value, SeededRandomSource(1)) == message


@pytest.mark.parametrize("value", UNREADABLE, ids=["tuple", "list", "breaking"])
def test_a_crossed_value_whose_parts_cannot_be_read_is_drawn_from_all(value: object) -> None:
    domain, randomness = parse_definition(KINDS["cross"]).domain, SeededRandomSource(7)

    assert {domain.input(value, randomness) for _ in range(500)} == set(range(12))


def test_an_integer_label_equals_numbers_of_other_types_but_no_text() -> None:
    domain = parse_definition("values = [1, 2, 30]\nother = 'else'").domain
    values = (30, 30.0, Fraction(30), "30")

    assert [domain.input(value, SeededRandomSource(1)) for value in values] == [2, 2, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_survives_packing_at_a_fixed_width(kind: str) -> None:
    collection, randomness = parse_definition(KINDS[kind]), SeededRandomSource(6)
    messages = [collection.randomize(1, randomness) for _ in range(20)]
    packed = [collection.pack(message) for message in messages]

    assert set(map(len, packed)) == {collection.message_bytes}
    assert [collection.unpack(raw) for raw in packed] == messages
