"""The drills of an aggregator's keys, while devices send."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
import requests

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.records.api_keys import Role, create_key, load_api_keys
from veilcount_aggregator.records.definitions import load_catalog
from veilcount_aggregator.store import open_store
from veilcount_client.clock import SystemClock
from veilcount_client.delivery.relay import RelayTransport
from veilcount_shared import SystemRandomSource, load_collections
from veilcount_shared.oblivious_http.key_config import KEY_PROBLEM
from veilcount_shared.oblivious_http.key_file import decode_key_file

from ...client.device_fixtures import Device, definitions_text
from ...processes import HOST
from ...redis_server import RedisServer
from ..faults.campaign import Campaign
from ..faults.honest_devices import Population
from ..faults.store_verification import assert_consistent
from ..server import wait_until
from ..test_relay import RelayLog, post_garbage, relay
from .operator_host import AGGREGATOR, Drill, Host

SENT = 100  # reports that are acknowledged before a drill goes on


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.full)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store: "" is a file of the host."""
    if request.param == "sqlite":
        yield ""
        return
    (tmp_path / "redis").mkdir()
    server = RedisServer(tmp_path / "redis")
    yield server.url
    server.kill()


@contextmanager
def aggregator(folder: Path, store: str = "") -> Iterator[tuple[Host, Campaign]]:
    """Serve a campaign on a host."""
    campaign = Campaign.write(folder)
    flags = ("--collections", str(campaign.file), "--dev")
    with Host(folder / "host", AGGREGATOR, store=store, flags=flags) as host:
        assert run(["init", "--store", host.store, "--yes"]) == 0
        host.run("systemctl start veilcount")
        yield host, campaign


@contextmanager
def drilled(
    title: str, host: Host, campaign: Campaign, seed: int, key: str = ""
) -> Iterator[tuple[Population, Drill]]:
    """Have devices send through a drill: nothing that they had acknowledged is lost."""
    population = Population.create(campaign, host.service.port, seed=seed)
    for device in population.devices:
        device.key = key
    with population.living(), Drill(title, host) as drill:
        yield population, drill
    population.settle(60)
    population.close()
    host.service.stop()

    assert population.wrong == []
    assert_consistent(host.store, campaign, population.acknowledged)


def send_more(population: Population, reports: int = SENT) -> None:
    """Wait until devices had so many more reports acknowledged."""
    before = len(population.acknowledged)
    wait_until(lambda: len(population.acknowledged) >= before + reports, 60)


def secret(printed: str) -> str:
    return printed.rsplit(maxsplit=1)[-1]


def identity(host: Host, label: str) -> str:
    with closing(open_store(host.store)) as store:
        keys = load_api_keys(store).keys.values()
    return next(key.id for key in keys if key.label == label)


def test_a_device_key_is_replaced_and_no_report_is_lost(store: str, tmp_path: Path) -> None:
    """One device has the new key in time; the others are refused until their app's update."""
    with aggregator(tmp_path, store) as (host, campaign):
        with closing(open_store(host.store)) as opened:
            _, old_key = create_key(opened, Role.DEVICE, "release 1", datetime.now(UTC))
        with drilled("Replace a device key", host, campaign, 1, old_key) as (population, drill):
            send_more(population)
            new_key = secret(drill.block())
            population.devices[0].key = new_key
            send_more(population)
            host.names |= {"OLD_ID": identity(host, "release 1"), "OLD_KEY": old_key}
            assert "release 2" in drill.block()
            drill.block()
            drill.block()
            refused = set(population.devices[1].acknowledged)
            send_more(population)
            assert set(population.devices[1].acknowledged) == refused
            for device in population.devices:
                device.key = new_key
            population.await_answers()


def test_a_leaked_key_opens_nothing_while_devices_send(tmp_path: Path) -> None:
    with aggregator(tmp_path) as (host, campaign):
        with closing(open_store(host.store)) as opened:
            key, leaked = create_key(opened, Role.ANALYST, "ann", datetime.now(UTC))
        host.names |= {"LEAKED_ID": key.id, "LEAKED_KEY": leaked}

        def status(bearer: str) -> int:
            headers = {"Authorization": f"Bearer {bearer}"}
            url = f"{host.url}/v1/collections"
            return requests.get(url, headers=headers, timeout=30).status_code

        with drilled("A key has leaked", host, campaign, 2) as (population, drill):
            send_more(population)
            wait_until(lambda: status(leaked) == 200)
            new_key = secret(drill.block())
            drill.block()
            wait_until(lambda: status(new_key) == 200)
            send_more(population)


def test_the_password_of_redis_is_replaced_while_devices_send(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    redis = RedisServer(tmp_path / "redis", requirepass="first")
    try:
        with aggregator(tmp_path, redis.url) as (host, campaign):
            host.names |= {"OLD_PASSWORD": "first", "NEW_PASSWORD": "second"}
            host.names["REDIS_HOST"] = f"{HOST} -p {redis.port}"
            title = "Replace the password of Redis"
            with drilled(title, host, campaign, 3) as (population, drill):
                send_more(population)
                for _ in range(4):
                    drill.block()
                    population.await_answers()
            refused = run(["store", "check", "--store", redis.url])

            assert refused == 2  # by the old password
    finally:
        redis.kill()


def relayed_device(place: Path, definitions: Path, keys: Path, url: str) -> Device:
    """Start a device of an app that came with a file of the gateway's keys."""
    configs = [key.config for key in decode_key_file(keys.read_bytes())]
    return Device(
        place,
        load_collections(definitions),
        datetime.now(UTC).timestamp(),
        RelayTransport(url, configs, None, SystemClock.now),
        randomness=SystemRandomSource(),
    )


def waiting(device: Device) -> int:
    return device.state.waiting(device.clock.now())


def flushed(device: Device) -> bool:
    device.client.flush()
    return waiting(device) == 0


def deliver(*devices: Device) -> None:
    """Record on each device, and flush until the gateway has all; the relay loses replies."""
    for device in devices:
        device.record()
    for device in devices:
        wait_until(partial(flushed, device))


def test_the_gateway_s_key_is_replaced_and_no_report_is_lost(tmp_path: Path) -> None:
    """A device that has the old key alone keeps its report until it has the new file."""
    start = datetime.now(UTC).date()
    definitions = tmp_path / "collections.toml"
    dates = {"from": start, "until": start + timedelta(days=300)}
    definitions.write_text(definitions_text(theme={"unit": "user", **dates}))
    with Host(tmp_path / "host", AGGREGATOR, flags=("--collections", str(definitions))) as host:
        assert run(["init", "--store", host.store, "--yes"]) == 0
        old, new = tmp_path / "old.keys", host.path("/etc/veilcount/relay.keys")
        assert run(["relay-keys", "create", "--out", str(old), "--store", host.store]) == 0
        host.run("systemctl start veilcount")
        host.names |= {"OLD_ID": "1", "NEW_ID": "2"}
        server = host.service.server
        assert server is not None
        log = RelayLog(f"{host.url}/v1/ohttp", loses_every=5)
        with relay(log) as url, Drill("Replace the gateway's key", host) as drill:
            olds = [relayed_device(tmp_path / f"{n}", definitions, old, url) for n in range(3)]
            deliver(olds[0])
            drill.block()
            news = [relayed_device(tmp_path / f"new{n}", definitions, new, url) for n in range(2)]
            deliver(olds[1], news[0])
            drill.block()
            wait_until(lambda: KEY_PROBLEM in post_garbage(server, key_id=1).text)
            deliver(news[1])
            olds[2].record()
            olds[2].client.flush()
            kept = waiting(olds[2])
            drill.block()
            for device in (*olds, *news):
                device.stop()
            updated = relayed_device(tmp_path / "2", definitions, new, url)
            wait_until(partial(flushed, updated))
            updated.stop()
        host.service.stop()
        with closing(open_store(host.store)) as opened:
            (series,) = load_catalog(opened).series.values()
            counted = sum(opened.report_counts(series).values())

    assert (kept, counted) == (1, 5)
