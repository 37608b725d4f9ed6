"""What hypothesis draws from: batches, by shape and by content."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from veilcount_shared.limits import MAX_CELLS, MAX_SLOTS, PSEUDONYM_BYTES, TOKEN_BYTES
from veilcount_shared.report import MAX_BUCKET, MAX_PERIODS, Batch, Losses, Report


@dataclass(frozen=True)
class Shape:
    """All that the length of a body may depend on: the series of each report, and their widths."""

    widths: tuple[tuple[int, int], ...]  # of message and token
    series: tuple[int, ...]  # empty: a batch of losses
    test: bool
    padding: int


def shapes() -> st.SearchStrategy[Shape]:
    both = st.tuples(st.integers(1, 40), st.sampled_from([0, 0, TOKEN_BYTES]))
    widths = st.lists(both, min_size=1, max_size=4).map(tuple)
    return widths.flatmap(
        lambda widths: st.builds(
            Shape,
            st.just(widths),
            st.lists(st.integers(0, len(widths) - 1), max_size=6).map(tuple),
            st.booleans(),
            st.integers(0, 50),
        )
    )


def fingerprints() -> st.SearchStrategy[str]:
    return st.binary(min_size=32, max_size=32).map(bytes.hex)


def reports(fingerprint: str, widths: tuple[int, int]) -> st.SearchStrategy[Report]:
    return st.builds(
        Report,
        st.just(fingerprint),
        st.integers(0, MAX_PERIODS - 1),
        st.integers(0, MAX_CELLS - 1),
        st.binary(min_size=PSEUDONYM_BYTES, max_size=PSEUDONYM_BYTES),
        st.integers(0, MAX_SLOTS - 1),
        *(st.binary(min_size=width, max_size=width) for width in widths),
    )


def losses() -> st.SearchStrategy[Losses]:
    buckets = st.integers(0, MAX_BUCKET)
    return st.builds(Losses, fingerprints(), buckets, buckets, buckets)


@st.composite
def batches_with_shape(draw: st.DrawFn, shape: Shape) -> Batch:
    """Return a batch of this shape, whatever it says."""
    if not shape.series:
        return Batch((), draw(losses()), shape.test, shape.padding)
    count = len(shape.widths)
    names = draw(st.lists(fingerprints(), min_size=count, max_size=count, unique=True))
    drawn = tuple(draw(reports(names[place], shape.widths[place])) for place in shape.series)
    return Batch(drawn, None, shape.test, shape.padding)


def batches() -> st.SearchStrategy[Batch]:
    return shapes().flatmap(batches_with_shape)


def json_values() -> st.SearchStrategy[object]:
    """Return anything that Python's json writes: NaN, Infinity and lone surrogates included."""
    words = st.text(st.characters(), max_size=8)
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | words
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
        max_leaves=12,
    )
