"""A number of numpy is to every domain what the number of Python is."""

from __future__ import annotations

import numpy as np

from veilcount_client.testing import SeededRandomSource

from ..vectors.conformance.values import decoded, domain_input
from ..vectors.vector_files import read
from .definition_harness import parse_definition


def test_a_scalar_of_numpy_is_what_the_number_is() -> None:
    """Its booleans are booleans; beyond 2^53 its integers are doubles."""
    for vector in read("values.json")["vectors"]:
        collection = parse_definition("\n".join(vector["definition"]))
        for value in (decoded(written) for written, _ in vector["values"]):
            scalar = numpy_scalar(value)
            if scalar is not None:
                places = [
                    domain_input(collection, number, SeededRandomSource(1))
                    for number in (value, scalar)
                ]
                assert places[0] == places[1], (collection.domain, value)


def numpy_scalar(value: object) -> object:
    """Return a value as one of numpy's; None: it has none."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value) if abs(value) <= 1 << 53 else None
    return np.float64(value) if isinstance(value, float) else None
