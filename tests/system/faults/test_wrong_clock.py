"""Hosts with wrong clocks on real stores: nothing is destroyed, and the others go on."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions, load_catalog
from veilcount_aggregator.store import open_store
from veilcount_analysis.series.series import Series
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, encode_binary

from ...client.device_fixtures import definitions_text
from ...redis_server import RedisServer
from ..server import Server, wait_until

AHEAD = timedelta(days=40)
PERIODS, PERSONS = 20, 50


@dataclass
class Place:
    """A store with a definition whose periods are all open, and who serves from it."""

    url: str
    folder: Path
    series: Series
    key: str

    @contextmanager
    def host(self, ahead: timedelta = timedelta(0)) -> Iterator[tuple[Server, Path]]:
        """Start a host whose clock is off; the file that is yielded too says by how much."""
        shift = self.folder / f"shift-{secrets.token_hex(4)}"
        shift.write_text(str(ahead.total_seconds()))
        program = ("tests.system.shifted_serve", str(shift))
        with Server(self.url, self.folder, program=program) as server:
            yield server, shift

    def report(self, period: int) -> Report:
        pseudonym = secrets.token_bytes(16)
        message = self.series.collection.pack(0)
        return Report(self.series.fingerprint, period, 0, pseudonym, 0, message)

    def fill(self, server: Server) -> list[Report]:
        """Have reports counted in every period; return them."""
        found = [self.report(period) for period in range(PERIODS) for _ in range(PERSONS)]

        assert set(verdicts(server, *found)) == {Verdict.COUNTED}
        return found

    def figure(self, server: Server, name: str) -> float:
        answer = server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {self.key}"})
        (found,) = re.findall(rf"^veilcount_{name}{{}} (\S+)$", answer.text, re.MULTILINE)
        return float(found)


def post(server: Server, *reports: Report) -> requests.Response:
    body = encode_binary(Batch(reports))
    return server.ask("POST", "/v1/reports", data=body, headers={"Content-Type": BINARY_TYPE})


def verdicts(server: Server, *reports: Report) -> list[str]:
    answer = post(server, *reports)

    assert answer.status_code == 200, answer.text
    return list(answer.json()["verdicts"])


def runs(shift: Path, times: int = 3) -> list[int]:
    """Wait until the retention of a host has run a few times; return what each has dropped."""
    file = shift.with_suffix(".runs")
    wait_until(lambda: file.exists() and len(file.read_text().split()) >= times, 60)
    return [int(each) for each in file.read_text().split()][:times]


def rows(redis: RedisServer) -> int:
    """Return how many rows there are in the ledgers of a server."""
    with redis.connection() as connection:
        return sum(connection.hlen(key) for key in connection.keys("veilcount:{*}:[0-9]*:*"))


def place(url: str, folder: Path) -> Place:
    """Make a store for a campaign whose 20th day is today."""
    now = datetime.now(UTC)
    start = now.date() - timedelta(days=PERIODS - 1)
    source = DefinitionSource(
        definitions_text(
            "acme",
            {"from": start, "until": start + timedelta(days=60)},
            asked={"question": "Which?", "values": ["a", "b"]},
        )
    )
    with closing(open_store(url, make=True)) as store:
        add_definitions(store, source, now, "cli")
        _, secret = create_key(store, Role.ANALYST, "", now)
        (series,) = load_catalog(store).series.values()
    return Place(url, folder, series, secret)


def test_a_host_40_days_ahead_destroys_nothing_and_honest_hosts_go_on(tmp_path: Path) -> None:
    """Every row is there, every slot known; what is sent to it waits on the devices."""
    redis = RedisServer(tmp_path)
    here = place(redis.url, tmp_path)
    with here.host() as (honest, _):
        known = here.fill(honest)
        held = rows(redis)
        with here.host(AHEAD) as (ahead, shift):
            waiting = here.report(PERIODS - 1)
            refused, ready = post(ahead, waiting), ahead.ask("GET", "/readyz")
            skew = here.figure(ahead, "clock_skew_seconds")
            dropped = runs(shift)
            spent = verdicts(honest, *known)
            new = verdicts(honest, waiting)

        figure, now = here.figure(honest, "dropped_epochs_total"), rows(redis)
        log = ahead.log_text()
    redis.kill()

    assert (refused.status_code, refused.json()["type"][-5:]) == (503, "clock")
    assert refused.headers["Retry-After"] == "60"
    assert ready.status_code == 503
    assert re.search(r"clock is 3,456,00\d s ahead of the store's", ready.json()["why"])
    assert skew == pytest.approx(AHEAD.total_seconds(), abs=60)
    assert (dropped, figure) == ([0, 0, 0], 0)
    assert '"event": "clock"' in log
    assert (held, now) == (PERIODS * PERSONS, held + 1)
    assert set(spent) == {Verdict.DUPLICATE}
    assert new == [Verdict.COUNTED]
