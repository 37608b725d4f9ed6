"""Whatever a released version has written, this one reads: definitions, bodies, states and stores.

Each test reads what `record.py` recorded, and with a byte of it changed it fails.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from veilcount_shared.wire import decode_binary

from ..aggregator.web.api.deployment_fixtures import Deployment, open_worker
from ..redis_server import RedisServer
from ..vectors.frozen import changed_rows, frozen
from ..vectors.vector_files import FOLDER as VECTORS
from .world import (
    BEFORE,
    DEFINITIONS,
    collections,
    content,
    read,
    releases,
    row,
    sent_from,
    take,
    unpacked,
)

AFTER = datetime(2026, 12, 6, 12, tzinfo=UTC)
MORE = 30  # devices that send to the recorded shuffler


@pytest.fixture
def bodies() -> list[dict[str, Any]]:
    """What devices sent, and what became of it."""
    found: list[dict[str, Any]] = read("bodies.json.gz")
    return found


def test_definitions_are_the_same_series() -> None:
    assert {each.name: each.fingerprint for each in collections().values()} == read(
        "definitions.json"
    )


def test_bodies_decode_to_the_same_reports(bodies: list[dict[str, Any]]) -> None:
    for recorded in bodies:
        body = bytes.fromhex(recorded["body"])
        assert list(map(row, decode_binary(body).reports)) == recorded["reports"]
        changed = body[:60] + bytes([body[60] ^ 1]) + body[61:]  # of a pseudonym or a message
        assert list(map(row, decode_binary(changed).reports)) != recorded["reports"]


def test_bodies_are_counted_as_they_were(tmp_path: Path, bodies: list[dict[str, Any]]) -> None:
    with open_worker(f"sqlite:///{tmp_path}/store.db", BEFORE, make=True) as deployed:
        deployed.push(DEFINITIONS.read_text(encoding="utf-8"))
        assert send(deployed, bodies) == [tuple(each["verdicts"]) for each in bodies]

        recorded = read("store.json")["content"]
        recorded["shuffled"] = content(deployed)["shuffled"]  # which no device sends here
        assert content(deployed) == recorded


def send(deployed: Deployment, bodies: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Send recorded bodies; return the verdicts."""
    return [
        take(deployed, each["instant"], bytes.fromhex(each["body"])).verdicts for each in bodies
    ]


def test_a_device_sends_what_it_could_not(tmp_path: Path) -> None:
    assert sent_from(tmp_path / "a", unpacked("device.db.gz")) == read("device.json")


# -- stores ----------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The recorded file of SQLite."""
    file = tmp_path / "store.db"
    file.write_bytes(unpacked("store.db.gz"))
    file.chmod(0o600)
    return file


def test_a_file_is_read_and_goes_on(file: Path, bodies: list[dict[str, Any]]) -> None:
    recorded = read("store.json")
    with open_worker(f"sqlite:///{file}", AFTER) as deployed:
        assert content(deployed) == recorded["content"]
        assert releases(deployed) == recorded["releases"]
        goes_on(deployed, bodies)


def test_keys_of_redis_are_read_and_go_on(redis: RedisServer, bodies: list[dict[str, Any]]) -> None:
    with open_worker(redis.url, AFTER) as deployed:
        assert content(deployed) == read("store.redis.json")["content"]
        goes_on(deployed, bodies)


def goes_on(deployed: Deployment, bodies: list[dict[str, Any]]) -> None:
    """Refuse what was counted before, and count what is new."""
    assert {word for words in send(deployed, bodies) for word in words} == {"duplicate"}
    before = content(deployed)
    deployed.clocks.now = AFTER
    assert [word.value for word in deployed.verdicts(deployed.report("theme"))] == ["counted"]
    assert content(deployed) != before


# -- what is changed is noticed --------------------------------------------------------------------


def altered(folder: Path, file: str, statement: str) -> bytes:
    """Return a recorded file of SQLite after a statement."""
    path = folder / "altered.db"
    path.write_bytes(unpacked(file))
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement).rowcount > 0
    return path.read_bytes()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM report WHERE number = (SELECT max(number) FROM report)",
        "UPDATE report SET period = 0 WHERE number = (SELECT max(number) FROM report)",
    ],
)
def test_a_device_that_is_read_otherwise_is_noticed(tmp_path: Path, statement: str) -> None:
    state = altered(tmp_path, "device.db.gz", statement)

    assert sent_from(tmp_path / "a", state) != read("device.json")


# -- vectors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", frozen())
def test_no_vector_of_protocol_1_is_changed(name: str) -> None:
    rows, text = frozen()[name], (VECTORS / name).read_text(encoding="utf-8")
    longest = max(text.splitlines(), key=len)

    assert changed_rows(rows, text) == 0
    assert changed_rows(rows, text.replace(longest, f"{longest}?")) == 1
