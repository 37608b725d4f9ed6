"""What a relay's replies mean: the gateway's own problem with a key, and what anybody else says."""

from __future__ import annotations

import socket
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from urllib3.util.connection import create_connection

from veilcount_client.delivery import deadline
from veilcount_client.delivery.relay import RelayTransport
from veilcount_client.delivery.transport import MAX_SECONDS, Later
from veilcount_shared.oblivious_http.encapsulation import RESPONSE_TYPE
from veilcount_shared.oblivious_http.key_config import KEY_PROBLEM, KeyConfig
from veilcount_shared.problem_details import TYPE_PREFIX

from ..device_fixtures import Device, at, one_collection
from .server_fixtures import answering, serving

PROBLEM = "application/problem+json"
KEYS = [KeyConfig(2, bytes([9]) + bytes(31)), KeyConfig(1, bytes([9]) + bytes(31))]
NAMED = f'{{"type": "{KEY_PROBLEM}", "title": "key identifier unknown"}}'

REPLIES = [
    (400, PROBLEM, NAMED, "KeyRetired"),
    (401, PROBLEM, NAMED, "KeyRetired"),
    (400, f"{PROBLEM}; charset=utf-8", NAMED, "KeyRetired"),
    (200, PROBLEM, NAMED, "NoGatewayReply"),
    (403, PROBLEM, NAMED, "NoGatewayReply"),
    (400, "text/html", NAMED, "NoGatewayReply"),
    (400, PROBLEM, NAMED[:-1], "NoGatewayReply"),
    (400, PROBLEM, f'["{KEY_PROBLEM}"]', "NoGatewayReply"),
    (400, PROBLEM, f'{{"type": "about:blank", "detail": "{KEY_PROBLEM}"}}', "NoGatewayReply"),
    (400, PROBLEM, f'{{"type": "{TYPE_PREFIX}bad-request"}}', "NoGatewayReply"),
    (422, PROBLEM, f'{{"type": "{TYPE_PREFIX}bad-field"}}', "NoGatewayReply"),
    (413, PROBLEM, "{}", "NoGatewayReply"),
    (200, RESPONSE_TYPE, "no encapsulated response at all, if long enough", "NoGatewayReply"),
    (200, RESPONSE_TYPE, "", "NoGatewayReply"),
    (200, "application/json", '{"verdicts": ["counted"]}', "NoGatewayReply"),
    (301, "text/html", "", "NoGatewayReply"),
    (503, "text/plain", "", "NoGatewayReply"),
]


@pytest.mark.parametrize(("status", "kind", "body", "why"), REPLIES)
def test_no_unencrypted_reply_is_an_outcome(status: int, kind: str, body: str, why: str) -> None:
    """Whoever sends it, reports wait: a relay can forge all of these.

    Each request begins with the newest key; if it is unknown, the same exchange tries the other.
    """
    with serving(answering(status, body.encode(), Content_Type=kind)) as server:
        transport = RelayTransport(server.url, KEYS, None, lambda: 0.0)
        outcome = transport.send(b"a batch", 1)
        transport.send(b"another batch", 1)
    key_ids = [request.body[0] for request in server.requests]

    assert outcome == Later(why)
    assert key_ids == ([2, 1] * 2 if why == "KeyRetired" else [2] * 2)


def test_no_failure_after_an_unknown_key_counts_as_unsent() -> None:
    """The first request was read: a relay that refuses the second gets no hourly attempts."""
    with serving(answering(400, NAMED.encode(), Content_Type=PROBLEM)) as server:
        transport = RelayTransport(server.url, KEYS, None, lambda: 0.0)
        with patch(f"{deadline.__name__}.create_connection", _once(create_connection)):
            outcome = transport.send(b"a batch", 1)

    assert len(server.requests) == 1
    assert outcome == Later("NoGatewayReply", seen=True)


def _once(connect: Callable[..., socket.socket]) -> Callable[..., socket.socket]:
    """Return a function that connects once and is refused from then on."""
    calls = count()

    def connect_once(*arguments: Any, **options: Any) -> socket.socket:
        if next(calls):
            raise ConnectionRefusedError
        return connect(*arguments, **options)

    return connect_once


def test_all_keys_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exchange that tries each key in turn ends within the time of its lease."""
    deadlines: list[float] = []

    class RecordedDeadline(deadline.Deadline):
        def __init__(self, seconds: float) -> None:
            deadlines.append(seconds)
            super().__init__(seconds)

    monkeypatch.setattr(deadline, "Deadline", RecordedDeadline)
    with serving(answering(400, NAMED.encode(), Content_Type=PROBLEM)) as server:
        RelayTransport(server.url, KEYS, None, lambda: 0.0).send(b"a batch", 1)

    assert len(server.requests) == len(KEYS)
    assert deadlines == [MAX_SECONDS]


@pytest.mark.parametrize(("status", "body"), [(400, NAMED), (422, "{}"), (410, "{}")])
def test_a_forging_relay_loses_no_report(tmp_path: Path, status: int, body: str) -> None:
    """For days: no report and no epsilon is lost, and `explain` says who did not reply."""
    with serving(answering(status, body.encode(), Content_Type=PROBLEM)) as server:
        transport = RelayTransport(server.url, KEYS, None, lambda: 0.0)
        device = Device(tmp_path, one_collection("it", late=20), at(0, 9), transport)
        device.record()
        stored = device.stored
        for day in range(1, 4):
            device.run_until(at(day, 12))
        waiting = device.state.waiting(device.clock.now())
        explained = str(device.client.explain("it"))
        kept, lost = device.stored, device.losses()
        device.stop()

    assert server.requests
    assert kept == stored
    assert lost == {}
    assert waiting == len(stored) == 1
    name = "ship the file" if status == 400 else "check the relay"
    assert name in explained
