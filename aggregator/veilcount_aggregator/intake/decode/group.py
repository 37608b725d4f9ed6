"""The bodies of many requests as one: numpy's fixed costs are paid once a group, not once a body.

Devices send bodies that differ in the name of their series and in their reports alone: those are
read as one table. Every other body is decoded by itself, and so is each of a set in which one is
not surely right: an error belongs to its body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.errors import BadField, WireError
from veilcount_shared.report import Losses
from veilcount_shared.wire import BINARY_TYPE, MAX_BODY

from .binary_fast import decode_alike, shape
from .columns import DecodedBody, SeriesColumns
from .decode import decode_body

_ALL = slice(None)
ONE_BY_ONE = ()  # the shape of bodies that have nothing in common


class RequestBody(NamedTuple):
    """The body of a request, and the headers that say how to read it."""

    content_type: str
    encoding: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class DecodedGroup:
    """The bodies of a group: columns whose places count the reports of all bodies, in order."""

    starts: NDArray[np.intp]  # the first report of each body; and one beyond the last
    series_columns: Sequence[SeriesColumns]
    losses: Sequence[Losses] = ()
    errors: Mapping[int, WireError] = field(default_factory=dict)  # of bodies that cannot be read

    @property
    def reports(self) -> int:
        """How many reports all bodies have."""
        return int(self.starts[-1])

    @classmethod
    def from_body(cls, body: DecodedBody) -> DecodedGroup:
        """Return a group of one body."""
        losses = () if body.losses is None else (body.losses,)
        return cls(np.array([0, body.reports]), body.series_columns, losses)


class _Part(NamedTuple):
    """Some bodies of a group, decoded as one."""

    bodies: Sequence[int]
    sizes: Sequence[int]
    decoded: DecodedBody


def decode_group(bodies: Sequence[RequestBody], *, takes_tests: bool) -> DecodedGroup:
    """Decode the bodies of a group; `takes_tests`: also those that are marked as tests."""
    errors: dict[int, WireError] = {}
    parts = []
    for part in _parts(bodies, errors):
        if part.decoded.test and not takes_tests:
            why = BadField("test", "test batches are for an aggregator in development mode")
            errors.update(dict.fromkeys(part.bodies, why))
        else:
            parts.append(part)
    starts = _starts(len(bodies), parts)
    columns = [column for part in parts for column in _placed(part, starts)]
    losses = [part.decoded.losses for part in parts if part.decoded.losses is not None]
    return DecodedGroup(starts, columns, losses, errors)


def _parts(bodies: Sequence[RequestBody], errors: dict[int, WireError]) -> Iterator[_Part]:
    alike: dict[tuple[object, ...], list[int]] = {}
    for place, body in enumerate(bodies):
        alike.setdefault(_shape(body), []).append(place)
    for of_shape, places in alike.items():
        many = len(places) > 1 and of_shape != ONE_BY_ONE
        part = _decode_alike(places, bodies) if many else None
        if part is not None:
            yield part
            continue
        for place in places:
            try:
                decoded = decode_body(*bodies[place])
            except WireError as error:
                # A traceback would keep the body, in a cycle with these very frames.
                errors[place] = error.with_traceback(None)
            else:
                yield _Part([place], [decoded.reports], decoded)


def _starts(bodies: int, parts: Sequence[_Part]) -> NDArray[np.intp]:
    """Return where the reports of each body start, and where the last end."""
    sizes = [0] * (bodies + 1)
    for part in parts:
        for place, size in zip(part.bodies, part.sizes, strict=True):
            sizes[place + 1] = size
    return np.array(sizes, np.intp).cumsum()


def _shape(body: RequestBody) -> tuple[object, ...]:
    """Return what bodies have in common that can be decoded as one."""
    if body.content_type != BINARY_TYPE or body.encoding or len(body.raw) > MAX_BODY:
        return ONE_BY_ONE
    return shape(body.raw)


def _decode_alike(places: list[int], bodies: Sequence[RequestBody]) -> _Part | None:
    """Return bodies of one shape as one, if all are surely right."""
    raws = [bodies[place].raw for place in places]
    decoded = decode_alike(raws)
    if decoded is None:
        return None
    return _Part(places, [decoded.reports // len(raws)] * len(raws), decoded)


def _placed(part: _Part, starts: NDArray[np.intp]) -> Iterator[SeriesColumns]:
    """Yield the columns of a part with their places in the group."""
    if len(part.bodies) == len(starts) - 1:  # nearly always: the part is the group
        yield from part.decoded.series_columns
        return
    sizes = np.array(part.sizes)
    before = sizes.cumsum() - sizes  # where each body begins in the part
    moved = np.repeat(starts[np.array(part.bodies)] - before, sizes)
    for columns in part.decoded.series_columns:
        yield replace(columns.select(_ALL), places=columns.places + moved[columns.places])
