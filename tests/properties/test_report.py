"""Which reports are valid at all, and which of them a definition accepts."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.definition_harness import parse_definition
from tests.report_check import (
    PeriodOutOfRange,
    SegmentOutOfRange,
    SlotOutOfRange,
    WrongSeries,
    check_report,
)
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection
from veilcount_shared.collection import Linkage, Model
from veilcount_shared.errors import (
    BadField,
    MessageOutOfRange,
    ReportError,
    WireError,
    WrongLength,
)
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    Identity,
    MeanMechanism,
    ProjectiveGeometry,
    SubsetSelection,
)
from veilcount_shared.report import (
    MAX_MESSAGE,
    MAX_PADDING,
    MAX_PERIODS,
    MAX_REPORTS,
    MAX_SERIES,
    PSEUDONYM_BYTES,
    Batch,
    Losses,
    Report,
)
from veilcount_shared.schedule import SECRET_BYTES, derive_pseudonym, draw_slot

DEFINITIONS = {  # name -> its lines
    "collected": f"""values = {list("abcdefghijklmnopq")}
unit = "event"
per_day = 3
linkage = "collection"
segments = {{arm = ["A", "B", "C"], app = ["1", "2"]}}""",
    "by_period": 'values = ["light", "dark", "system"]\nepsilon = 2\nunit = "event"\nper_day = 3',
    "unlinked": 'boolean = true\nunit = "event"\nper_day = 3\nlinkage = "none"',
    "months": 'boolean = true\npresence = "hidden"\nuntil = 2027-12-01',
    "members": f"values = {list(range(140))}\nepsilon = 4",
    "plane": f"values = {list(range(1000))}",
    "mean": 'range = [0, 240]\nmeasure = "mean"',
    "distribution": 'range = [0, 240]\nmeasure = "distribution"',
    "curated": 'values = ["light", "dark", "system"]\nmodel = "central"',
}


def five_days(name: str) -> Collection:
    lines = DEFINITIONS[name] + ("" if "until" in DEFINITIONS[name] else "\nuntil = 2026-12-06")
    lines += "" if "unit" in lines or name == "months" else '\nunit = "day"'
    return replace(parse_definition(lines), name=name)


COLLECTIONS = {name: five_days(name) for name in DEFINITIONS}

every = pytest.mark.parametrize("name", COLLECTIONS)


def report_of(name: str, **other: Any) -> Report:
    """Return a report that its definition accepts, but for the fields that are replaced."""
    collection = COLLECTIONS[name]
    allowed: dict[str, Any] = {
        "fingerprint": collection.fingerprint,
        "period": 0,
        "segment": 0,
        "pseudonym": bytes(PSEUDONYM_BYTES),
        "slot": 0,
        "message": collection.pack(message_of(collection, 0)),
    }
    return Report(**{**allowed, **other})


def message_of(collection: Collection, seed: int) -> int:
    encode = collection.reveal if collection.model is Model.CENTRAL else collection.randomize
    return encode(0, SeededRandomSource(seed))


def refused(report: Report, name: str) -> ReportError:
    """Return the error with which the definition refuses, whose text quotes no message."""
    with pytest.raises(ReportError) as caught:
        check_report(report, COLLECTIONS[name])

    assert report.message.hex() not in str(caught.value)
    assert report.pseudonym.hex() not in str(caught.value)
    return caught.value


# -- what a definition accepts ---------------------------------------------------------------------


def test_the_definitions_here_cover_every_mechanism_and_linkage() -> None:
    mechanisms = {type(collection.mechanism) for collection in COLLECTIONS.values()}
    shapes = {
        (mechanism.w > 1, mechanism.masked)
        for collection in COLLECTIONS.values()
        if isinstance(mechanism := collection.mechanism, SubsetSelection)
    }

    assert {
        SubsetSelection,
        ProjectiveGeometry,
        MeanMechanism,
        DistributionMechanism,
        Identity,
    } == mechanisms
    assert {(False, False), (True, False), (True, True)} == shapes
    assert set(Linkage) == {collection.linkage for collection in COLLECTIONS.values()}


@every
@given(seed=st.integers(0, 2**32), answer=st.integers(0, 2), data=st.data())
def test_every_report_of_a_device_is_accepted(
    name: str, seed: int, answer: int, data: st.DataObject
) -> None:
    collection, randomness = COLLECTIONS[name], SeededRandomSource(seed)
    period = data.draw(st.integers(0, collection.periods - 1))
    secret = seed.to_bytes(SECRET_BYTES, "big")
    message = message_of(collection, seed)
    report = Report(
        collection.fingerprint,
        period,
        data.draw(st.integers(0, collection.cells - 1)),
        derive_pseudonym(secret, collection, period, randomness),
        draw_slot(secret, collection, period, answer % collection.per_period),
        collection.pack(message),
    )

    assert message == check_report(report, collection)


@every
def test_a_report_of_another_series_is_refused(name: str) -> None:
    """Before anything else is read in it: all else has another meaning there."""
    report = report_of(name, fingerprint="0" * 64, period=MAX_PERIODS - 1, slot=1023, segment=31)

    assert type(refused(report, name)) is WrongSeries


@every
def test_a_period_or_segment_after_the_last_is_refused(name: str) -> None:
    collection = COLLECTIONS[name]
    last, cells = collection.periods - 1, collection.cells
    own = last * collection.per_period if collection.linkage is Linkage.COLLECTION else 0

    for accepted in (report_of(name, period=last, slot=own), report_of(name, segment=cells - 1)):
        assert check_report(accepted, collection) is not None
    assert type(refused(report_of(name, period=last + 1, slot=own), name)) is PeriodOutOfRange
    assert type(refused(report_of(name, segment=cells), name)) is SegmentOutOfRange


def slots_allowed(name: str, period: int) -> list[int]:
    return [
        number
        for number in range(1024)
        if not isinstance(caught(report_of(name, period=period, slot=number), name), SlotOutOfRange)
    ]


def caught(report: Report, name: str) -> ReportError | None:
    try:
        check_report(report, COLLECTIONS[name])
    except ReportError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("name", "period", "allowed"),
    [
        ("collected", 0, [0, 1, 2]),
        ("collected", 2, [6, 7, 8]),
        ("collected", 4, [12, 13, 14]),
        ("months", 0, [0]),
        ("months", 11, [11]),
        ("by_period", 0, [0, 1, 2]),
        ("by_period", 4, [0, 1, 2]),
        ("plane", 4, [0]),
        ("unlinked", 0, [0]),
        ("unlinked", 4, [0]),
    ],
)
def test_a_slot_that_the_period_does_not_have_is_refused(
    name: str, period: int, allowed: list[int]
) -> None:
    """By linkage: the period's own slots of the campaign, those of a period, or slot 0 alone."""
    assert allowed == slots_allowed(name, period)


@every
def test_a_message_of_another_width_is_refused(name: str) -> None:
    """Longer by a zero byte, or shorter: even where it would be the same number."""
    message = report_of(name).message

    for other in {b"\0" + message, message + b"\0", message[1:], message[:-1]} - {b""}:
        assert type(refused(report_of(name, message=other), name)) is MessageOutOfRange


def refuses_message(name: str, message: int) -> bool:
    report = report_of(name, message=COLLECTIONS[name].pack(message))
    return isinstance(caught(report, name), MessageOutOfRange)


def test_a_mask_of_another_weight_is_refused() -> None:
    mechanism = COLLECTIONS["collected"].mechanism
    assert isinstance(mechanism, SubsetSelection)
    weight, size = mechanism.w, mechanism.k

    for message in (0, (1 << weight - 1) - 1 | 1 << size, *range(0, 1 << size, 101)):
        valid = message.bit_count() == weight and message < 1 << size
        assert refuses_message("collected", message) is not valid


def members(*numbers: int) -> int:
    """Return the packed subset, the first member lowest."""
    mechanism = COLLECTIONS["members"].mechanism
    assert isinstance(mechanism, SubsetSelection)
    assert len(numbers) <= mechanism.w
    all_numbers = [*numbers, *range(numbers[-1] + 1, numbers[-1] + 1 + mechanism.w - len(numbers))]
    return sum(number << place * mechanism.label_bits for place, number in enumerate(all_numbers))


@pytest.mark.parametrize(
    ("numbers", "refused"),
    [((0, 1), False), ((100,), False), ((0, 0), True), ((1, 0), True), ((139,), True)],
    ids=["ascending", "high", "a member twice", "descending", "a member that is no value"],
)
def test_members_are_a_subset_in_its_one_spelling(
    numbers: tuple[int, ...],
    refused: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert refused is refuses_message("members", members(*numbers))


@pytest.mark.parametrize("name", ["by_period", "unlinked", "months", "curated"])
def test_a_value_that_the_domain_does_not_have_is_refused(name: str) -> None:
    last = COLLECTIONS[name].inputs - 1  # `absent`, where presence is hidden

    assert [refuses_message(name, message) for message in (last, last + 1, 255)] == [0, 1, 1]


@pytest.mark.parametrize("name", ["plane", "mean", "distribution"])
def test_a_point_or_level_after_the_last_is_refused(name: str) -> None:
    last = COLLECTIONS[name].mechanism.messages - 1
    widest = (1 << 8 * COLLECTIONS[name].message_bytes) - 1

    assert [refuses_message(name, m) for m in (0, last, last + 1, widest)] == [0, 0, 1, 1]


# -- reports and batches valid at all --------------------------------------------------------------

A, B = "a" * 64, "b" * 64
REPORT = Report(A, 0, 0, bytes(PSEUDONYM_BYTES), 0, b"\x01")


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("fingerprint", "", BadField),
        ("fingerprint", "a" * 63, BadField),
        ("fingerprint", "a" * 65, BadField),
        ("fingerprint", "A" * 64, BadField),
        ("fingerprint", "g" * 64, BadField),
        ("fingerprint", "a" * 64 + "\n", BadField),
        ("fingerprint", "\N{ARABIC-INDIC DIGIT ONE}" * 64, BadField),
        ("period", -1, BadField),
        ("period", MAX_PERIODS, BadField),
        ("segment", -1, BadField),
        ("segment", 32, BadField),
        ("slot", -1, BadField),
        ("slot", 1024, BadField),
        ("pseudonym", b"", WrongLength),
        ("pseudonym", bytes(15), WrongLength),
        ("pseudonym", bytes(17), WrongLength),
        ("message", b"", WrongLength),
        ("message", bytes(MAX_MESSAGE + 1), WrongLength),
    ],
)
def test_a_report_with_a_field_out_of_range_is_refused(
    field: str, value: object, error: type[WireError]
) -> None:
    with pytest.raises(WireError) as caught:
        replace(REPORT, **{field: value})  # type: ignore[arg-type] # that is the point

    assert (error, field) == (type(caught.value), caught.value.place)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("period", MAX_PERIODS - 1),
        ("segment", 31),
        ("slot", 1023),
        ("message", bytes(MAX_MESSAGE)),
    ],
)
def test_the_largest_value_of_each_field_is_accepted(field: str, value: object) -> None:
    report = replace(REPORT, **{field: value})  # type: ignore[arg-type] # of its own type

    assert value == getattr(report, field)


@pytest.mark.parametrize("valid", [REPORT, Losses(A), Batch((REPORT,))])
def test_no_field_can_be_set_afterwards(valid: Report | Losses | Batch) -> None:
    for field in fields(valid):
        with pytest.raises(FrozenInstanceError):
            setattr(valid, field.name, getattr(valid, field.name))


OTHER, WIDE = replace(REPORT, fingerprint=B, message=b"\0\1"), replace(REPORT, message=b"\0\1")
SERIES = tuple(replace(REPORT, fingerprint=f"{place:064x}") for place in range(MAX_SERIES + 1))


@pytest.mark.parametrize(
    ("fields", "place", "error"),
    [
        ({}, "reports", WrongLength),
        ({"reports": (REPORT,) * (MAX_REPORTS + 1)}, "reports", WrongLength),
        ({"reports": SERIES}, "reports", WrongLength),  # their number has one byte
        ({"reports": (REPORT, OTHER, WIDE)}, "reports[2].message", WrongLength),
        ({"reports": (REPORT,), "losses": Losses(A)}, "losses", BadField),
        ({"reports": (REPORT,), "padding": -1}, "padding", BadField),
        ({"reports": (REPORT,), "padding": MAX_PADDING + 1}, "padding", BadField),
    ],
    ids=["empty", "1001 reports", "256 series", "two widths", "with losses", "below 0", "too long"],
)
def test_a_batch_that_cannot_be_sent_is_refused(
    fields: dict[str, Any], place: str, error: type[WireError]
) -> None:
    """With losses: next to a pseudonym they would describe a device."""
    with pytest.raises(WireError) as caught:
        Batch(**fields)

    assert (type(caught.value), caught.value.place) == (error, place)


def test_a_batch_holds_a_thousand_reports_of_255_series() -> None:
    assert len(Batch((REPORT,) * MAX_REPORTS).reports) == MAX_REPORTS
    assert len(Batch(SERIES[:-1]).series()) == MAX_SERIES


def test_series_are_in_order_of_first_use_with_their_widths() -> None:
    other = replace(REPORT, fingerprint=B, message=bytes(3))
    batch = Batch((other, REPORT, other))

    assert list(batch.series().items()) == [(B, 3), (A, 1)]


# -- losses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["aged", "evicted", "corrupt"])
@pytest.mark.parametrize("bucket", [-1, 5, 1000])
def test_losses_hold_a_bucket_and_no_count(reason: str, bucket: int) -> None:
    with pytest.raises(BadField) as caught:
        Losses(A, **{reason: bucket})

    assert f"losses.{reason}" == caught.value.place


def test_losses_of_an_invalid_fingerprint_are_refused() -> None:
    with pytest.raises(BadField) as caught:
        Losses(A.upper())

    assert caught.value.place == "losses.fingerprint"


@pytest.mark.parametrize(
    ("count", "bucket"),
    [
        (-1, 0), (0, 0), (1, 1), (9, 1), (10, 2), (99, 2), (100, 3), (999, 3), (1000, 4),
        (9999, 4), (10_000, 4), (10**30, 4),
    ],
)  # fmt: skip
def test_a_bucket_is_the_number_of_digits(count: int, bucket: int) -> None:
    assert bucket == Losses.bucket(count)


@given(count=st.integers(-10, 10**9))
def test_every_bucket_is_one_that_losses_hold(count: int) -> None:
    assert Losses(A, aged=Losses.bucket(count)).aged <= Losses.bucket(count + 1)
