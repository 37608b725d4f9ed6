"""Devices for any server: its definitions are fetched, and each body is drawn as it is sent.

Values are made up, and every send is a new device's answers of the newest period.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from http import HTTPStatus
from random import SystemRandom
from typing import Any
from urllib.parse import urlsplit

import requests
from loadtests.ipc import HEADERS, REPORTS_PATH
from locust import FastHttpUser, events, task

from veilcount_aggregator.records.definitions import DefinitionSource
from veilcount_aggregator.server import development_devices
from veilcount_client.delivery.padded_bodies import encode_padded
from veilcount_reader.http_client import AggregatorClient
from veilcount_shared import Collection
from veilcount_shared.report import Batch, Report
from veilcount_shared.schedule import SECRET_BYTES, period_at
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import decode_verdicts

KEY, DEVICE_KEY = "VEILCOUNT_KEY", "VEILCOUNT_DEVICE_KEY"
SECONDS = 30.0

chance = SystemRandom()
running: list[Collection] = []


def fetch_running(url: str, key: str, now: datetime) -> list[Collection]:
    """Return the open collections of a server whose campaign is under way, each by its newest
    definition.
    """
    try:
        with AggregatorClient(url, key, SECONDS) as client:
            response = client.request("GET", "/v1/definitions")
    except requests.RequestException:
        raise SystemExit(f"{url}: no answer: check the address and the network") from None
    if response.status_code != HTTPStatus.OK:
        raise SystemExit(f"{url}: HTTP {response.status_code}: give an analyst's key as {KEY}")
    document: dict[str, Any] = response.json()
    newest: dict[str, Collection] = {}
    for source in document["sources"]:
        newest |= DefinitionSource(**source).collections()
    found = [
        value
        for value in newest.values()
        if value.fingerprint not in document["closed"] and period_at(value, now) is not None
    ]
    if not found:
        raise SystemExit(f"{url}: no open collection whose campaign is under way: push one")
    return found


def draw_reports(collection: Collection, now: datetime) -> tuple[Report, ...]:
    """Return a new device's answers of the newest period, which may travel together."""
    period = period_at(collection, now)
    if period is None:
        raise SystemExit(f"{collection.name}: its campaign ended during the run")
    secret = chance.randbytes(SECRET_BYTES)
    return tuple(development_devices.draw_reports(collection, secret, period))


class Device(FastHttpUser):
    """Sends one body after the other, each of a collection that is drawn."""

    network_timeout = SECONDS

    @task
    def send(self) -> None:
        """Send a body; it fails unless each of its reports is counted."""
        reports = draw_reports(chance.choice(running), datetime.now(UTC))
        body: Any = encode_padded(Batch(reports))  # bytes do, though the signature does not say so
        with self.client.post(
            REPORTS_PATH, data=body, headers=_headers(), catch_response=True
        ) as reply:
            if wrong := _problem(reply, len(reports)):
                reply.failure(wrong)


def _headers() -> dict[str, str]:
    key = os.environ.get(DEVICE_KEY)
    return HEADERS | ({"Authorization": f"Bearer {key}"} if key else {})


def _problem(reply: Any, reports: int) -> str:
    """Return why a body was not counted; empty if it was."""
    if reply.status_code == HTTPStatus.UNAUTHORIZED:
        return f"the intake requires a device key: give it as {DEVICE_KEY}"
    if reply.status_code != HTTPStatus.OK:
        return f"HTTP {reply.status_code}"
    verdicts = set(decode_verdicts(reply.content, reports)) - {Verdict.COUNTED}
    return ", ".join(sorted(verdicts))


def set_clock(**_: Any) -> None:
    """Let gevent look at its clock: it has not since before all this was loaded, and the run's
    seconds would count from then.
    """
    time.sleep(0.001)


def prepare(environment: Any, **_: Any) -> None:
    """Fetch the definitions; warn that what is sent is made up."""
    url = environment.host
    if urlsplit(url or "").scheme not in {"http", "https"}:
        raise SystemExit("give the server's address: --host https://stats.example.org")
    running[:] = fetch_running(url, os.environ.get(KEY, ""), datetime.now(UTC))
    print(f"made-up answers will be counted in: {', '.join(each.name for each in running)}")


def fail_unanswered(environment: Any, **_: Any) -> None:
    """A run in which nothing was answered shows nothing: it fails."""
    if not environment.stats.total.num_requests:
        print("no body was answered: run for longer (--run-time; ./dev load --seconds)")
        environment.process_exit_code = 1


HOOKS: tuple[tuple[Any, Any], ...] = (
    (events.init, set_clock),
    (events.test_start, prepare),
    (events.quitting, fail_unanswered),
)
for event, listener in HOOKS:
    event.add_listener(listener)
