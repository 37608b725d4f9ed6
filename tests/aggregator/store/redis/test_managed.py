"""`?durable=managed`: a service that forbids CONFIG is accepted on its operator's word."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.operate.doctor import Severity, examine_store
from veilcount_aggregator.server.serve import prepare
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import DurabilityState, open_store
from veilcount_aggregator.store.redis.url import RedisUrl
from veilcount_serving.errors import SettingsError
from veilcount_serving.listen_address import ListenAddress

from ....processes import HOST, free_port
from ....redis_server import RedisServer

PASSWORD = "of-this-test"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis as a service runs it: CONFIG is forbidden, and its disk is no file of its own."""
    server = RedisServer(tmp_path, appendonly="no")
    server.ask("ACL", "SETUSER", "app", "on", f">{PASSWORD}", "~*", "&*", "+@all", "-config")
    yield server
    server.kill()


def url_of(service: RedisServer, query: str) -> str:
    return service.url.replace("redis://", f"redis://app:{PASSWORD}@") + query


def test_a_service_is_accepted_on_its_operators_word_which_is_shown(service: RedisServer) -> None:
    url = url_of(service, "?durable=managed")
    with closing(open_store(url, make=True)) as store:
        health = store.health()
    findings = list(examine_store(Settings(url), lambda: datetime.now(UTC), deep=False))
    settings = next(finding for finding in findings if finding.check == "settings")
    durable = next(finding for finding in findings if finding.check == "durable")
    line = str(prepare(Settings(url), ListenAddress.parse(f"{HOST}:{free_port()}")))

    assert (health.durable, health.blocked) == (DurabilityState.MANAGED, False)
    assert settings.state is durable.state is Severity.OK
    assert all(
        "durable=managed" in text for text in (health.why, settings.what, durable.what, line)
    )


def test_without_the_word_it_is_unknown(service: RedisServer) -> None:
    with closing(open_store(url_of(service, ""), make=True)) as store:
        assert store.health().durable is DurabilityState.UNKNOWN


def test_where_settings_are_seen_the_word_counts_for_durability_and_not_for_eviction(
    service: RedisServer,
) -> None:
    url = f"{service.url}?durable=managed"
    with closing(open_store(url, make=True)) as store:
        assert store.health().durable is DurabilityState.MANAGED
    service.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")

    with pytest.raises(StoreUnfit, match="maxmemory-policy allkeys-lru"):
        open_store(url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("rediss://x.redis.cache.windows.net:6380/0?durable=managed", "Azure Cache for Redis"),
        ("redis-cluster://a,x.y.redis.azure.net?durable=managed", "Azure Managed Redis"),
        ("redis://host/0?durable=yes", "durable=managed"),
        ("redis://host/0?durable=managed&durability=relaxed", "without durability"),
    ],
)
def test_a_service_that_loses_reports_is_refused_by_name(url: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        RedisUrl.parse(url)


def test_a_service_that_keeps_them_is_not() -> None:
    address = RedisUrl.parse("rediss://c.x.memorydb.eu-central-1.amazonaws.com/0?durable=managed")

    assert (address.managed, address.durable) == (True, False)
