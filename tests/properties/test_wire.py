"""The wire and its translation to JSON: one meaning each, or an error that names the place.

The vectors of tests/vectors/wire are for every language; pseudonyms, messages, tokens and bodies
are in hexadecimal.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from traceback import format_exception

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilcount_shared import select_mechanism
from veilcount_shared.errors import WireError
from veilcount_shared.limits import PSEUDONYM_BYTES, TOKEN_BYTES
from veilcount_shared.mechanisms import ProjectiveGeometry
from veilcount_shared.report import MAX_MESSAGE, MAX_PADDING, MAX_REPORTS, MAX_SERIES, Batch, Report
from veilcount_shared.wire import MAX_BODY, decode_binary, decode_json, encode_binary, encode_json

from ..strategies import Shape, batches, batches_with_shape, json_values, shapes
from ..vectors.wire_bodies import BAD_FILE, Vector, good_vectors, text

FORMATS = {"json": (encode_json, decode_json), "binary": (encode_binary, decode_binary)}

Encode = Callable[[Batch], bytes]
Decode = Callable[[bytes], Batch]

both = pytest.mark.parametrize(("encode", "decode"), FORMATS.values(), ids=FORMATS)


def body_of(vector: Vector) -> bytes:
    """Return the body of a vector."""
    return bytes.fromhex(text(vector["body"]))


GOOD: dict[str, Vector] = {path.stem: vector for path, vector in good_vectors()}
BAD: list[Vector] = json.loads(BAD_FILE.read_text())

PLAIN = (
    '{"version":1,"test":false,"losses":null,"padding":"","reports":[{"fingerprint":"%s",'
    '"period":1,"segment":0,"pseudonym":"AAAAAAAAAAAAAAAAAAAAAA","slot":2,"message":"AQ"}]}'
) % ("ab" * 32)
#: what is replaced in a translation, by what, and where it is then refused
BAD_JSON = [
    ("{", "[", "body"),
    ('"version":1', '"version":3', "version"),
    ('"version":1', '"version":1.0', "body"),
    ('"version":1', '"version":true', "version"),
    ('"version":1', '"version":2', "version"),
    ('"padding":""', '"padding":"1"', "padding"),
    ('"padding":""', '"padding":0', "padding"),
    ('"test":false', '"test":0', "test"),
    ('"losses":null', '"losses":{}', "losses"),
    ('"period":1', '"period":0,"period":1', "body"),
    ('"period":1', '"period":NaN', "body"),
    ('"period":1', f'"period":{"9" * 5_000}', "body"),
    ('"period":1', '"period":-1', "reports[0].period"),
    ('"period":1,', "", "reports[0]"),
    ('"period":1', '"period":1,"other":1', "reports[0]"),
    ('"period":1', '"period":1,"token":"AQ"', "reports[0].token"),
    ('"period":1', '"period":1,"token":""', "reports[0].token"),
    *(
        ('"message":"AQ"', f'"message":"{message}"', "reports[0].message")
        for message in ("AR", "AQ==", "A Q", "+/", "A", "")
    ),
]


@pytest.mark.parametrize(("old", "new", "place"), BAD_JSON)
def test_a_bad_translation_is_refused_where_it_is_bad(old: str, new: str, place: str) -> None:
    assert decode_json(PLAIN.encode()).reports
    with pytest.raises(WireError) as caught:
        decode_json(PLAIN.replace(old, new, 1).encode())

    assert caught.value.place == place


def test_a_body_of_many_reports_is_refused_without_a_search_for_the_place() -> None:
    """Else every decoder could be made to read thousands of reports to refuse them."""
    body = encode_binary(Batch((Report("ab" * 32, 0, 0, bytes(16), 0, b"\1"),) * 101))
    with pytest.raises(WireError, match="reports: one of 101 is invalid: `veilcount decode`"):
        decode_binary(body, 100)

    assert len(decode_binary(body).reports) == 101


# -- round trips -----------------------------------------------------------------------------------


@both
@given(batch=batches())
def test_a_batch_survives_the_wire_and_padding_adds_its_own_length_alone(
    encode: Encode, decode: Decode, batch: Batch
) -> None:
    body, bare = encode(batch), encode(replace(batch, padding=0))

    assert batch == decode(body)
    assert len(bare) + batch.padding == len(body)


@both
def test_the_largest_batches_are_accepted(encode: Encode, decode: Decode) -> None:
    report = Report("ab" * 32, 65535, 31, bytes(PSEUDONYM_BYTES), 1023, b"\xff" * MAX_MESSAGE)
    longest = Batch((report,) * 620, None, test=False, padding=MAX_PADDING)
    series = Batch(tuple(replace(report, fingerprint=f"{n:064x}") for n in range(MAX_SERIES)))

    assert len(encode_binary(longest)) <= MAX_BODY
    for batch in (longest, series, Batch((replace(report, message=b"\1"),) * MAX_REPORTS)):
        assert batch == decode(encode(batch))


# -- hostile bytes ---------------------------------------------------------------------------------


def decode_or_none(decode: Decode, body: bytes) -> Batch | None:
    """Return the batch, None where there is none; any error but a WireError goes through."""
    try:
        return decode(body)
    except WireError:
        return None


@both
@given(batch=batches(), junk=st.binary(min_size=1, max_size=40))
def test_no_body_is_the_prefix_of_another(
    encode: Encode, decode: Decode, batch: Batch, junk: bytes
) -> None:
    body = encode(batch)

    assert not any(decode_or_none(decode, body[:end]) for end in range(0, len(body), 3))
    assert decode_or_none(decode, body[:-1]) is None
    assert decode_or_none(decode, body + b"x" + junk) is None


@both
@given(batch=batches(), place=st.integers(0), value=st.integers(0, 255))
def test_a_changed_byte_is_refused_or_carries_one_batch(
    encode: Encode, decode: Decode, batch: Batch, place: int, value: int
) -> None:
    """Binary bodies have one encoding: what can be decoded is encoded to the same bytes again."""
    body = bytearray(encode(batch))
    body[place % len(body)] = value

    read = decode_or_none(decode, bytes(body))

    if read is not None:
        assert read == decode_json(encode_json(read)) == decode_binary(encode_binary(read))
        assert decode is decode_json or encode(read) == body


@given(head=st.sampled_from([b"", b"VC\x01\x00"]), tail=st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_wire_errors(head: bytes, tail: bytes) -> None:
    read = decode_or_none(decode_binary, head + tail)

    assert read is None or encode_binary(read) == head + tail
    assert decode_or_none(decode_json, head + tail) is None


KEYS = ["version", "test", "losses", "reports", "padding"]
REPORT_KEYS = ["fingerprint", "period", "segment", "pseudonym", "slot", "message", "token"]


@given(batch=batches(), key=st.sampled_from(KEYS + REPORT_KEYS), value=json_values())
def test_random_json_in_any_field_raises_nothing_but_wire_errors(
    batch: Batch, key: str, value: object
) -> None:
    fields = json.loads(encode_json(batch))
    for changed in [fields] if key in KEYS else fields["reports"][-1:]:
        changed[key] = value

    read = decode_or_none(decode_json, json.dumps(fields).encode())

    assert read is None or read == decode_json(encode_json(read))


# -- lengths tell nothing --------------------------------------------------------------------------


def digits(batch: Batch) -> int:
    """Return how many digits the public numbers of the reports have in JSON."""
    return sum(
        len(str(number))
        for report in batch.reports
        for number in (report.period, report.segment, report.slot)
    )


@given(shape=shapes(), data=st.data())
def test_the_length_of_a_body_depends_on_its_shape_and_in_json_on_public_digits(
    shape: Shape, data: st.DataObject
) -> None:
    """No fingerprint, pseudonym, message, bucket or flag makes it longer."""
    one, two = (data.draw(batches_with_shape(shape)) for _ in range(2))

    assert len(encode_binary(one)) == len(encode_binary(replace(two, test=not two.test)))
    assert len(encode_json(one)) - digits(one) == len(encode_json(two)) - digits(two)


# -- what a report costs ---------------------------------------------------------------------------


def cost(width: int) -> int:
    """Return what one more report of a series adds to a body."""
    report = Report("ab" * 32, 65535, 31, bytes(PSEUDONYM_BYTES), 1023, bytes(width))
    return len(encode_binary(Batch((report,) * 2))) - len(encode_binary(Batch((report,))))


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4", "8", "12"])
def test_a_binary_report_costs_at_most_32_bytes_up_to_a_million_values(epsilon: str) -> None:
    """24 and its message, where that is one value or one point of a plane."""
    mechanisms = [
        select_mechanism(k, epsilon).mechanism
        for k in (2, 3, 100, 257, 10_000, 65_537, 300_000, 1_000_000)
    ]
    widths = [
        -(-mechanism.bits // 8)
        for mechanism in mechanisms
        if isinstance(mechanism, ProjectiveGeometry) or mechanism.w == 1
    ]

    assert widths
    assert all(cost(width) <= 24 + width <= 32 for width in widths)


def test_every_planned_message_fits() -> None:
    widest = max(select_mechanism(1 << 20, Fraction(tenths, 10)).bits for tenths in range(70, 91))

    assert 256 * 8 < widest <= MAX_MESSAGE * 8


# -- errors keep quiet -----------------------------------------------------------------------------

PSEUDONYM, MESSAGE = b"\xfbPSEUDONYM-MARK\xff", b"\xfbMESSAGE-MARK\xff"
TOKEN = b"\xfbTOKEN-MARK\xff".ljust(TOKEN_BYTES, b"\0")
REPORT = Report("ab" * 32, 3, 1, PSEUDONYM, 5, MESSAGE, TOKEN)
MARKED = Batch((REPORT,) * 2, None, test=False, padding=4)


def assert_quiet(error: WireError) -> None:
    """Search all that a log would show of an error, its causes included."""
    shown = "".join(format_exception(error)) + repr(error) + error.place + error.problem

    for secret in (PSEUDONYM, MESSAGE, TOKEN.rstrip(b"\0")):
        assert secret[1:-1].decode() not in shown
        assert secret.hex()[2:-2] not in shown
        assert urlsafe_b64encode(secret).decode()[4:-4] not in shown


@both
@given(place=st.integers(0), value=st.integers(0, 255), cut=st.integers(0, 1200))
def test_an_error_quotes_no_message_and_no_pseudonym(
    encode: Encode, decode: Decode, place: int, value: int, cut: int
) -> None:
    body = bytearray(encode(MARKED))
    body[place % len(body)] = value

    for bad in (body, body[: -1 - cut]):
        try:
            decode(bytes(bad))
        except WireError as error:
            assert_quiet(error)


@given(
    swap=st.tuples(st.sampled_from(REPORT_KEYS), st.sampled_from(REPORT_KEYS)), key=st.booleans()
)
def test_a_value_in_the_wrong_place_is_not_repeated(swap: tuple[str, str], key: bool) -> None:  # noqa: FBT001 - drawn
    fields = json.loads(encode_json(MARKED))
    one, two = swap
    report = fields["reports"][0]
    if key:
        report[str(report.pop(one))] = two
    else:
        report[one], report[two] = report[two], report[one]

    try:
        decode_json(json.dumps(fields).encode())
    except WireError as error:
        assert_quiet(error)
