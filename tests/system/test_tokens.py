"""Issuer, aggregator and devices as they are: real processes, real HTTP, and kills in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.records.definitions import load_catalog
from veilcount_aggregator.store import open_store
from veilcount_client.delivery.transport import HttpTransport
from veilcount_issuer.accounts import read_account_key, sign_account
from veilcount_shared import SystemRandomSource, load_collections

from ..client.device_fixtures import HOUR, Device, clock_at, definitions_text, minutes_of, pass_time
from ..redis_server import RedisServer
from .server import Server, free_port

DAYS, PEOPLE = 4, 5


@pytest.fixture(params=["sqlite", "redis"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The stores of an issuer and of an aggregator."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/issuer.db", f"sqlite:///{tmp_path}/aggregator.db"
        return
    (tmp_path / "i").mkdir()
    (tmp_path / "a").mkdir()
    servers = [RedisServer(tmp_path / "i"), RedisServer(tmp_path / "a")]
    try:
        yield servers[0].url, servers[1].url
    finally:
        for each in servers:
            each.kill()


class Restarted:
    """A server that is killed and started again at its address."""

    def __init__(
        self, store: str, folder: Path, program: tuple[str, ...], flags: list[str]
    ) -> None:
        self.store, self.folder, self.program, self.flags = store, folder, program, flags
        self.port = free_port()
        self.server: Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.folder / f"server-{self.port}.log").read_text(encoding="utf-8")

    def start(self) -> None:
        self.server = Server(
            self.store, self.folder, *self.flags, port=self.port, program=self.program
        )

    def close(self) -> None:
        self.kill()

    def kill(self) -> None:
        if self.server is not None:
            self.server.kill()

    def restart(self) -> None:
        self.kill()
        self.start()


def test_each_account_counts_once_through_kills(stores: tuple[str, str], tmp_path: Path) -> None:
    """No server is there at first; later both are killed while devices are at it.

    The devices' days are the aggregator's; to the issuer they have not begun.

    What a person who installs the app again records in days that are issued already goes nowhere.
    """
    issuer_store, store = stores
    today = datetime.now(UTC).date()
    file = tmp_path / "collections.toml"
    start = today - timedelta(days=DAYS)  # everybody consents on the first day
    dates = {"from": start, "until": today + timedelta(days=1)}
    file.write_text(definitions_text(theme={"answers": DAYS, "linkage": "token", **dates}))
    key = tmp_path / "account.key"
    assert run(["issuer", "keys", "--collections", str(file), "--store", issuer_store]) == 0
    assert run(["issuer", "account-key", str(key)]) == 0
    assert run(["init", "--store", store, "--yes"]) == 0
    assert run(["collections", "push", str(file), "--store", store]) == 0
    flags = ["--collections", str(file), "--account-key", str(key)]
    issuer = Restarted(issuer_store, tmp_path, ("tests.system.early_issuer",), flags)
    aggregator = Restarted(store, tmp_path, ("veilcount_aggregator",), [])
    begin = datetime.combine(start, datetime.min.time(), UTC).timestamp()
    clock = clock_at(begin + HOUR)

    def device(number: int, account: int) -> Device:
        expires = datetime.now(UTC) + timedelta(days=1)
        token = sign_account(read_account_key(key), f"account-{account}", expires)
        return Device(
            tmp_path / str(number), load_collections(file), clock,
            HttpTransport(aggregator.url, None, clock.now),
            issuer=issuer.url, account=token, randomness=SystemRandomSource(),
        )  # fmt: skip

    with minutes_of(HOUR), closing(issuer), closing(aggregator):
        devices = [device(number, number) for number in range(PEOPLE)]
        for day in range(DAYS + 1):
            for hour in (2, 9, 16):
                pass_time(clock, begin + day * 24 * HOUR + hour * HOUR, *devices)
                if (day, hour) in {(0, 9), (1, 2)}:
                    issuer.restart()
                if (day, hour) in {(1, 9), (2, 9)}:
                    aggregator.restart()
                for each in devices:
                    each.record()
        devices += [device(PEOPLE, 0)]  # the first person's, installed anew
        devices[-1].record()
        pass_time(clock, datetime.now(UTC).timestamp(), *devices)
        for _ in range(3):
            for each in devices:
                each.client.flush()

        assert [each.state.waiting(clock.now()) for each in devices[:PEOPLE]] == [0] * PEOPLE
        for each in devices:
            each.stop()
        with closing(open_store(store)) as opened:
            (series,) = load_catalog(opened).series.values()
            counts = {cell.period: n for cell, n in opened.report_counts(series).items()}
    assert counts == dict.fromkeys(range(1, DAYS + 1), PEOPLE)
    assert "account-" not in issuer.log + aggregator.log
