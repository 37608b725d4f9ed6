"""The pytest fixture, installed with the package: the one module that needs pytest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .harness import ClientHarness


@pytest.fixture
def veilcount() -> Iterator[ClientHarness]:
    """Clients without thread, network and chance; what they recorded and sent."""
    with ClientHarness() as harness:
        yield harness
