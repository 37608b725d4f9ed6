"""A Redis that would forget is refused, and one that refuses writes is reported, with the fix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import certifi
import pytest

from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.store import DurabilityState
from veilcount_aggregator.store.redis import lua_library, shard_health
from veilcount_aggregator.store.redis.config_check import refuse_old, set_command
from veilcount_aggregator.store.redis.connections import RedisNode, Wait
from veilcount_aggregator.store.redis.identity import FORMAT
from veilcount_aggregator.store.redis.lua_library import LIBRARY, body, name_of, source
from veilcount_aggregator.store.redis.shard_health import FULL, WriteProbe
from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_aggregator.store.redis.url import RedisUrl
from veilcount_serving.errors import SettingsError

from ....processes import HOST, free_port
from ....redis_server import RedisServer
from ....system.server import wait_until
from ..series_fixtures import LINKED
from .simulated_rows import count, is_taken, rows

#: a wrong and a right value
SETTINGS = {
    "maxmemory-policy": ("volatile-lru", "noeviction"),
    "appendonly": ("no", "yes"),
    "appendfsync": ("everysec", "always"),
    "no-appendfsync-on-rewrite": ("yes", "no"),
    "hash-max-listpack-entries": ("64", "128"),
    "hash-max-listpack-value": ("32", "64"),
}

#: what each commit looks at, whoever looked before
DURABLE = {"appendonly", "appendfsync", "no-appendfsync-on-rewrite"}


@pytest.fixture
def loose(server: RedisServer) -> Iterator[RedisServer]:
    yield server
    for name, (_, right) in SETTINGS.items():
        server.ask("CONFIG", "SET", name, right)
    wait_until(lambda: not server.rewriting)  # that `appendonly yes` has started


@pytest.mark.parametrize("name", SETTINGS)
def test_a_wrong_setting_is_refused_with_the_command_that_mends_it(
    loose: RedisServer, store: RedisStore, name: str
) -> None:
    wrong, right = SETTINGS[name]
    command = f"redis-cli -h {HOST} -p {loose.port} CONFIG SET {name} {right}"
    assert store.health().durable is DurabilityState.YES
    loose.ask("CONFIG", "SET", name, wrong)

    if name in DURABLE:
        with pytest.raises(StoreUnfit, match=name):
            count(store, rows(10, 1))
    health = store.health()
    assert (health.durable, health.blocked) == (DurabilityState.NO, True)
    assert health.why.startswith(f"{name} {wrong}")
    assert command in str(health.weaknesses[0])
    with pytest.raises(StoreUnfit, match=name):
        count(store, rows(10, 1))
    assert store.report_counts(LINKED) == {}
    with pytest.raises(StoreUnfit, match=f"{name} {wrong}") as caught:
        open_redis(loose.url, make=False)
    assert command in str(caught.value)
    loose.ask("CONFIG", "SET", name, right)
    wait_until(lambda: is_taken(store))


def test_a_relaxed_store_still_must_not_evict(loose: RedisServer) -> None:
    loose.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")

    with pytest.raises(StoreUnfit, match="noeviction"):
        open_redis(f"{loose.url}?durability=relaxed", make=True)


def test_a_wrong_password_is_refused_without_repeating_it(server: RedisServer) -> None:
    with pytest.raises(StoreUnfit, match="refuses this user") as caught:
        open_redis(f"redis://app:hunter2@{HOST}:{server.port}/0", make=True)

    assert "hunter2" not in str(caught.value)


def test_where_there_is_no_store_one_is_made_only_on_request(server: RedisServer) -> None:
    with pytest.raises(StoreUnfit, match="veilcount init"):
        open_redis(server.url, make=False)
    for make, counted in ((True, 10), (True, 0), (False, 0)):
        with closing(open_redis(server.url, make=make)) as store:
            assert count(store, rows(10, 1)) == counted
            assert store.health().engine == "redis"


def test_a_store_that_was_made_by_half_is_finished(server: RedisServer, store: RedisStore) -> None:
    server.ask("HDEL", "veilcount:{records}:identity", "made")
    with pytest.raises(StoreUnfit, match="veilcount init"):
        open_redis(server.url, make=False)
    finished = open_redis(server.url, make=True)

    assert count(finished, rows(10, 1)) == 10
    assert count(store, rows(10, 1)) == 0
    finished.close()


@pytest.mark.parametrize("number", [int(FORMAT) - 1, int(FORMAT) + 1])
def test_a_store_of_another_format_is_refused(
    server: RedisServer, store: RedisStore, number: int
) -> None:
    server.ask("HSET", "veilcount:{records}:identity", "format", str(number))

    with pytest.raises(StoreUnfit, match=f"format {number}; this version reads {FORMAT.decode()}"):
        open_redis(server.url, make=False)


def test_a_server_that_is_no_cluster_says_so(server: RedisServer) -> None:
    with pytest.raises(StoreUnfit, match="is no cluster: write redis://"):
        open_redis(f"redis-cluster://{HOST}:{server.port}", make=True)


def test_an_old_redis_is_refused() -> None:
    """Its version is read; here from what a server would tell."""
    server = RedisNode.at((HOST, 6379), RedisUrl(((HOST, 6379),)))
    with pytest.raises(StoreUnfit, match=r"version 6.2.14: 7 or newer"):
        refuse_old(server, {"redis_version": "6.2.14"})
    refuse_old(server, {"redis_version": "7.0.0"})


# -- the URL ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "parsed"),
    [
        ("redis://db:7000/3", RedisUrl((("db", 7000),), database=3)),
        ("redis://db?replicas=1", RedisUrl((("db", 6379),), replicas=1)),
        ("redis://db?durability=relaxed", RedisUrl((("db", 6379),), durable=False)),
        (
            "rediss://me:p%40ss%3A@db:7000/0",
            RedisUrl((("db", 7000),), username="me", password="p@ss:", tls=True),
        ),
        (
            "redis-cluster://:secret@a:1,b:2,[::1]:3?shards=6&tls=on&replicas=2",
            RedisUrl(
                (("a", 1), ("b", 2), ("::1", 3)),
                password="secret",
                cluster=True,
                shards=6,
                tls=True,
                replicas=2,
            ),
        ),
    ],
)
def test_a_url_is_read(url: str, parsed: RedisUrl) -> None:
    assert RedisUrl.parse(url) == parsed


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis://db:port/0",
        "redis://db/name",
        "redis://db/0#space",
        "redis://db/0?shards=2",
        "redis://db/0?durability=none",
        "redis://db/0?timeout=9",
        "redis://db/0?replicas=0",
        "redis://db/0?replicas=6",
        "redis-cluster://db/1",
        "redis-cluster://a:1,,b:2",
        "redis-cluster://db?shards=1000",
        "redis-cluster://db?tls=off",
    ],
)
def test_what_is_wrong_is_refused_with_a_fix(url: str) -> None:
    with pytest.raises(SettingsError, match="store = "):
        RedisUrl.parse(url)


def test_a_private_ca_is_trusted_and_the_host_is_checked() -> None:
    """Whatever the library's release does by default."""
    ca = certifi.where()
    for url in (f"rediss://db/0?ca={ca}", f"redis-cluster://db?tls=on&ca={ca}"):
        address = RedisUrl.parse(url)
        options = RedisNode.at(("db", 6379), address).pool(Wait.READ).connection_kwargs

        assert address.ca == ca
        assert options["ssl_ca_certs"] == ca
        assert (options["ssl_cert_reqs"], options["ssl_check_hostname"]) == ("required", True)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("redis://db/0?ca=/etc/hosts", "ca: write rediss://"),
        ("redis-cluster://db?ca=/etc/hosts", "with tls=on"),
        ("rediss://:hunter2@db/0?ca=/none/ca.crt", "ca: No such file or directory: give"),
        ("rediss://:hunter2@db/0?ca=", "ca: No such file or directory: give"),
        ("rediss://:hunter2@db/0?ca=/etc/hosts", "ca: no certificate: give a file of PEM"),
    ],
)
def test_a_private_ca_that_cannot_be_used_is_refused_with_a_fix(url: str, problem: str) -> None:
    with pytest.raises(SettingsError, match="store = ") as refusal:
        RedisUrl.parse(url)

    assert problem in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


def test_the_command_that_mends_a_setting_connects_as_the_store_does() -> None:
    """Its password is asked for: it is in no message, and on no command line."""
    address = RedisUrl((("db", 7000),), tls=True, ca="/ca.crt", username="me", password="hunter2")
    command = set_command(RedisNode.at(("db", 7000), address), "appendonly", "yes")

    assert command == (
        "redis-cli -h db -p 7000 --user me --askpass --tls --cacert /ca.crt"
        " CONFIG SET appendonly yes"
    )


def test_no_password_is_repeated() -> None:
    with pytest.raises(SettingsError) as caught:
        RedisUrl.parse("redis://me:hunter2@db/0?nothing=1")

    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(RedisUrl.parse("redis://me:hunter2@db/0"))
    assert "hunter2" not in str(RedisUrl.parse("redis://me:hunter2@db/0"))


# -- the function library: its name changes with its source ----------------------------------------


def test_no_change_of_the_lua_keeps_its_name() -> None:
    """Not even a comment: what a server has loaded under a name is what we have under it."""
    assert name_of(body()) == LIBRARY
    assert name_of(body() + " ") != LIBRARY
    assert source().startswith(f"#!lua name={LIBRARY}\n")


def test_servers_of_two_releases_share_a_redis(
    server: RedisServer, store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each calls its own functions; neither's loading takes the other's away."""
    count(store, rows(5, 1))
    older = body() + "\n-- of an older release"
    with monkeypatch.context() as patch:
        patch.setattr(lua_library, "LIBRARY", name_of(older))
        patch.setattr(lua_library, "source", lambda: older)
        text = f"#!lua name={name_of(older)}\nlocal LIBRARY = '{name_of(older)}'\n{older}"
        patch.setattr("veilcount_aggregator.store.redis.shard_client.source", lambda: text)
        assert count(store, rows(5, 2)) == 5
    listed = server.ask("FUNCTION", "LIST")

    assert count(store, rows(5, 3)) == 5
    assert isinstance(listed, list)
    assert {name.decode() for each in listed for name in each if isinstance(name, bytes)} >= {
        LIBRARY,
        name_of(older),
    }


# -- writes that are refused -----------------------------------------------------------------------


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question writes, whoever asked before."""
    monkeypatch.setattr(shard_health, "PROBE_SECONDS", 0.0)


@pytest.fixture
def mended(server: RedisServer) -> Iterator[RedisServer]:
    yield server
    server.ask("CONFIG", "SET", "maxmemory", "0")
    server.ask("REPLICAOF", "NO", "ONE")


def test_exhausted_memory_is_reported(mended: RedisServer, store: RedisStore) -> None:
    mended.ask("CONFIG", "SET", "maxmemory", "1")
    assert store.health().trouble == FULL

    mended.ask("CONFIG", "SET", "maxmemory", "0")
    assert store.health().trouble == ""


def test_a_refused_write_is_reported_by_its_kind(mended: RedisServer, store: RedisStore) -> None:
    """Here of a replica; no address leaves, since anybody may ask /readyz."""
    mended.ask("REPLICAOF", HOST, str(free_port()))

    assert store.health().trouble == "a write failed: ReadOnlyError"


def test_probes_are_few(
    mended: RedisServer, store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_health, "PROBE_SECONDS", 5.0)
    seconds = iter([0.0, 0.0, 0.0, 4.9, 5.0, 5.0])
    probe = WriteProbe(store._servers, store.identity, lambda: next(seconds))
    assert probe.trouble() == ""
    mended.ask("CONFIG", "SET", "maxmemory", "1")

    assert [probe.trouble() for _ in range(2)] == ["", FULL]
