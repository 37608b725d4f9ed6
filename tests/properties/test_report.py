"""What a report may be, what its definition allows, and what becomes of it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection import Linkage, Model
from veilcount_shared.errors import (
    BadField,
    MessageOutOfRange,
    PeriodOutOfRange,
    ReportError,
    SegmentOutOfRange,
    SlotOutOfRange,
    WireError,
    WrongLength,
    WrongSeries,
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
    check_report,
)
from veilcount_shared.schedule import SECRET_BYTES, derive_pseudonym, draw_slot
from veilcount_shared.verdict import Verdict, verdict_from_error
from veilcount_shared.wire import MAX_BODY, decode_verdicts, encode_verdicts

DATES = "from = 2026-12-01\nuntil = 2026-12-06"  # five days
QUESTION = 'question = "Which?"'
FILE = f"""
app = "acme-editor"

[collected]
{QUESTION}
values = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"]
epsilon = 1
unit = "event"
per_day = 3
linkage = "collection"
segments = {{arm = ["A", "B", "C"], app = ["1", "2"]}}
{DATES}

[by_period]
{QUESTION}
values = ["light", "dark", "system"]
epsilon = 2
unit = "event"
per_day = 3
{DATES}

[unlinked]
{QUESTION}
boolean = true
epsilon = 1
unit = "event"
per_day = 3
linkage = "none"
{DATES}

[months]
{QUESTION}
boolean = true
epsilon = 1
unit = "month"
presence = "hidden"
from = 2026-12-01
until = 2027-12-01

[members]
{QUESTION}
values_file = "140"
epsilon = 4
unit = "day"
{DATES}

[plane]
{QUESTION}
values_file = "1000"
epsilon = 1
unit = "day"
{DATES}

[mean]
{QUESTION}
range = [0, 240]
measure = "mean"
epsilon = 1
unit = "day"
{DATES}

[distribution]
{QUESTION}
range = [0, 240]
measure = "distribution"
epsilon = 1
unit = "day"
{DATES}

[curated]
{QUESTION}
values = ["light", "dark", "system"]
model = "central"
budget = 1
unit = "day"
{DATES}
"""
COLLECTIONS = parse_collections(FILE, lambda count: [f"v{n}" for n in range(int(count))])

every = pytest.mark.parametrize("name", COLLECTIONS)


def report_of(name: str, **other: Any) -> Report:
    """Return a report that its definition allows, but for what is given."""
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
    door = collection.reveal if collection.model is Model.CENTRAL else collection.randomize
    return door(0, SeededRandomSource(seed))


def refused(report: Report, name: str) -> ReportError:
    """Return the error with which the definition refuses, whose text tells no message."""
    with pytest.raises(ReportError) as caught:
        check_report(report, COLLECTIONS[name])

    assert report.message.hex() not in str(caught.value)
    assert report.pseudonym.hex() not in str(caught.value)
    return caught.value


# -- what a definition allows ----------------------------------------------------------------------


def test_the_definitions_here_are_of_every_design_and_linkage() -> None:
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
def test_what_a_device_sends_is_allowed(
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
def test_a_period_after_the_last_is_refused(name: str) -> None:
    collection = COLLECTIONS[name]
    last = collection.periods - 1
    own = last * collection.per_period if collection.linkage is Linkage.COLLECTION else 0

    assert check_report(report_of(name, period=last, slot=own), collection) is not None
    assert type(refused(report_of(name, period=last + 1, slot=own), name)) is PeriodOutOfRange


@every
def test_a_segment_after_the_last_is_refused(name: str) -> None:
    collection = COLLECTIONS[name]
    last = collection.cells - 1

    assert check_report(report_of(name, segment=last), collection) is not None
    assert type(refused(report_of(name, segment=last + 1), name)) is SegmentOutOfRange


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
    """By linkage: the period's own stretch of the campaign, a period's slots, or slot 0 alone."""
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
    taken = 0
    for message in range(1 << mechanism.k):
        taken += mechanism.valid(message)
        if message % 101 == 0:
            assert refuses_message("collected", message) is (message.bit_count() != mechanism.w)

    assert mechanism.messages == taken
    assert refuses_message("collected", (1 << mechanism.w - 1) - 1 | 1 << mechanism.k)
    assert refuses_message("collected", 0)


def members(*numbers: int) -> int:
    """Return the packed subset, the first member lowest."""
    mechanism = COLLECTIONS["members"].mechanism
    assert isinstance(mechanism, SubsetSelection)
    assert len(numbers) <= mechanism.w
    given = [*numbers, *range(numbers[-1] + 1, numbers[-1] + 1 + mechanism.w - len(numbers))]
    return sum(number << place * mechanism.label_bits for place, number in enumerate(given))


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
    inputs = COLLECTIONS[name].inputs

    assert [refuses_message(name, message) for message in (inputs - 1, inputs, 255)] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("name", ["plane", "mean", "distribution"])
def test_a_cell_or_level_after_the_last_is_refused(name: str) -> None:
    messages = COLLECTIONS[name].mechanism.messages
    widest = (1 << 8 * COLLECTIONS[name].message_bytes) - 1

    assert [refuses_message(name, message) for message in (0, messages - 1, messages, widest)] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (WrongSeries, Verdict.MALFORMED),
        (PeriodOutOfRange, Verdict.MALFORMED),
        (SegmentOutOfRange, Verdict.MALFORMED),
        (MessageOutOfRange, Verdict.MALFORMED),
        (SlotOutOfRange, Verdict.OVER_BUDGET),
    ],
)
def test_what_a_definition_refuses_is_dropped_by_its_device(
    error: type[ReportError], verdict: Verdict
) -> None:
    """A slot beyond the budget is over it; all else is malformed; none is worth another try."""
    assert verdict is verdict_from_error(error("problem"))
    assert verdict.dropped


def test_every_way_to_be_refused_has_a_verdict() -> None:
    known = {WrongSeries, PeriodOutOfRange, SegmentOutOfRange, SlotOutOfRange, MessageOutOfRange}

    assert known == set(ReportError.__subclasses__())


# -- valid from birth ------------------------------------------------------------------------------

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
def test_no_report_is_born_that_no_series_could_have(
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
def test_the_last_of_each_range_is_in_it(field: str, value: object) -> None:
    report = replace(REPORT, **{field: value})  # type: ignore[arg-type] # of its own type

    assert value == getattr(report, field)


@pytest.mark.parametrize("born", [REPORT, Losses(A), Batch((REPORT,))])
def test_what_is_born_valid_stays_so(born: Report | Losses | Batch) -> None:
    for field in fields(born):
        with pytest.raises(FrozenInstanceError):
            setattr(born, field.name, getattr(born, field.name))


def refusing(place: str, error: type[WireError], **other: Any) -> None:
    with pytest.raises(WireError) as caught:
        Batch(**other)

    assert (error, place) == (type(caught.value), caught.value.place)


def test_an_empty_batch_is_refused() -> None:
    refusing("reports", WrongLength)


def test_a_batch_of_1001_reports_is_refused() -> None:
    assert len(Batch((REPORT,) * MAX_REPORTS).reports) == MAX_REPORTS
    refusing("reports", WrongLength, reports=(REPORT,) * (MAX_REPORTS + 1))


def test_losses_beside_reports_are_refused() -> None:
    """Beside a pseudonym they would describe a device."""
    refusing("losses", BadField, reports=(REPORT,), losses=Losses(A))


@pytest.mark.parametrize("padding", [-1, MAX_PADDING + 1])
def test_padding_out_of_range_is_refused(padding: int) -> None:
    refusing("padding", BadField, reports=(REPORT,), padding=padding)


def test_two_widths_in_one_series_are_refused() -> None:
    other, wide = replace(REPORT, fingerprint=B, message=b"\0\1"), replace(REPORT, message=b"\0\1")

    refusing("reports[2].message", WrongLength, reports=(REPORT, other, wide))


def test_a_batch_of_256_series_is_refused() -> None:
    reports = tuple(replace(REPORT, fingerprint=f"{place:064x}") for place in range(MAX_SERIES + 1))

    assert len(Batch(reports[:-1]).series()) == MAX_SERIES
    refusing("reports", WrongLength, reports=reports)


def test_series_stand_in_order_of_first_use_with_their_widths() -> None:
    other = replace(REPORT, fingerprint=B, message=bytes(3))
    batch = Batch((other, REPORT, other))

    assert list(batch.series().items()) == [(B, 3), (A, 1)]


# -- losses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["aged", "evicted", "corrupt"])
@pytest.mark.parametrize("bucket", [-1, 5, 1000])
def test_losses_hold_no_count(reason: str, bucket: int) -> None:
    with pytest.raises(BadField) as caught:
        Losses(A, **{reason: bucket})

    assert f"losses.{reason}" == caught.value.place


def test_losses_of_no_series_are_refused() -> None:
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


# -- verdicts --------------------------------------------------------------------------------------

DELIVERED = {Verdict.COUNTED, Verdict.DUPLICATE}
RETRIED = {Verdict.UNKNOWN_COLLECTION, Verdict.EARLY, Verdict.FULL}
DROPPED = {
    Verdict.OVER_BUDGET,
    Verdict.STALE,
    Verdict.CLOSED,
    Verdict.MALFORMED,
}


@pytest.mark.parametrize("verdict", Verdict)
def test_a_verdict_means_one_thing_to_the_device(verdict: Verdict) -> None:
    meaning = (verdict in DELIVERED, verdict in RETRIED, verdict in DROPPED)

    assert meaning == (verdict.delivered, verdict.retry, verdict.dropped)
    assert sum(meaning) == 1


def test_verdicts_have_these_bytes_for_ever() -> None:
    words = (
        b"counted duplicate over_budget stale closed malformed full unknown_collection early"
    ).split()
    body = b'{"verdicts":["' + b'","'.join(words) + b'"]}'

    assert body == encode_verdicts(Verdict)
    assert tuple(Verdict) == decode_verdicts(body, len(Verdict))


@given(verdicts=st.lists(st.sampled_from(Verdict), max_size=30).map(tuple))
def test_verdicts_survive_the_wire(verdicts: tuple[Verdict, ...]) -> None:
    assert verdicts == decode_verdicts(encode_verdicts(verdicts), len(verdicts))


def test_a_thousand_verdicts_fit() -> None:
    verdicts = (max(Verdict, key=len),) * MAX_REPORTS

    assert len(encode_verdicts(verdicts)) < MAX_BODY
    assert verdicts == decode_verdicts(encode_verdicts(verdicts), len(verdicts))


@pytest.mark.parametrize(
    ("body", "error", "place"),
    [
        (b"", BadField, "body"),
        (b"OK", BadField, "body"),
        (b"<html>", BadField, "body"),
        (b"\xff", BadField, "body"),
        (b"null", BadField, "body"),
        (b'["counted"]', BadField, "body"),
        (b"{}", BadField, "body"),
        (b'{"verdicts":[]', BadField, "body"),
        (b'{"verdicts":[],"more":1}', BadField, "body"),
        (b'{"verdicts":[],"verdicts":[]}', BadField, "body"),
        (b'{"verdicts":[1.5]}', BadField, "body"),
        (b"[" * 100_000, BadField, "body"),
        (b'{"verdicts":null}', BadField, "verdicts"),
        (b'{"verdicts":"counted"}', BadField, "verdicts"),
        (b'{"verdicts":{"0":"counted"}}', BadField, "verdicts"),
        (b'{"verdicts":["counted",1]}', BadField, "verdicts[1]"),
        (b'{"verdicts":["counted",null]}', BadField, "verdicts[1]"),
        (b'{"verdicts":["counted","Counted"]}', BadField, "verdicts[1]"),
        (b'{"verdicts":["COUNTED"]}', BadField, "verdicts[0]"),
        (b'{"verdicts":["counted "]}', BadField, "verdicts[0]"),
        (b'{"verdicts":["lost"]}', BadField, "verdicts[0]"),
        (b'{"verdicts":["\\ud800"]}', BadField, "verdicts[0]"),
        (b" " * (MAX_BODY + 1), WrongLength, "body"),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else None,
)
def test_a_reply_that_is_none_is_refused(body: bytes, error: type[WireError], place: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_verdicts(body, body.count(b",") + 1)

    assert (error, place) == (type(caught.value), caught.value.place)


def test_a_reply_of_another_length_is_refused() -> None:
    """Fewer or more verdicts than reports could settle the wrong ones."""
    for expected in (1, 3):
        with pytest.raises(WrongLength):
            decode_verdicts(b'{"verdicts":["counted","counted"]}', expected)
