"""Envelopes that a front takes, and those that it passes on: one limit, one way to be answered."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from veilcount_serving.structured_logging import FaultLog
from veilcount_shared.problem_details import ProblemError
from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE, Envelope
from veilcount_shuffler.envelope_figures import EnvelopeFigures
from veilcount_shuffler.envelope_intake import EnvelopeIntake
from veilcount_shuffler.holding import Holding
from veilcount_shuffler.network_limit import NetworkLimit
from veilcount_shuffler.plain_envelopes import PlainEnvelopes

from .parties import HandClock, messages
from .test_serving import Served, served

ODD = "Origin: https://example.org"  # a head with it is not plain


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that admits eight envelopes an hour of a network."""
    with served(tmp_path_factory.mktemp("shuffler")) as server:
        server.start("--rate", "8")
        yield server


def post(server: Served, raw: bytes, *lines: str, size: int | None = None) -> int:
    """Post bytes in a head with these lines; return the status."""
    own = ("Host: x", f"Content-Type: {ENVELOPE_TYPE}", f"Content-Length: {size or len(raw)}")
    head = "".join(f"{line}\r\n" for line in (*own, *lines, "Connection: close"))
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        connection.sendall(PlainEnvelopes.start + head.encode() + b"\r\n" + raw)
        with connection.makefile("rb") as response:
            return int(response.readline().split()[1])


def test_a_network_has_one_limit_whichever_way_its_envelopes_take(server: Served) -> None:
    """Also where a proxy on this machine names the sender."""
    (envelope,) = messages(server.store.crowd, 1)
    raw, ways = envelope.encode(), ((), (ODD,))
    for network in ("192.0.2", "198.51.100"):
        statuses = [
            post(server, raw, f"X-Forwarded-For: {network}.{number}", *ways[number % 2])
            for number in range(12)
        ]

        assert statuses == [202] * 8 + [429] * 4
    assert [post(server, raw, *ways[number % 2]) for number in range(10)] == [202] * 8 + [429] * 2


@pytest.mark.parametrize("way", [(), (ODD,)], ids=["plain", "passed on"])
def test_refusals_are_the_same_both_ways(server: Served, way: tuple[str, ...]) -> None:
    (envelope,) = messages(server.store.crowd, 1)
    raw = envelope.encode()
    network = f"X-Forwarded-For: 203.0.{len(way)}.1"

    assert post(server, b"VE", network, *way) == 400
    assert post(server, b"VE\x02" + raw[3:], network, *way) == 400
    assert post(server, Envelope(bytes(16), 0, envelope.sealed).encode(), network, *way) == 404
    assert post(server, bytes(2000), network, *way) == 413
    assert post(server, raw, network, *way) == 202


@pytest.mark.parametrize("way", [(), (ODD,)], ids=["plain", "passed on"])
def test_a_body_that_does_not_come_is_refused_and_counted(
    server: Served, way: tuple[str, ...]
) -> None:
    (envelope,) = messages(server.store.crowd, 1)
    raw, network = envelope.encode(), f"X-Forwarded-For: 203.0.{113 + len(way)}.1"
    with ThreadPoolExecutor(4) as devices:
        late = [
            devices.submit(post, server, raw[:-1], network, *way, size=len(raw)) for _ in range(4)
        ]
        assert [response.result() for response in late] == [408] * 4

    assert [post(server, raw, network) for _ in range(6)] == [202] * 4 + [429] * 2
    assert "203.0" not in Path(server.log).read_text()


def test_of_several_lines_the_proxys_names_the_sender(server: Served) -> None:
    """It adds the last one."""
    (envelope,) = messages(server.store.crowd, 1)
    own = "X-Forwarded-For: 203.0.99.1"
    statuses = [
        post(server, envelope.encode(), f"X-Forwarded-For: 10.{number}.0.1", own)
        for number in range(10)
    ]

    assert statuses == [202] * 8 + [429] * 2


def test_a_sender_that_is_gone_is_counted_for_nobody(tmp_path: Path) -> None:
    """By the header of a connection that was reset, anybody could use up a network's limit."""
    clock = HandClock()
    limit = NetworkLimit(1, 1, clock, lambda: 0.0)
    figures = EnvelopeFigures(tmp_path, clock)
    holding = cast("Holding", None)  # nothing gets so far
    intake = EnvelopeIntake(holding, limit, FaultLog(), lambda: True, figures=figures)
    fields = {"content-type": ENVELOPE_TYPE, "content-length": "9", "x-forwarded-for": "192.0.2.1"}
    with pytest.raises(ProblemError) as refused:
        intake.admit(fields, None)
    intake.admit(fields, "127.0.0.1:80")

    assert refused.value.problem.status == 503
    with pytest.raises(ProblemError):
        intake.admit(fields, "127.0.0.1:80")
