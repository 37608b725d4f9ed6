"""The battery over a store of three shards: all of it but what says how many are a full period."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from veilcount_aggregator.store import Store, open_store

from ....redis_cluster import RedisCluster
from ..engines import Empty
from ..test_battery import *  # noqa: F403
from ..test_battery_sharing import *  # noqa: F403


@pytest.fixture
def empty(cluster: RedisCluster) -> Empty:
    def emptied() -> str:
        for node in cluster.nodes:
            node.ask("FLUSHALL")
        return f"{cluster.url}?shards=3"

    return emptied


@pytest.fixture
def store(empty: Empty) -> Iterator[Store]:
    opened = open_store(empty(), make=True)
    yield opened
    opened.close()


# They state how many rows are a full period, to the row; of shards, see test_cluster.py.
del test_a_period_takes_so_many_new_rows  # noqa: F821
del test_the_first_rule_that_holds_decides  # noqa: F821
