"""What stands behind a proxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .recording_upstream import RecordingUpstream, recording_upstream


@pytest.fixture(scope="module")
def echo() -> Iterator[RecordingUpstream]:
    with recording_upstream() as server:
        yield server
