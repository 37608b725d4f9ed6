"""Bodies to columns: the quick readers and `veilcount_shared` agree on every input.

Agree: the same bodies are taken, as the same columns; the others are refused by the same class of
error at the same place. Only what is too crowded for any batch is refused without its exact place.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.test_wire import BAD, FORMATS, GOOD, KEYS, REPORT_KEYS, Vector, body_of, text
from tests.strategies import batches, json_values
from veilcount_aggregator.ingest.decode import (
    BodyTooLarge,
    DecodedBody,
    UnsupportedBody,
    decode,
    decode_body,
)
from veilcount_aggregator.ingest.decode.binary_fast import decode_packed_fast
from veilcount_aggregator.ingest.decode.columns import columns_from_reports
from veilcount_aggregator.ingest.decode.json_fast import decode_json_fast
from veilcount_shared.errors import BadField, WireError, WrongLength
from veilcount_shared.report import MAX_MESSAGE, MAX_REPORTS, PSEUDONYM_BYTES, Batch, Report
from veilcount_shared.wire import (
    BINARY_TYPE,
    JSON_TYPE,
    MAX_BODY,
    decode_json,
    encode_binary,
    encode_json,
)

KINDS = {"json": JSON_TYPE, "packed": BINARY_TYPE}
INT64 = np.dtype(np.int64)
REPORT = Report("ab" * 32, 65535, 31, bytes(range(16)), 1023, b"\xff" * MAX_MESSAGE)


def columns(body: DecodedBody) -> object:
    names = ("places", "pseudonyms", "periods", "segments", "slots", "messages")
    sheets = [
        (each.fingerprint, *(getattr(each, name).tolist() for name in names))
        for each in body.series_columns
    ]
    return body.reports, sheets, body.losses, body.test


def decoded(kind: str, raw: bytes) -> object:
    """Return the columns of a body by the fast decoder, or its error's class and place."""
    try:
        return columns(decode_body(KINDS[kind], "", raw))
    except WireError as error:
        shared = WrongLength if isinstance(error, BodyTooLarge) else type(error)
        return shared.__name__, error.place


def truth(kind: str, raw: bytes) -> object:
    try:
        batch = FORMATS[kind][1](raw)
    except WireError as error:
        return type(error).__name__, error.place
    reports = columns_from_reports(batch.reports)
    return columns(DecodedBody(len(batch.reports), reports, batch.losses, batch.test))


# -- agreement -------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", GOOD.values(), ids=GOOD)
def test_every_good_vector_is_read_alike(vector: Vector) -> None:
    """The pinned bodies, and every other JSON text that means the same."""
    spelled = [vector["json"], *vector.get("also", [])]
    bodies = [("json", text(each).encode()) for each in spelled]
    for kind, body in [*bodies, ("packed", bytes.fromhex(text(vector["packed"])))]:
        assert decoded(kind, body) == truth(kind, body)


@pytest.mark.parametrize("vector", BAD, ids=[f"{bad['kind']}: {bad['why']}" for bad in BAD])
def test_every_bad_vector_is_refused_alike(vector: dict[str, str]) -> None:
    assert decoded(vector["kind"], body_of(vector)) == (vector["error"], vector["place"])


@given(batch=batches())
def test_every_batch_is_read_alike(batch: Batch) -> None:
    """From both spellings; those with reports by the quick readers alone."""
    for kind, fast in (("packed", decode_packed_fast), ("json", decode_json_fast)):
        body = FORMATS[kind][0](batch)

        assert decoded(kind, body) == truth(kind, body)
        assert (fast(body) is not None) == bool(batch.reports)


@given(batch=batches(), key=st.sampled_from(KEYS + REPORT_KEYS), value=json_values())
def test_anything_in_any_field_is_judged_alike(batch: Batch, key: str, value: object) -> None:
    """NaN, infinities, fractions, big integers, lone surrogates, lists and objects."""
    fields = json.loads(encode_json(batch))
    for changed in [fields] if key in KEYS else fields["reports"][-1:]:
        changed[key] = value
    for escaped in (True, False):
        raw = json.dumps(fields, ensure_ascii=escaped).encode("utf-8", "surrogatepass")

        assert decoded("json", raw) == truth("json", raw)


PLAIN = """{"version":1,"test":false,"losses":null,"padding":"","reports":[{"fingerprint":"FFFF",
"period":1,"segment":0,"pseudonym":"AAAAAAAAAAAAAAAAAAAAAA","slot":2,"message":"AQ"}]}""".replace(
    "FFFF", "ab" * 32
)
#: what tells one reader of JSON from another, in place of a value
ODD = [
    *("1.0", "1e3", "-0", "-1", "01", "+1", "0x1", "1_0", "NaN", "-Infinity", "1//", "1/**/"),
    *("true", "null", '"1"', "[1]", "{}", "9" * 30, "9" * 5000, "1 ", "1\\u0020", "1,", "'1'"),
    *("\N{FULLWIDTH DIGIT ONE}", "\ufeff1", '"\\ud800"', "\x00", "\x0b1", "1\x0c"),
]
FIELDS = ['"version":1', '"test":false', '"losses":null', '"padding":""', '"period":1', '"slot":2']
SPELLINGS = [
    *((field, f"{field.partition(':')[0]}:{odd}") for field in FIELDS for odd in ODD),
    ('"period":1', '"period":0,"period":1'),
    ('"version":1', '"version":1,"version":1'),
    ('"version":1', '"version":1,"test":true,"test":false'),
    ('"period":1', '"\\u0070eriod":1'),
    ('"message":"AQ"', '"message":":"'),
    ('"padding":""', '"padding":":"'),
    ('"version":1,', ""),
    *(
        ('"message":"AQ"', f'"message":"{message}"')
        for message in ("AR", "AQ==", "A Q", "A\\nQ", "+/", "A", "AAAAA", "")
    ),
    ("abab", "ABAB"),
    ("abab", "abag"),
]


def test_odd_spellings_and_doubled_keys_are_judged_alike() -> None:
    """A key that stands twice is refused though msgspec would take the last."""
    assert decode_json_fast(PLAIN.encode()) is not None
    for old, new in SPELLINGS:
        raw = PLAIN.replace(old, new, 1).encode()

        assert old in PLAIN
        assert decoded("json", raw) == truth("json", raw), new


def mutated(random_: random.Random, raw: bytes) -> bytes:
    """Return a body with a few of its parts changed, doubled, left out or moved."""
    body = bytearray(raw)
    for _ in range(random_.randint(1, 3)):
        place, size = random_.randrange(len(body) + 1), random_.choice([1, 1, 1, 2, 8, 30])
        part = body[place : place + size]
        match random_.randrange(5):
            case 0:
                del body[place : place + size]
            case 1:
                body[place:place] = part
            case 2:
                body[place : place + len(part)] = random_.randbytes(len(part))
            case 3:
                body[place:place] = random_.choice([b'"', b"{", b"[", b",", b":", b"1", b"\0"])
            case _:
                other = random_.randrange(len(body) + 1)
                body[place : place + size] = body[other : other + size]
    return bytes(body)


@pytest.mark.parametrize("seed", range(2))
def test_mutated_bodies_are_judged_alike(seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(1500):
        batch = some_batch(random_)
        for kind, (encode, _) in FORMATS.items():
            raw = mutated(random_, encode(batch))

            assert decoded(kind, raw) == truth(kind, raw)


def some_batch(random_: random.Random) -> Batch:
    """Return a small batch of up to three series of up to two widths."""
    return Batch(
        tuple(
            Report(
                f"{series:x}" * 64,
                random_.randrange(65536),
                random_.randrange(32),
                random_.randbytes(PSEUDONYM_BYTES),
                random_.randrange(1024),
                random_.randbytes(1 + series // 2),
            )
            for series in (random_.randrange(3) for _ in range(random_.randint(1, 5)))
        ),
        padding=random_.choice([0, 0, 7]),
    )


# -- the largest, the widest, the other kinds ------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_batch_is_read_quickly(kind: str) -> None:
    """A thousand of the widest messages are no matter for the slow way.

    The columns are numbers that the intake can add: 64 bits wide and with a sign.
    """
    batch = Batch((REPORT,) * MAX_REPORTS, padding=65535)
    raw = FORMATS[kind][0](batch)
    quick = {"json": decode_json_fast, "packed": decode_packed_fast}[kind](raw)

    assert quick is not None
    assert columns(quick) == truth(kind, raw)
    (found,) = quick.series_columns
    assert {each.dtype for each in (found.periods, found.segments, found.slots)} == {INT64}
    assert found.pseudonyms.shape == (MAX_REPORTS, PSEUDONYM_BYTES)


def test_255_series_of_three_widths_are_read_alike() -> None:
    """As many as a byte counts, in an order that is not the order of first use."""
    reports = [
        Report(f"{place:064x}", 0, 0, bytes(PSEUDONYM_BYTES), 0, bytes(place % 3 + 1))
        for place in range(255)
    ]
    raw = encode_binary(Batch((*reports, *reversed(reports))))

    assert columns(decode_body(BINARY_TYPE, "", raw)) == truth("packed", raw)


@pytest.mark.parametrize(
    ("kind", "coding", "place"),
    [
        ("Application/JSON; charset=utf-8", "", None),
        (JSON_TYPE, "Identity", None),
        (JSON_TYPE, "gzip, gzip", "Content-Encoding"),
        (BINARY_TYPE, "gzip", "Content-Encoding"),
        (BINARY_TYPE, "br", "Content-Encoding"),
    ],
)
def test_types_and_codings_are_compared_as_http_says(
    kind: str, coding: str, place: str | None
) -> None:
    try:
        refused = None if decode_body(kind, coding, encode_json(Batch((REPORT,)))).reports else ""
    except UnsupportedBody as error:
        refused = error.place

    assert refused == place


# -- gzip ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        gzip.compress(b"{}", mtime=0)[:-1],
        gzip.compress(b"{}", mtime=0) + b"x",
        gzip.compress(b"{}", mtime=0) * 2,
        zlib.compress(b"{}"),
        gzip.compress(bytes(1000), mtime=0)[:-9] + bytes(9),
    ],
)
def test_what_is_not_one_whole_stream_is_refused(raw: bytes) -> None:
    """Cut, followed by more, doubled, of another format, with a wrong sum."""
    with pytest.raises(BadField) as caught:
        decode_body(JSON_TYPE, "gzip", raw)

    assert caught.value.place == "body"


def test_a_bomb_stays_packed() -> None:
    """64 MB of zeros in 64 kB cost no more than the two that are looked at."""
    bomb = gzip.compress(bytes(64 << 20), 1, mtime=0)
    refuse = partial(refused, bomb, partial(decode_body, JSON_TYPE, "gzip"), BodyTooLarge)

    assert peak_bytes(refuse) < MOST_BYTES


# -- what refusing costs ---------------------------------------------------------------------------


def filled(piece: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    return before + piece * ((MAX_BODY - len(before + after)) // len(piece)) + after


LACKING = b'"fingerprint":"%s","period":0,"segment":0,"pseudonym":"%s","slot":0' % (
    b"ab" * 32,
    b"A" * 22,
)
HOSTILE = {
    "lists in lists": filled(b"["),
    "lists in lists, in a field": filled(b"[", b'{"version":1,"reports":'),
    "fewer lists in lists": b"[" * 2_000 + b"]" * 2_000,
    "objects in objects": filled(b'{"a":'),
    "empty objects": filled(b"{},", b'{"version":1,"reports":[', b"{}]}"),
    "keys": filled(b'"a":1,', b"{", b'"b":1}'),
    "other keys": b"{%s}" % b",".join(b'"%06x":1' % key for key in range(180_000)),
    "long keys": filled(b'"%s":1,' % (b"a" * 1_000), b"{", b'"b":1}'),
    "numbers": filled(b"1,", b'{"version":1,"reports":[', b"1]}"),
    "long numbers": filled(b"9" * 4_299 + b",", b'{"version":1,"reports":[', b"1]}"),
    "long negative numbers": filled(b"-%s, " % (b"9" * 4_299), b'{"version":1,"reports":[', b"1]}"),
    "numbers of 190 digits": filled(b"9" * 190 + b",", b'{"version":1,"reports":[', b"1]}"),
    "one number": filled(b"9", b'{"version":', b"}"),
    "strings": filled(b'"",', b'{"version":1,"reports":[', b'""]}'),
    "escapes": filled(b"\\u0041", b'{"version":1,"reports":[],"padding":"', b'"}'),
    "surrogates": filled(b"\\ud800", b'{"version":1,"reports":[],"padding":"', b'"}'),
    "a long padding": filled(b"0", b'{"version":1,"reports":[],"padding":"', b'"}'),
    "white space": filled(b" ", b"", b"{}"),
    "other letters": filled("ü".encode(), b'{"version":1,"reports":[],"padding":"', b'"}'),
    "no UTF-8": filled(b"\xff"),
    "a long pseudonym": PLAIN.replace("A" * 22, "A" * 2_000_000).encode(),
    "twelve thousand reports": filled(b"{%s}," % LACKING, b'{"version":1,"reports":[', b"{}]}"),
    "three thousand reports": b'{"version":1,"reports":[%s{}]}' % (b"{%s}," % LACKING * 3_000),
    "a thousand reports, the last one bad": encode_json(Batch((REPORT,) * 1_000))[:-20] + b'1"}',
    "a thousand reports, the last one worse": encode_json(Batch((REPORT,) * 1_000)).replace(
        b'_w"}],"padding"', b'_x"}],"padding"'
    ),
}


MOST_CALLS = 200_000  # of functions: a thousand right reports take 132,099
MOST_BYTES = 4 * MAX_BODY


@pytest.mark.parametrize("name", HOSTILE)
def test_refusing_two_megabytes_costs_little(name: str) -> None:
    """Neither work nor memory grows with what fills them."""
    refuse = partial(refused, HOSTILE[name])

    assert calls(refuse) < MOST_CALLS
    assert peak_bytes(refuse) < MOST_BYTES


def test_the_protocols_plain_reader_would_cost_more() -> None:
    """So the bounds above can be missed: a tenth of a body suffices."""
    tenth = HOSTILE["empty objects"][: MAX_BODY // 10] + b"{}]}"

    assert calls(partial(refused, tenth, decode_json)) > MOST_CALLS
    assert peak_bytes(partial(refused, HOSTILE["keys"], decode_json)) > MOST_BYTES


@pytest.mark.parametrize("name", ["long numbers", "long negative numbers"])
def test_numbers_that_take_quadratic_time_reach_no_reader(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a count of calls nor memory would show what Python's `int` does with them."""
    read: list[bytes] = []
    monkeypatch.setattr(decode, "decode_json", read.append)
    refused(HOSTILE[name])

    assert not read


def calls(act: Callable[[], object]) -> int:
    """Return how many functions, of Python or C, are entered or left."""
    count = 0

    def profile(*_: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def peak_bytes(act: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


READ = partial(decode_body, JSON_TYPE, "")


def refused(
    raw: bytes, read: Callable[[bytes], object] = READ, error: type[WireError] = WireError
) -> None:
    """Refuse a body, by default as the aggregator does."""
    with pytest.raises(error):
        read(raw)


def test_a_batch_slightly_over_the_limit_gets_a_clear_error() -> None:
    """A slip of a client gets its exact place: only what no client sends does without."""
    one = json.loads(encode_json(Batch((replace(REPORT, message=b"\1"),))))
    raw = json.dumps(one | {"reports": one["reports"] * 3_000}).encode()

    assert decoded("json", raw) == ("WrongLength", "reports")


# -- what reading costs ----------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "per_report"), [("packed", 0), ("json", 20)])
def test_a_further_report_takes_few_calls(kind: str, per_report: int) -> None:
    """A binary body is read by columns: as many calls for a hundred reports as for one."""

    def cost(reports: int) -> int:
        batch = Batch(tuple(replace(REPORT, slot=slot, message=b"\1") for slot in range(reports)))
        raw = FORMATS[kind][0](batch)
        decode_body(KINDS[kind], "", raw)  # caches the layout of its rows
        return calls(partial(decode_body, KINDS[kind], "", raw))

    assert cost(100) - cost(1) <= 99 * per_report
