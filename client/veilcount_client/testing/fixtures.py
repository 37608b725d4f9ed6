"""The pytest fixture, installed with the package: the one module that needs pytest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .harness import Kit


@pytest.fixture
def veilcount() -> Iterator[Kit]:
    """Clients without thread, network and chance; what they recorded and sent."""
    with Kit() as kit:
        yield kit
