"""Verdicts: what each means to a device, and how they travel."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from veilcount_shared.errors import BadField, MessageOutOfRange, ReportError, WireError, WrongLength
from veilcount_shared.report import MAX_REPORTS
from veilcount_shared.verdict import UNKNOWN_VERDICT, Verdict
from veilcount_shared.wire import MAX_BODY, decode_verdicts, encode_verdicts

from ..report_check import (
    PeriodOutOfRange,
    SegmentOutOfRange,
    SlotOutOfRange,
    WrongSeries,
    verdict_from_error,
)

MALFORMED = (WrongSeries, PeriodOutOfRange, SegmentOutOfRange, MessageOutOfRange)


def test_a_report_that_its_definition_refuses_is_dropped_by_its_device() -> None:
    """A slot out of range is over budget, all else is malformed; neither is worth a retry."""
    verdicts = {
        error: verdict_from_error(error("problem")) for error in ReportError.__subclasses__()
    }

    assert verdicts == {
        SlotOutOfRange: Verdict.OVER_BUDGET,
        **dict.fromkeys(MALFORMED, Verdict.MALFORMED),
    }
    assert all(verdict.dropped for verdict in verdicts.values())


DELIVERED = {Verdict.COUNTED, Verdict.DUPLICATE}
RETRIED = {Verdict.UNKNOWN_COLLECTION, Verdict.EARLY, Verdict.FULL}
DROPPED = {Verdict.OVER_BUDGET, Verdict.STALE, Verdict.CLOSED, Verdict.MALFORMED}


@pytest.mark.parametrize("verdict", Verdict)
def test_a_verdict_means_one_thing_to_the_device(verdict: Verdict) -> None:
    meaning = (verdict in DELIVERED, verdict in RETRIED, verdict in DROPPED)

    assert meaning == (verdict.delivered, verdict.retry, verdict.dropped)
    assert sum(meaning) == 1


def test_verdicts_have_pinned_bytes() -> None:
    words = (
        b"counted duplicate over_budget stale closed malformed full unknown_collection early"
    ).split()
    body = b'{"verdicts":["' + b'","'.join(words) + b'"]}'

    assert body == encode_verdicts(Verdict)
    assert tuple(Verdict) == decode_verdicts(body, len(Verdict))


@given(verdicts=st.lists(st.sampled_from(Verdict), max_size=30).map(tuple))
@example((max(Verdict, key=len),) * MAX_REPORTS)
def test_verdicts_survive_the_wire(verdicts: tuple[Verdict, ...]) -> None:
    assert verdicts == decode_verdicts(encode_verdicts(verdicts), len(verdicts))


@pytest.mark.parametrize(
    ("body", "error", "place"),
    [
        (b"", BadField, "body"),
        (b"\xff", BadField, "body"),
        (b'["counted"]', BadField, "body"),
        (b'{"verdicts":[],"verdicts":[]}', BadField, "body"),
        (b'{"verdicts":[1.5]}', BadField, "verdicts[0]"),
        (b'{"more":["counted"]}', BadField, "body"),
        (b'{"verdicts":[],"more":NaN}', BadField, "body"),
        (b"[" * 100_000, BadField, "body"),
        (b'{"verdicts":null}', BadField, "verdicts"),
        (b'{"verdicts":{"0":"counted"}}', BadField, "verdicts"),
        (b'{"verdicts":["counted",1]}', BadField, "verdicts[1]"),
        (b" " * (MAX_BODY + 1), WrongLength, "body"),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else None,
)
def test_an_invalid_reply_is_refused(body: bytes, error: type[WireError], place: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_verdicts(body, body.count(b",") + 1)

    assert (error, place) == (type(caught.value), caught.value.place)


@pytest.mark.parametrize("word", [b"Counted", b"lost", b"counted ", b"", b"\\ud800"])
def test_a_verdict_of_a_later_release_is_unknown_and_leaves_the_others(word: bytes) -> None:
    body = b'{"verdicts":["counted","%s","stale"]}' % word

    assert decode_verdicts(body, 3) == (Verdict.COUNTED, UNKNOWN_VERDICT, Verdict.STALE)


@pytest.mark.parametrize("value", [b"1.5e3", b"null", b'"verdicts"', b'{"verdicts":[]}', b"[[]]"])
def test_other_members_of_a_reply_are_ignored(value: bytes) -> None:
    for body in (b'{"more":%s,"verdicts":["counted"]}', b'{"verdicts":["counted"],"more":%s}'):
        assert decode_verdicts(body % value, 1) == (Verdict.COUNTED,)


def test_a_reply_of_another_length_is_refused() -> None:
    """Fewer or more verdicts than reports could settle the wrong ones."""
    for expected in (1, 3):
        with pytest.raises(WrongLength):
            decode_verdicts(b'{"verdicts":["counted","counted"]}', expected)
