"""Copies of the records: one on each master, of now, and read while the records are away."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import CENTRAL, FILE
from tests.redis_cluster import RedisCluster
from veilcount_aggregator.catalog.cache import REPLICATED, CatalogCache
from veilcount_aggregator.catalog.definitions import (
    DefinitionSource,
    add_definitions,
    close_collection,
)
from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.ingest.pseudonym_limit import limit_secret_reader
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import Record
from veilcount_aggregator.store.redis.identity import RECORDS_BASE
from veilcount_aggregator.store.redis.records import copy_bases
from veilcount_aggregator.store.redis.store import RedisStore, open_redis

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)


@pytest.fixture
def store(cluster: RedisCluster) -> Iterator[RedisStore]:
    opened = open_redis(cluster.url, make=True)
    yield opened
    opened.close()


def test_each_master_has_one_copy_of_now(cluster: RedisCluster, store: RedisStore) -> None:
    add_definitions(store, DefinitionSource(FILE), NOW, "cli")
    store.replicate(REPLICATED)
    store.replicate(REPLICATED)
    held = [node.ask("KEYS", "veilcount:{copy.*") for node in cluster.nodes]

    assert [len(each) for each in held if isinstance(each, list)] == [1, 1, 1]
    assert store.replica("source") == (store.generation(), store.records("source"))


def test_a_copy_that_is_newer_than_the_records_gives_way(store: RedisStore) -> None:
    """They came back from older files: what they hold now is in force."""
    store.replicate(("kind",))
    for base in copy_bases():
        owner = store._servers.owner(base)
        if owner.ask("EXISTS", base):
            owner.ask("HSET", base, "generation", 1_000)
    store.change_records(store.generation(), [Record("kind", "name", b"value")])
    store.replicate(("kind",))

    assert store.replica("kind") == (store.generation(), {"name": b"value"})


@pytest.mark.full
def test_what_the_intake_needs_is_found_without_the_records(memory: Path, tmp_path: Path) -> None:
    """The root, definitions, what is closed, keys, and the secret of the pseudonym limit."""
    del memory
    cluster = RedisCluster(tmp_path)
    store = open_redis(cluster.url, make=True)
    add_definitions(store, DefinitionSource(FILE), NOW, "cli")
    add_definitions(store, DefinitionSource(CENTRAL), NOW, "cli")
    close_collection(store, "theme", NOW, "cli")
    secret = limit_secret_reader(store)()
    CatalogCache(store, lambda: 0.0).replicate()
    port = store._servers.owner(RECORDS_BASE).host[1]
    next(node for node in cluster.nodes if node.port == port).kill()

    late = open_redis(cluster.url, make=False)
    watch = CatalogCache(late, lambda: 0.0)
    assert late.identity == store.identity
    assert limit_secret_reader(late)() == secret
    assert watch.known().catalog.by_name["theme"][0].closed
    assert "visits" in watch.known().catalog.by_name
    with pytest.raises(StoreUnavailable):
        watch.require_fresh(5)

    file = tmp_path / "known.toml"
    file.write_text(FILE)
    Aggregator.open(Settings(cluster.url, (file,)), lambda: NOW).close()  # nothing in it is new
    file.write_text(FILE.replace("epsilon = 1", "epsilon = 2"))
    with pytest.raises(StoreUnavailable):
        Aggregator.open(Settings(cluster.url, (file,)), lambda: NOW)
    for each in (store, late):
        each.close()
    cluster.close()
