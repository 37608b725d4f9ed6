"""A process that gevent patches: our threads are greenlets, and nothing stops the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..delivery.server_fixtures import counting, serving
from .test_prefork_servers import ALL, PERSONS, folder, stored

__all__ = ["folder"]  # a fixture

APP = f"""
from gevent import monkey
monkey.patch_all()

import sys
import gevent
from veilcount_client import Client

client = Client(jitter=0)
ticks = 0

def tick():
    global ticks
    while True:
        gevent.sleep(0.001)
        ticks += 1

def use(person):
    client.person(person).consent(True)
    client.person(person).record("theme", "dark")
    client.person(person).record("minutes", 5)

gevent.spawn(tick)
gevent.joinall([gevent.spawn(use, person) for person in range({PERSONS})], raise_error=True)
before = ticks
print(client.flush(float(sys.argv[1])), ticks > before, client.person(3).consented)
"""  # and ends without a close: what is held is stored


def run(folder: Path, seconds: int) -> str:
    """Run the app, whose flush takes so long at most; return what it prints."""
    command = [sys.executable, "-c", APP, str(seconds)]
    process = subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    assert b"Traceback" not in process.stderr
    return process.stdout.decode()


def test_a_patched_process_records_sends_and_stores_at_its_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(counting) as server:
        monkeypatch.setenv("VEILCOUNT_URL", server.url)
        output = run(folder, 60)

        assert output == "True True True\n"
        assert len(server.reports) == PERSONS  # one of each, of the theme
    assert stored(folder) == ALL


def test_nobody_to_send_to_stops_nothing(folder: Path) -> None:
    """A flush that fails, and an end that waits for nobody."""
    assert run(folder, 1) == "False True True\n"
    assert stored(folder) == ALL
