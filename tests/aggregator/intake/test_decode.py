"""Bodies to columns: the fast decoder and `veilcount_shared` agree on every input.

Agree: the same bodies are taken, as the same columns; the others are refused by the same class of
error at the same place. Only among many reports no place is searched for.
"""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle, islice

import numpy as np
import pytest
from hypothesis import given

from veilcount_aggregator.intake.decode import (
    BodyTooLarge,
    DecodedBody,
    UnsupportedBody,
    decode,
    decode_body,
)
from veilcount_aggregator.intake.decode.binary_fast import decode_binary_fast
from veilcount_aggregator.intake.decode.columns import columns_from_reports
from veilcount_aggregator.intake.decode.decode import EXPLAINED_REPORTS
from veilcount_client.delivery.padded_bodies import MOST_IN_BODY, encode_padded
from veilcount_shared.errors import WireError, WrongLength
from veilcount_shared.limits import PSEUDONYM_BYTES, TOKEN_BYTES
from veilcount_shared.report import (
    MAX_MESSAGE,
    MAX_REPORTS,
    MAX_SERIES,
    Batch,
    Report,
)
from veilcount_shared.wire import (
    BINARY_TYPE,
    JSON_TYPE,
    MAX_BODY,
    decode_binary,
    encode_binary,
    encode_json,
)

from ...call_count import count_calls
from ...properties.test_wire import BAD, GOOD, body_of
from ...security.hostile_bodies import WIDE_REPORTS, unknown
from ...strategies import batches
from ...vectors.wire_bodies import Vector

INT64 = np.dtype(np.int64)
REPORT = Report("ab" * 32, 65535, 31, bytes(range(16)), 1023, b"\xff" * MAX_MESSAGE)
READ = partial(decode_body, BINARY_TYPE, "")


def columns(body: DecodedBody) -> object:
    names = ("places", "pseudonyms", "periods", "segments", "slots", "messages", "tokens")
    sheets = [
        (series_column.fingerprint, *(getattr(series_column, name).tolist() for name in names))
        for series_column in body.series_columns
    ]
    return body.reports, sheets, body.losses, body.test


def decoded(raw: bytes) -> object:
    """Return the columns of a body by the fast decoder, or its error's class and place."""
    try:
        return columns(READ(raw))
    except WireError as error:
        shared = WrongLength if isinstance(error, BodyTooLarge) else type(error)
        return shared.__name__, error.place


def truth(raw: bytes) -> object:
    try:
        batch = decode_binary(raw, EXPLAINED_REPORTS)
    except WireError as error:
        return type(error).__name__, error.place
    return of_batch(batch)


def of_batch(batch: Batch) -> object:
    reports = columns_from_reports(batch.reports)
    return columns(DecodedBody(len(batch.reports), reports, batch.losses, batch.test))


# -- agreement -------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", GOOD.values(), ids=GOOD)
def test_every_good_vector_is_read_alike(vector: Vector) -> None:
    body = body_of(vector)

    assert decoded(body) == of_batch(decode_binary(body))


@pytest.mark.parametrize("vector", BAD, ids=[bad["why"] for bad in BAD])
def test_every_bad_vector_is_refused_alike(vector: dict[str, str]) -> None:
    assert decoded(body_of(vector)) == (vector["error"], vector["place"])


@given(batch=batches())
def test_every_batch_is_read_alike(batch: Batch) -> None:
    """Those with reports by the fast decoder alone."""
    body = encode_binary(batch)

    assert decoded(body) == of_batch(batch)
    assert (decode_binary_fast(body) is not None) == bool(batch.reports)


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
                body[place:place] = random_.choice([b"\xff", b"1", b"\0"])
            case _:
                other = random_.randrange(len(body) + 1)
                body[place : place + size] = body[other : other + size]
    return bytes(body)


@pytest.mark.parametrize("seed", range(2))
def test_mutated_bodies_are_judged_alike(seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(1500):
        batch = some_batch(random_)
        raw = mutated(random_, encode_binary(batch))

        assert decoded(raw) == truth(raw)


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


def test_the_largest_batch_is_read_quickly() -> None:
    """Hundreds of the widest messages are no matter for the slow way.

    The columns are numbers that the intake can add: 64 bits wide and with a sign.
    """
    raw = encode_binary(Batch((REPORT,) * WIDE_REPORTS))
    quick = decode_binary_fast(raw)

    assert quick is not None
    assert columns(quick) == of_batch(decode_binary(raw))
    (found,) = quick.series_columns
    assert {each.dtype for each in (found.periods, found.segments, found.slots)} == {INT64}
    assert found.pseudonyms.shape == (WIDE_REPORTS, PSEUDONYM_BYTES)


def test_no_body_of_a_client_exceeds_the_limit_and_one_reaches_it() -> None:
    """What no client sends is only work: a worker reads it before it is refused."""
    widest = replace(REPORT, token=bytes(TOKEN_BYTES))
    every_series = [replace(widest, fingerprint=f"{place:064x}") for place in range(MAX_SERIES)]
    batch = Batch(tuple(islice(cycle(every_series), MOST_IN_BODY)))

    assert len(encode_padded(batch)) == MAX_BODY


def test_255_series_of_three_widths_are_read_alike() -> None:
    """As many as a byte counts, in an order that is not the order of first use."""
    reports = [
        Report(f"{place:064x}", 0, 0, bytes(PSEUDONYM_BYTES), 0, bytes(place % 3 + 1))
        for place in range(255)
    ]
    raw = encode_binary(Batch((*reports, *reversed(reports))))

    assert decoded(raw) == of_batch(decode_binary(raw))


@pytest.mark.parametrize(
    ("kind", "coding", "place"),
    [
        ("Application/VND.veilcount.batch; charset=utf-8", "", None),
        (BINARY_TYPE, "Identity", None),
        (BINARY_TYPE, "gzip", "Content-Encoding"),
        (BINARY_TYPE, "br", "Content-Encoding"),
        (JSON_TYPE, "", "Content-Type"),
        (JSON_TYPE, "gzip", "Content-Type"),
        ("", "", "Content-Type"),
    ],
)
def test_types_and_codings_are_compared_as_http_says(
    kind: str, coding: str, place: str | None
) -> None:
    try:
        refused = None if decode_body(kind, coding, encode_binary(Batch((REPORT,)))).reports else ""
    except UnsupportedBody as error:
        refused = error.place

    assert refused == place


def test_json_is_refused_unread_with_the_command_that_translates_it() -> None:
    with pytest.raises(UnsupportedBody, match=f"give {BINARY_TYPE}: `veilcount encode`"):
        decode_body(JSON_TYPE, "", encode_json(Batch((REPORT,))))


# -- what refusing costs ---------------------------------------------------------------------------

SERIES = unknown(255, 255)
REPORTS = encode_binary(Batch((REPORT,) * WIDE_REPORTS))
HOSTILE = {
    "zero bytes": bytes(MAX_BODY),
    "no batch": b"\xff" * MAX_BODY,
    "one report, then zero bytes": encode_binary(Batch((REPORT,))).ljust(MAX_BODY, b"\0"),
    "65535 reports": REPORTS[:42] + b"\xff\xff" + bytes(MAX_BODY - 44),
    "many reports, one byte too many": REPORTS + b"\0",
    "many reports, one byte too few": REPORTS[:-1],
    "many reports, the last one bad": REPORTS[: -3 - MAX_MESSAGE] + b"\xff" * MAX_MESSAGE,
    "255 series, one byte too many": SERIES + b"\0",
}
MOST_CALLS = 10_000  # functions that are entered or left; 255 series take 6,781
MOST_BYTES = 4 * MAX_BODY


@pytest.mark.parametrize("name", HOSTILE)
def test_refusing_the_longest_body_costs_little(name: str) -> None:
    """Neither work nor memory grows with what fills it."""
    refuse = partial(refused, HOSTILE[name])

    assert count_calls(refuse) < MOST_CALLS
    assert peak_bytes(refuse) < MOST_BYTES


def test_a_search_for_the_place_among_all_reports_would_cost_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted: so the bound above can be missed."""
    monkeypatch.setattr(decode, "EXPLAINED_REPORTS", MAX_REPORTS)

    assert count_calls(partial(refused, HOSTILE["many reports, one byte too many"])) > MOST_CALLS


def peak_bytes(act: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(raw: bytes) -> None:
    """Refuse a body as the aggregator does."""
    with pytest.raises(WireError):
        READ(raw)


# -- what reading costs ----------------------------------------------------------------------------


def test_a_further_report_takes_no_call() -> None:
    """A body is read by columns: as many calls for a hundred reports as for one."""

    def cost(reports: int) -> int:
        batch = Batch(tuple(replace(REPORT, slot=slot, message=b"\1") for slot in range(reports)))
        raw = encode_binary(batch)
        READ(raw)  # caches the layout of its rows
        return count_calls(partial(READ, raw))

    assert cost(100) <= cost(1)


def test_a_further_series_takes_few_calls() -> None:
    """What all reports have is read and checked at once, however many series a body names."""

    def cost(series: int, widths: int) -> int:
        raw = unknown(series, widths)
        READ(raw)
        return count_calls(partial(READ, raw))

    for widths in (1, 200):
        assert cost(202, widths) - cost(2, widths) <= 200 * MOST_CALLS_A_SERIES


MOST_CALLS_A_SERIES = 30
