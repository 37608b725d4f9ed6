"""Which reports are valid at all, and which of them a definition accepts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection
from veilcount_shared.collection import Model
from veilcount_shared.errors import BadField, MessageOutOfRange, WireError, WrongLength
from veilcount_shared.limits import PSEUDONYM_BYTES
from veilcount_shared.report import MAX_PERIODS, MAX_SERIES, Batch, Losses, Report
from veilcount_shared.schedule import SECRET_BYTES, derive_pseudonym, draw_slot

from ..report_check import (
    PeriodOutOfRange,
    SegmentOutOfRange,
    SlotOutOfRange,
    WrongSeries,
    check_report,
)
from .definition_harness import parse_definition

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


# -- what a definition accepts ---------------------------------------------------------------------


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
        draw_slot(secret, collection, period, answer % collection.per_day),
        collection.pack(message),
    )

    assert message == check_report(report, collection)


#: by linkage: the period's own slots of the campaign, those of a period, or slot 0 alone
LAST_SLOTS = {"collected": (12, 14), "by_period": (0, 2), "months": (11, 11)}


def check(name: str, **other: Any) -> None:
    check_report(report_of(name, **other), COLLECTIONS[name])


@every
def test_a_report_that_its_definition_does_not_allow_is_refused(name: str) -> None:
    """By each of its numbers, and by a width that is not the message's, though it be its number."""
    collection = COLLECTIONS[name]
    periods, (first, last) = collection.periods, LAST_SLOTS.get(name, (0, 0))
    message = report_of(name).message
    widths = {b"\0" + message, message + b"\0", message[1:], message[:-1]} - {b""}
    check(name, period=periods - 1, slot=first)
    check(name, period=periods - 1, slot=last, segment=collection.cells - 1)

    with pytest.raises(WrongSeries):  # before anything else is read in it
        check(name, fingerprint="0" * 64, period=MAX_PERIODS - 1, slot=1023, segment=31)
    with pytest.raises(PeriodOutOfRange):
        check(name, period=periods, slot=first)
    with pytest.raises(SegmentOutOfRange):
        check(name, segment=collection.cells)
    for slot in {first - 1, last + 1} - {-1}:
        with pytest.raises(SlotOutOfRange):
            check(name, period=periods - 1, slot=slot)
    for other in widths:
        with pytest.raises(MessageOutOfRange) as caught:
            check(name, message=other)
        assert other.hex() not in str(caught.value)


# -- reports and batches valid at all --------------------------------------------------------------

A, B = "a" * 64, "b" * 64
REPORT = Report(A, 0, 0, bytes(PSEUDONYM_BYTES), 0, b"\x01")


SERIES = tuple(replace(REPORT, fingerprint=f"{place:064x}") for place in range(MAX_SERIES + 1))


@pytest.mark.parametrize(
    ("fields", "place", "error"),
    [
        ({"reports": SERIES}, "reports", WrongLength),  # their number has one byte
        ({"reports": (REPORT,), "padding": -1}, "padding", BadField),
        ({"reports": (REPORT,), "test": 1}, "test", BadField),
    ],
    ids=["256 series", "padding below 0", "test that is no bool"],
)
def test_a_batch_that_no_body_could_hold_is_refused(
    fields: dict[str, Any], place: str, error: type[WireError]
) -> None:
    """All else that is refused has a vector in tests/vectors/wire."""
    with pytest.raises(error) as caught:
        Batch(**fields)

    assert caught.value.place == place


def test_series_are_in_order_of_first_use_with_their_widths() -> None:
    other = replace(REPORT, fingerprint=B, message=bytes(3))
    batch = Batch((other, REPORT, other))

    assert list(batch.series().items()) == [(B, (3, 0)), (A, (1, 0))]


def test_a_bucket_is_the_number_of_digits_four_at_most() -> None:
    counts = [-1, 0, 1, 9, 10, 99, 100, 999, 1000, 9999, 10_000, 10**30]

    assert [Losses.bucket(count) for count in counts] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4]
