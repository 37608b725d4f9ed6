"""What a device says beside its answer is in no file of a real deployment, nor in its words.

Marked values go in at the socket, in headers, queries, paths and bodies, with and without a good
batch; then the store's files, a dump of Redis, the log, the metrics and a backup are searched.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.store import ROW_BYTES, open_store
from veilcount_aggregator.store.backup import backup
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.report import Batch
from veilcount_shared.wire import BINARY_TYPE, JSON_TYPE, encode_binary, encode_json

from ...redis_server import RedisServer
from ..server import Server
from .campaign import Campaign

MARK = "MaRkEdVaLuE"
ADDRESS = "203.0.113.77"
PSEUDONYM = b"twelve bytes" + b"TAIL"
SPELLED = base64.urlsafe_b64encode(PSEUDONYM).decode().rstrip("=")
MARKED = (
    *("User-Agent", "X-Forwarded-For", "X-Real-IP", "Forwarded", "Via", "Referer", "Cookie"),
    *("Accept-Language", "X-Request-ID", "Traceparent", "From", "X-Marked"),
)
HEADERS = dict.fromkeys(MARKED, f"{MARK} {ADDRESS}")
#: which may stand nowhere at all; beside them, only the first bytes of a pseudonym are kept
MARKS = [
    *(MARK.encode(), MARK.lower().encode(), MARK.upper().encode(), MARK.encode().hex().encode()),
    *(ADDRESS.encode(), PSEUDONYM, PSEUDONYM[ROW_BYTES - 1 :], SPELLED.encode()),
    PSEUDONYM.hex().encode(),
]


class Place(NamedTuple):
    """A store, and where its files are."""

    url: str
    folder: Path
    redis: RedisServer | None = None


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / "store"
    folder.mkdir()
    if request.param == "sqlite":
        yield Place(f"sqlite:///{folder}/store.db", folder)
        return
    redis = RedisServer(folder, rdbcompression="no")
    yield Place(redis.url, folder, redis)
    redis.kill()


def bodies(campaign: Campaign) -> Iterator[tuple[str, bytes]]:
    """Yield good and bad bodies; the good ones bear a marked pseudonym."""
    report = replace(campaign.person(SeededRandomSource(1))[0], pseudonym=PSEUDONYM)
    good = Batch((report,))
    yield BINARY_TYPE, encode_binary(good)
    yield JSON_TYPE, encode_json(good)
    yield BINARY_TYPE, encode_binary(good) + MARK.encode()
    yield MARK, MARK.encode()


def knock(server: Server, campaign: Campaign) -> list[int]:
    """Call the endpoints with marks wherever they fit; return the responses."""
    result = []
    for kind, body in bodies(campaign):
        for query, origin in (("", {}), (f"?q={MARK}&{MARK}={ADDRESS}", {"Origin": MARK})):
            headers = HEADERS | {"Content-Type": kind} | origin
            reply = server.ask("POST", f"/v1/reports{query}", data=body, headers=headers)
            result.append(reply.status_code)
    series = campaign.collections[0].fingerprint
    for fingerprint, pseudonym in ((series, SPELLED), (series, MARK), (MARK, SPELLED)):
        name = {"fingerprint": fingerprint, "pseudonym": pseudonym}
        reply = server.ask("POST", f"/v1/rows/close?q={MARK}", json=name, headers=HEADERS)
        result.append(reply.status_code)
    for path in (f"/{MARK}", f"/v1/{MARK}?{MARK}", f"/docs/{MARK}", f"/v1/collections/{MARK}"):
        requested = [server.ask(method, path, headers=HEADERS) for method in ("GET", MARK)]
        result += [reply.status_code for reply in requested]
    return result


def sinks(server: Server, place: Place, key: str) -> dict[str, bytes]:
    """Return everything that a deployment leaves anywhere, while it still runs."""
    metrics = server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {key}"})
    assert metrics.status_code == 200
    if place.redis is not None:
        place.redis.ask("SAVE")
    else:
        backup(place.url, place.folder / "backup")
    files = [path for path in place.folder.rglob("*") if path.is_file()]
    return {"metrics": metrics.content} | {path.name: path.read_bytes() for path in files}


def test_no_mark_is_in_any_sink(place: Place, tmp_path: Path) -> None:
    campaign = Campaign.write(tmp_path)
    with closing(open_store(place.url, make=True)) as store:
        _, key = create_key(store, Role.ADMIN, "test", campaign.now())
    with campaign.serve(place.url, "--workers", "2") as server:
        result = knock(server, campaign)
        left = sinks(server, place, key)
    left["log"] = server.log.read_bytes()
    series = campaign.collections[0].fingerprint.encode()

    assert 200 in result
    assert {status // 100 for status in result} <= {2, 4}
    assert {name for name, held in left.items() for mark in MARKS if mark in held} == set()
    assert series in left["dump.rdb" if place.redis else "backup"], "the search finds what is there"
    assert b"opened" in left["metrics"]
