"""The bodies of a group are read as one, to what each of them says alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from veilcount_aggregator.intake.decode import (
    DecodedBody,
    DecodedGroup,
    RequestBody,
    UnsupportedBody,
    decode_body,
    decode_group,
)
from veilcount_shared.errors import BadField, WireError
from veilcount_shared.report import Batch, Report
from veilcount_shared.wire import BINARY_TYPE, JSON_TYPE, MAX_BODY, encode_binary, encode_json

from ...strategies import batches
from .test_decode import columns

DEVICE = Report("ab" * 32, 3, 1, bytes(range(16)), 2, b"\1\2")
#: bodies that are refused, each in its way; the first three look like those of devices
WRONG = [
    RequestBody(BINARY_TYPE, "", encode_binary(Batch((DEVICE,)))[:-1] + b"\1"),
    RequestBody(BINARY_TYPE, "", encode_binary(Batch((replace(DEVICE, slot=1023),)))[:-3]),
    RequestBody(BINARY_TYPE, "", encode_binary(Batch((DEVICE,))).replace(b"VC\1", b"VC\3")),
    RequestBody(JSON_TYPE, "", encode_json(Batch((DEVICE,)))),
    RequestBody(JSON_TYPE, "gzip", b"no gzip"),
    RequestBody(BINARY_TYPE, "gzip", encode_binary(Batch((DEVICE,)))),
    RequestBody("text/plain", "", b""),
    RequestBody(BINARY_TYPE, "", bytes(MAX_BODY + 1)),
]


def encoded(batch: Batch, kind: str = BINARY_TYPE) -> RequestBody:
    return RequestBody(kind, "", encode_binary(batch))


def of_device(number: int) -> Batch:
    """Return what one of many alike devices sends, of one of three series."""
    series, message = f"{number % 3:064x}", bytes([number, 1])
    pseudonym = number.to_bytes(16, "big")
    report = replace(DEVICE, fingerprint=series, pseudonym=pseudonym, message=message)
    return Batch((report, replace(report, slot=3)))


devices = st.integers(0, 255).map(of_device)
#: the second type is read by itself, since it is spelled in a way of its own
TYPES = [BINARY_TYPE, f"{BINARY_TYPE};"]
bodies = st.builds(encoded, st.one_of(devices, batches()), st.sampled_from(TYPES))


def alone(body: RequestBody, *, takes_tests: bool) -> DecodedBody | tuple[type[WireError], str]:
    """Return a body decoded by itself, or the class and the place of its error."""
    try:
        found = decode_body(*body)
        if found.test and not takes_tests:
            raise BadField("test", "")
    except WireError as error:
        return type(error), error.place
    return replace(found, test=False)


def together(found: DecodedGroup) -> list[object]:
    """Return the same of each body, as the group has it; losses apart."""
    bodies: list[object] = []
    for body, (begin, end) in enumerate(pairwise(found.starts.tolist())):
        if (error := found.errors.get(body)) is not None:
            assert begin == end
            bodies.append((type(error), error.place))
            continue
        parts = []
        for series_column in found.series_columns:
            here = (series_column.places >= begin) & (series_column.places < end)
            if here.any():
                mine = series_column.select(here)
                parts.append(replace(mine, places=mine.places - begin))
        parts.sort(key=lambda each: int(each.places[0]))
        bodies.append(columns(DecodedBody(end - begin, tuple(parts))))
    return bodies


@given(group=st.lists(st.one_of(bodies, st.sampled_from(WRONG)), max_size=12), dev=st.booleans())
def test_a_group_has_what_its_bodies_have_alone(group: list[RequestBody], dev: bool) -> None:  # noqa: FBT001 - drawn
    """Alike or not, good or bad, with losses, marked as tests: and none is mixed up."""
    found = decode_group(group, takes_tests=dev)
    apart = [alone(body, takes_tests=dev) for body in group]
    losses = [body.losses for body in apart if isinstance(body, DecodedBody) and body.losses]

    assert Counter(found.losses) == Counter(losses)
    assert together(found) == [
        columns(replace(body, losses=None)) if isinstance(body, DecodedBody) else body
        for body in apart
    ]


def test_one_bad_body_among_many_alike_is_refused_alone() -> None:
    """Whatever is wrong with it: the others are read by themselves then."""
    for wrong in WRONG:
        group = [encoded(of_device(number), kind) for kind in TYPES for number in range(5)]
        group.insert(7, wrong)
        found = decode_group(group, takes_tests=False)

        assert list(found.errors) == [7]
        assert found.reports == 20
        assert isinstance(found.errors[7], WireError)
    assert isinstance(decode_group([WRONG[6]], takes_tests=True).errors[0], UnsupportedBody)
