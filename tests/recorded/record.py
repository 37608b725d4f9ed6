"""Record the world of a protocol, once: `python -m tests.recorded.record`.

It refuses to write over a record: a later version adds a folder beside it.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from veilcount_client.state.sqlite_database import FILE
from veilcount_shared.wire import decode_binary

from ..aggregator.web.api.deployment_fixtures import Deployment, open_worker
from ..client.device_fixtures import Wire, at, clock_at
from ..redis_server import RedisServer
from .shuffler_store import fill_shuffler
from .world import (
    BEFORE,
    DAYS,
    DEFINITIONS,
    FOLDER,
    OFFLINE,
    PERSONS,
    DeployedWire,
    Exchange,
    collections,
    content,
    devices,
    dumped,
    release,
    releases,
    row,
    sent_from,
    take,
    use,
)


def record(folder: Path) -> None:
    """Record all: what devices send is the same whatever the engine of the store."""
    fingerprints = {each.name: each.fingerprint for each in collections().values()}
    write("definitions.json", fingerprints)
    record_device(folder / "devices")
    store = folder / "store.db"
    with open_worker(f"sqlite:///{store}", BEFORE, make=True) as deployed:
        deployed.push(DEFINITIONS.read_text(encoding="utf-8"))
        exchanges = lives(deployed, folder / "devices")
        write("bodies.json.gz", list(map(exchanged, exchanges)))
        fill_shuffler(deployed, folder / "another")
        release(deployed)
        write("store.json", {"content": content(deployed), "releases": releases(deployed)})
    keep("store.db.gz", store.read_bytes())
    with closing(RedisServer(folder)) as redis:
        with open_worker(redis.url, BEFORE, make=True) as deployed:
            deployed.push(DEFINITIONS.read_text(encoding="utf-8"))
            for exchange in exchanges:
                take(deployed, exchange.instant, exchange.body)
            fill_shuffler(deployed, folder / "shuffler")
            write("store.redis.json", {"content": content(deployed)})
        write("store.redis.json.gz", dumped(redis))
    write("shuffler.json.gz", {name: raw.hex() for name, raw in files(folder / "shuffler")})


def record_device(folder: Path) -> None:
    """Record the state of a device that could not send, and what it sends once it can."""
    clock = clock_at(at(-1))
    wire = Wire(clock)
    wire.offline()
    with devices(folder, wire, clock, OFFLINE) as (one,):
        use(clock, [one], 0, DAYS)
        one.stop()
        state = (one.place / FILE).read_bytes()
    keep("device.db.gz", state)
    write("device.json", sent_from(folder / "later", state))


def lives(deployed: Deployment, folder: Path) -> list[Exchange]:
    """Have persons use the app; return what their devices sent."""
    clock = clock_at(at(-1))
    wire = DeployedWire(deployed, clock)
    with devices(folder, wire, clock, *range(PERSONS)) as running:
        use(clock, running, 0, DAYS)
        for one in running:
            one.stop()
    return wire.exchanges


def files(folder: Path) -> list[tuple[str, bytes]]:
    """Return the files below a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(str(path.relative_to(folder)), path.read_bytes()) for path in paths]


def exchanged(exchange: Exchange) -> dict[str, Any]:
    """Return a body and all that it says, as JSON has it."""
    batch = decode_binary(exchange.body)
    return {
        "instant": exchange.instant,
        "body": exchange.body.hex(),
        "reports": list(map(row, batch.reports)),
        "verdicts": exchange.verdicts,
    }


def write(name: str, document: Any) -> None:
    """Record a document: a member of it a line."""
    members = json.dumps(document, indent=0 if name.endswith(".gz") else 1)
    keep(name, members.encode() + b"\n")


def keep(name: str, content: bytes) -> None:
    """Record a file."""
    if name.endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    with (FOLDER / name).open("xb") as file:
        file.write(content)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        record(Path(place))
