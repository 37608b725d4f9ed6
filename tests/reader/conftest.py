"""A reader of real endpoints on a real port, with reports of several kinds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_reader import Reader

from ..aggregator.operate.cli.server_fixtures import listening
from ..aggregator.queries.simulated_reports import (
    FILE,
    LISTS,
    counted,
    send,
    send_inputs,
    send_numbers,
)
from ..aggregator.web.api.deployment_fixtures import Deployment, deployment


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    now = datetime(2026, 12, 5, tzinfo=UTC)
    with deployment(tmp_path_factory.mktemp("read"), now=now) as made:
        made.push(FILE, **LISTS)
        counted(send(made, "theme", [1000, 2000, 1000], period=1))
        counted(send(made, "theme", [2000, 1000, 1000], period=2, segment=2))
        counted(send(made, "plan", [100, 200, 300, 400]))
        counted(send_numbers(made, "spread", np.random.default_rng(20).random(2000)))
        counted(send_inputs(made, "word", np.full(300, 7)))
        yield made


@pytest.fixture(scope="module")
def url(stocked: Deployment) -> Iterator[str]:
    with listening(stocked.app.wsgi_app) as address:
        yield address


@pytest.fixture
def reader(url: str, stocked: Deployment) -> Reader:
    return Reader(url, stocked.key(Role.ANALYST))
