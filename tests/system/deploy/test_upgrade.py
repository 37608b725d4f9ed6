"""A rolling upgrade from an earlier revision, and back, while clients of both send."""

from __future__ import annotations

import pytest
from bench import upgrade
from bench.upgrade_deployment import RevisionMissing, previous_revision


@pytest.mark.full
def test_a_rolling_upgrade_loses_and_doubles_nothing() -> None:
    try:
        previous_revision()
    except RevisionMissing as missing:
        pytest.skip(str(missing))
    table = upgrade.run(quick=True)

    assert not table.missed, str(table)
