"""What `client` measures, each in a process of its own: `python -m bench.client_worker NAME ...`.

Prints one JSON object of figures.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from veilcount_client import Client
from veilcount_client.delivery.worker import ClientWorker
from veilcount_client.state import ConsentDecision, Resumption, sqlite
from veilcount_client.state.key_derivation import person_key
from veilcount_shared import Collection, parse_collections

TODAY = datetime.now(UTC).date()
EVENTS = 1000  # a day and person
TOKEN = "id {}"
FILE = """
app = "bench"
[bench]
question = "How long does it take?"
boolean = true
epsilon = 1
unit = "{}"
from = {}
until = {}
"""


def collection(unit: str, per_day: int = 0) -> Collection:
    """Return a yes-or-no question."""
    text = FILE.format(unit, TODAY - timedelta(days=1), TODAY + timedelta(days=5))
    return parse_collections(text + (f"per_day = {per_day}" if per_day else ""), _no_values)[
        "bench"
    ]


def _no_values(name: str) -> list[str]:
    raise FileNotFoundError(name)


def client_of(url: str, folder: str, question: Collection, persons: int) -> Client:
    """Return a client that acts for so many persons, all of whom have consented."""
    client = Client(
        url,
        collections={"bench": question},
        state_dir=folder,
        persons=persons > 0,
        jitter=0,
        key="a key",
    )
    if persons:
        _consent_all(client, question, persons)
    else:
        client.consent(True)
    return client


def _consent_all(client: Client, question: Collection, persons: int) -> None:
    """What `person(id).consent(True)` does, for all of them in one transaction."""
    state: Any = worker_of(client).state
    decision = ConsentDecision(1.0, consented=True, covered={question.fingerprint: Resumption()})
    with state._writing() as database:
        for number in range(persons):
            sqlite.consent(database, person_key(state.root, TOKEN.format(number)), decision)


def worker_of(client: Client) -> ClientWorker:
    """Return the inside of a client."""
    assert client._session.worker is not None
    return client._session.worker


# -- what is measured ------------------------------------------------------------------------------


def record_persons(url: str, folder: str, calls: int) -> dict[str, float]:
    """One record of each of so many persons."""
    question = collection("day")
    client = client_of(url, folder, question, calls)
    consented = _size(client, folder)
    figures = _record(client, [client.person(number) for number in range(calls)], 1)
    assert client.flush(until="stored")
    stored = _size(client, folder)
    assert _answers(client) == calls
    return figures | {"consented": consented / calls, "stored": stored / calls}


def record_events(url: str, folder: str, calls: int) -> dict[str, float]:
    """So many events, as many of each person as a day holds."""
    persons = -(-calls // EVENTS)
    client = client_of(url, folder, collection("event", EVENTS), persons)
    empty = _size(client, folder)
    people = [client.person(number) for number in range(persons)]
    figures = _record(client, people, min(EVENTS, calls))
    assert client.flush(until="stored")
    assert _answers(client) == persons * min(EVENTS, calls)
    queued = (_size(client, folder) - empty) / (persons * min(EVENTS, calls))
    return figures | {"queued": queued}


def _record(client: Client, people: list[Any], each: int) -> dict[str, float]:
    """Time every call; return quantiles in microseconds, and the growth in bytes."""
    clock, times = time.perf_counter_ns, [0] * (len(people) * each)
    _forget_peak()
    before = _memory()
    place = 0
    for person in people:
        for _ in range(each):
            start = clock()
            person.record("bench", True)
            times[place] = clock() - start
            place += 1
    growth = _memory() - before
    times.sort()
    figures = {f"p{share:g}": times[int(len(times) * share / 100)] / 1e3 for share in (50, 99)}
    return figures | {"worst": times[-1] / 1e3, "growth": growth}


def _memory() -> int:
    """Return the most memory that this process held since its peak was forgotten, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _forget_peak() -> None:
    """Have the peak begin at what is held now: what made the persons is not what records cost."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _size(client: Client, folder: str) -> int:
    """Return the size of the state on the disk."""
    state: Any = worker_of(client).state
    with state._reading() as database:
        database.execute("pragma wal_checkpoint(truncate)")
    return sum(path.stat().st_size for path in Path(folder).iterdir())


def _answers(client: Client) -> int:
    state: Any = worker_of(client).state
    return int(state._read("select sum(answers) from used")[0][0])


def send_persons(url: str, folder: str, reports: int) -> dict[str, float]:
    """Deliver a report of each of so many persons."""
    return _send(client_of(url, folder, collection("day"), reports), reports, 1)


def send_alone(url: str, folder: str, reports: int) -> dict[str, float]:
    """Deliver the reports of one person, a body each: every one is due before the next comes."""
    client = client_of(url, folder, collection("event", EVENTS), 0)
    taken = 0.0
    for _ in range(reports):
        client.record("bench", True)
        assert client.flush(until="stored")
        start = time.perf_counter()
        assert client.flush(timeout=60)  # delivered: an uploader only hands to threads
        taken += time.perf_counter() - start
    return {"rate": reports / taken}


def _send(client: Client, persons: int, each: int) -> dict[str, float]:
    people = [client.person(number) for number in range(persons)]
    start = time.perf_counter()
    for person in people:
        for _ in range(each):
            person.record("bench", True)
    assert client.flush(timeout=300)
    return {"rate": persons * each / (time.perf_counter() - start)}


def leave(url: str, folder: str, calls: int) -> dict[str, float]:
    """End with a collector that never answers: the time that the client takes of the exit."""
    ended: list[float] = []
    # Registered before the client is made, hence run after it has done what it does at exit.
    atexit.register(lambda: _say({"exit": (time.perf_counter() - ended[0]) * 1e3}))
    client = client_of(url, folder, collection("event", 2 * calls), 0)
    client.record("bench", True)
    time.sleep(0.3)  # it is in a request
    for _ in range(calls):
        client.record("bench", True)
    ended.append(time.perf_counter())
    return {}


MEASURED: dict[str, Callable[[str, str, int], dict[str, float]]] = {
    each.__name__: each for each in (record_persons, record_events, send_persons, send_alone, leave)
}


def _say(figures: dict[str, float]) -> None:
    print(json.dumps(figures), flush=True)


def main() -> None:
    """Measure what was asked for."""
    figures = MEASURED[sys.argv[1]](sys.argv[2], sys.argv[3], int(sys.argv[4]))
    if figures:
        _say(figures)
        os._exit(0)  # what is still queued is of no interest


if __name__ == "__main__":
    main()
