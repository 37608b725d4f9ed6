"""A Redis that is made unsafe while a server runs on it: refused, reported, and used again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.store import open_store
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.report import Batch
from veilcount_shared.wire import BINARY_TYPE, encode_binary

from ...redis_server import RedisServer
from ..server import Server, wait_until
from .campaign import Campaign


def post(server: Server, campaign: Campaign, seed: int) -> int:
    body = encode_binary(Batch((campaign.person(SeededRandomSource(seed))[0],)))
    kind = {"Content-Type": BINARY_TYPE}
    return server.ask("POST", "/v1/reports", data=body, headers=kind).status_code


def test_an_unsafe_setting_stops_the_intake_until_it_is_mended(tmp_path: Path) -> None:
    """Reports hear 503 at once; probes, figures and the log say which setting, and the command."""
    campaign, redis = Campaign.write(tmp_path), RedisServer(tmp_path)
    with closing(open_store(redis.url, make=True)) as store:
        _, key = create_key(store, Role.ANALYST, "", campaign.now())
    keyed = {"Authorization": f"Bearer {key}"}
    with Server(redis.url, tmp_path, "--collections", str(campaign.file)) as server:
        before = [post(server, campaign, seed) for seed in range(5)]
        redis.ask("CONFIG", "SET", "appendfsync", "everysec")
        during = [post(server, campaign, seed) for seed in range(10, 20)]
        ready = server.ask("GET", "/readyz")
        metrics = server.ask("GET", "/metrics", headers=keyed)
        wait_until(lambda: '"event": "durability"' in server.log_text())
        redis.ask("CONFIG", "SET", "appendfsync", "always")
        wait_until(lambda: post(server, campaign, 30) == 200)
        wait_until(lambda: "durable again" in server.log_text())
        after = server.ask("GET", "/metrics", headers=keyed).text
        message, processes = server.log_text(), [*server.workers(), *server.analysis()]
    redis.kill()

    assert before == [200] * 5
    assert during == [503] * 10
    assert (ready.status_code, ready.json()["ready"], ready.json()["durable"]) == (503, False, "no")
    assert ready.json()["why"].startswith("no report is accepted: appendfsync everysec")
    assert str(redis.port) not in ready.text
    assert metrics.status_code == 200
    assert 'veilcount_store{engine="redis",durable="no"} 1' in metrics.text
    assert "veilcount_store_blocked{} 1" in metrics.text
    assert 'veilcount_store{engine="redis",durable="yes"} 1' in after
    assert "veilcount_store_blocked{} 0" in after
    # once for a change, by each process that has the store open: not for each report
    assert message.count('"event": "durability"') <= 2 * len(processes)
    assert f"-p {redis.port} CONFIG SET appendfsync always" in message
