"""Apps that count, run, forked and killed, by `python -m tests.client.delivery.app_scripts`.

Each says on its standard output what a test needs to know, and logs everything to standard error.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from veilcount_client import Client
from veilcount_client.delivery import transport, uploader
from veilcount_client.delivery.transport import Outcome
from veilcount_client.delivery.worker import ClientWorker
from veilcount_client.state import sqlite
from veilcount_shared import parse_collections

START = 1_796_299_200.0  # 2026-12-03 12:00 UTC
PER_DAY = 64
MARKED = "MARKED"
FILE = f"""
app = "acme-editor"

[theme]
question = "Which theme is active?"
values = ["light", "{MARKED} dark", "system"]
other = "another"
epsilon = 1
unit = "day"
from = 2026-12-01
until = 2027-12-01
segments = {{arm = ["A", "B"]}}

[event]
question = "Was it used?"
boolean = true
epsilon = 1
unit = "event"
per_day = {PER_DAY}
from = 2026-12-01
until = 2027-12-01

[minutes]
question = "How long in all?"
range = [0, 240]
measure = "mean"
takes = "sum"
epsilon = 1
unit = "day"
from = 2026-12-01
until = 2027-12-01
"""
COLLECTIONS = parse_collections(FILE, lambda _: [])


class Running:
    """A clock that was set to a time and runs on from there."""

    def __init__(self, start: float) -> None:
        self._ahead = start - time.time()

    def now(self) -> float:
        """Return the present instant."""
        return time.time() + self._ahead


def client_of(url: str, folder: str | Path, start: float = START, **given: Any) -> Client:
    """Return a client without jitter, on the third day of the campaign."""
    options: dict[str, Any] = {
        "clock": Running(start),
        "jitter": 0,
        "state_dir": Path(folder) / "state",
    }
    return Client(url, collections=COLLECTIONS, **(options | given))


def consenting(url: str, folder: str | Path, start: float = START, **given: Any) -> Client:
    """Return a client whose persons "one" to "nine" (or whose one person) have consented."""
    client = client_of(url, folder, start, **given)
    if client.settings.persons:
        for name in PERSONS:
            client.person(name).consent(True)
    else:
        client.consent(True)
    return client


PERSONS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def worker_of(client: Client) -> ClientWorker:
    """Return the inside of a client."""
    assert client._session.worker is not None
    return client._session.worker


def short_leases() -> None:
    """Have what a process was sending when it left by os._exit come again in seconds."""
    vars(uploader).update(LEASE=3.0, MAX_SECONDS=1.0)


def wait_for_thread(client: Client) -> threading.Thread:
    """Return the uploader's thread."""
    thread = worker_of(client)._process.thread
    assert thread is not None
    return thread


# -- forks -----------------------------------------------------------------------------------------


def fork_with_locks_held(url: str, folder: str) -> None:
    """Fork while another thread holds every lock there is, and a record is queued."""
    client = consenting(url, folder, persons=True)
    with every_lock_held(client) as let_go:
        client.person("one").record("event", True)
        threading.Timer(0.3, let_go.set).start()
        child = os.fork()
        if not child:
            _record_in_child(client, "two")
        reap([child])
    say(client.flush(10))


def fork_in_a_request(url: str, folder: str) -> None:
    """Fork while the uploader waits for a reply."""
    transport.TIMEOUT = (1.0, 1.0)
    client = consenting(url, folder, persons=True)
    asked = threading.Event()
    before_sending(client, asked.set)
    client.person("one").record("event", True)
    assert asked.wait(10)
    child = os.fork()
    if not child:
        client.person("two").record("event", True)
        stored = client.flush(until="stored")
        client.flush(0.5)  # what the parent has under way is waited for, too
        os._exit(0 if stored else 1)
    reap([child])
    say(client.flush(10))


def fork_in_the_prefork_way(url: str, folder: str) -> None:
    """Record before the fork and in children that store and leave by os._exit (Celery)."""
    short_leases()
    client = consenting(url, folder, persons=True)
    client.person("one").record("event", True)
    children = []
    for name in ("two", "three", "four", "five"):
        child = os.fork()
        if not child:
            client.person(name).record("event", True)
            os._exit(0 if client.flush(until="stored") else 1)
        children.append(child)
    reap(children)
    say(client.flush(10))


def fork_storm(url: str, folder: str, rounds: str) -> None:
    """Fork four children again and again while two threads store without a pause."""
    short_leases()
    client = consenting(url, folder, persons=True)
    over = threading.Event()
    threads = [threading.Thread(target=_store_all_the_time, args=(client, over)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(int(rounds)):
        children = []
        for name in ("six", "seven", "eight", "nine"):
            child = os.fork()
            if not child:
                client.person(name).record("event", True)
                os._exit(0 if client.flush(until="stored") else 1)
            children.append(child)
        reap(children)
    over.set()
    for thread in threads:
        thread.join(30)
    say(client.flush(20))


def _store_all_the_time(client: Client, over: threading.Event) -> None:
    """Go on until it is over, and until the person's day is used up."""
    recorded = 0
    while not over.is_set() or recorded < PER_DAY:
        client.person("one").record("theme", "light", arm="A")
        client.person("one").record("event", True)
        client.flush(until="stored")
        recorded += 1


def fork_grandchild(url: str, folder: str) -> None:
    """A daemon's double fork: the grandchild works."""
    client = consenting(url, folder, persons=True)
    client.person("one").record("event", True)
    child = os.fork()
    if not child:
        client.person("two").record("event", True)
        grandchild = os.fork()
        if not grandchild:
            _record_in_child(client, "three")
        reap([grandchild])
        os._exit(0 if client.flush(10) else 1)
    reap([child])
    say(client.flush(10))


def in_processes(url: str, folder: str, method: str) -> None:
    """Record in the children of multiprocessing, which end without a word."""
    client = consenting(url, folder, persons=True)
    client.person("one").record("event", True)
    context: Any = multiprocessing.get_context(method)
    given = client if method == "fork" else None
    children = [
        context.Process(target=_in_process, args=(given, url, folder, name))
        for name in ("two", "three")
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(20)
        assert child.exitcode == 0, child.exitcode
    say(client.flush(10))


def _in_process(client: Client | None, url: str, folder: str, name: str) -> None:
    (client or client_of(url, folder, persons=True)).person(name).record("event", True)


def _record_in_child(client: Client, name: str) -> NoReturn:
    client.person(name).record("event", True)
    os._exit(0 if client.flush(10) else 1)


def reap(children: list[int], seconds: float = 20.0) -> None:
    """Wait for children; one that hangs is killed, and any that failed is an error."""
    ends = time.monotonic() + seconds
    for child in children:
        while not (done := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > ends:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.005)
        assert done[1] == 0, f"a child ended with {done[1]}"


@contextmanager
def every_lock_held(client: Client) -> Iterator[threading.Event]:
    """Hold, in a thread of its own, whatever in the client can be held."""
    worker = worker_of(client)
    places = (
        worker,
        worker._process,
        worker.state,
        worker.uploader,
        worker.uploader.in_flight,
        worker.recorder,
    )
    locks = [each for place in places for each in _inside(place) if hasattr(each, "acquire")]
    assert len(locks) >= 3
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        for lock in locks:
            lock.acquire()
        held.set()
        let_go.wait()
        for lock in locks:
            lock.release()

    threading.Thread(target=hold, daemon=True).start()
    assert held.wait(10)
    yield let_go
    let_go.set()


def _inside(place: object) -> list[Any]:
    fields = list(getattr(place, "__dict__", {}).values())
    return [*fields, *(each._cond for each in fields if hasattr(each, "_cond"))]


# -- deaths ----------------------------------------------------------------------------------------


def record_until_killed(url: str, folder: str, start: str) -> None:
    """Record an event, store it, say so; again and again."""
    client = consenting(url, folder, float(start))
    say("ready")
    for _ in range(PER_DAY):
        client.record("event", True)
        if client.flush(until="stored"):
            say("stored")
        time.sleep(0.01)
    time.sleep(60)


def die(url: str, folder: str, start: str, step: str) -> None:
    """Record an event, and be killed at one step of its way."""
    client = consenting(url, folder, float(start))
    _STEPS[step](client)
    client.record("event", True)
    if step == "queued":
        _kill()
    client.flush(until="stored")
    say("stored")
    client.flush(10)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_in_commit(client: Client) -> None:
    charged = sqlite._commit

    def commit(*given: Any) -> Any:
        charged(*given)
        _kill()

    inside: Any = sqlite
    inside._commit = commit


def _die_in_settling(client: Client) -> None:
    state: Any = worker_of(client).state
    state.settle = lambda *given: _kill()


_STEPS: dict[str, Callable[[Client], object]] = {
    "queued": lambda client: None,
    "commit": _die_in_commit,
    "stored": lambda client: before_sending(client, _kill),
    "sent": lambda client: after_sending(client, _kill),
    "settling": _die_in_settling,
}


def before_sending(client: Client, act: Callable[[], object]) -> None:
    """Do something when the uploader is about to send."""
    _around(client, act, lambda: None)


def after_sending(client: Client, act: Callable[[], object]) -> None:
    """Do something when the reply is here."""
    _around(client, lambda: None, act)


def _around(client: Client, before: Callable[[], object], after: Callable[[], object]) -> None:
    inner = worker_of(client).uploader.transport

    class Watched:
        def send(self, body: bytes, reports: int) -> Outcome:
            before()
            outcome = inner.send(body, reports)
            after()
            return outcome

        close_row = inner.close_row

    worker_of(client).uploader.transport = Watched()


# -- ends ------------------------------------------------------------------------------------------


def end(url: str, folder: str, start: str, how: str) -> None:
    """Record, and end the process in one of many ways."""
    client = consenting(url, folder, float(start))
    client.record("event", True)
    client.record("theme", "light", arm="A")
    client.record("minutes", 5)
    client.record("minutes", 7)
    if how == "in a request":
        asked = threading.Event()
        before_sending(client, asked.set)
        client.record("event", True)
        asked.wait(10)
        time.sleep(0.05)
    elif how == "with a daemon thread":
        _count_in_a_daemon(client)
    elif how == "closed":
        client.close(0.2)
    print("ended", time.time(), flush=True)
    if how == "by sys.exit":
        sys.exit(3)
    if how == "by an exception":
        raise RuntimeError(how)


def _count_in_a_daemon(client: Client) -> None:
    def count() -> None:
        while True:
            client.record("event", True)
            time.sleep(0.001)

    threading.Thread(target=count, daemon=True).start()
    time.sleep(0.05)


def deliver(url: str, folder: str, start: str) -> None:
    """Deliver what an earlier run stored."""
    client = client_of(url, folder, float(start))
    say(client.flush(10))


def deliver_unasked(url: str, folder: str, start: str) -> None:
    """Deliver what an earlier run stored by nothing but recording once more."""
    client = client_of(url, folder, float(start))
    client.record("event", True)
    time.sleep(1)


# -- a disk that is full, a folder that is not there -----------------------------------------------


def fill_the_disk(url: str, folder: str) -> None:
    """Record while files may not grow, and again when they may."""
    client = consenting(url, folder)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, most))
    for _ in range(20):
        client.record("event", True)
    client.record("theme", f"{MARKED} value", arm="A")
    say("stored" if client.flush(1, until="stored") else "not stored")
    say("delivered" if client.flush(1) else "not delivered")
    say("; ".join(client.explain("event").reasons))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    say("stored" if client.flush(until="stored") else "not stored")
    say("delivered" if client.flush(10) else "not delivered")


def end_on_a_full_disk(url: str, folder: str) -> None:
    """End while files may not grow."""
    client = consenting(url, folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    client.record("event", True)
    say("ended")


def record_without_rights(url: str, folder: str, strict: str) -> None:
    """Record where nothing may be written, as nobody."""
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    client = client_of(url, folder, strict=strict == "strict")
    client.consent(True)
    client.record("event", True)
    say(client.consented)
    say(dict(client.explain("event").losses))
    say("; ".join(client.explain("event").reasons))
    client.close()


# -- what is kept, logged, imported ----------------------------------------------------------------


class Nasty:
    """A value whose every method raises, with the value in the message."""

    def __repr__(self) -> str:
        raise RuntimeError(f"{MARKED} repr")

    def __str__(self) -> str:
        raise RuntimeError(f"{MARKED} str")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError(f"{MARKED} eq")

    def __hash__(self) -> int:
        raise RuntimeError(f"{MARKED} hash")

    def __gt__(self, other: object) -> bool:
        raise RuntimeError(f"{MARKED} gt")

    def __add__(self, other: object) -> object:
        raise RuntimeError(f"{MARKED} add")

    def __float__(self) -> float:
        raise RuntimeError(f"{MARKED} float")


VALUES = (f"{MARKED} dark", f"{MARKED} light", Nasty(), [MARKED], {MARKED: MARKED}, None, object())


def record_marked(url: str, folder: str, end: str) -> None:
    """Record marked values of marked persons in every way that can go wrong."""
    client = client_of(url, folder, persons=True)
    persons = [client.person(f"{MARKED} person {number}") for number in range(len(VALUES))]
    for person, value in zip(persons, VALUES, strict=True):
        person.record("theme", value, arm="A")  # not asked yet
        person.consent(True)
        for name in ("theme", "event", "minutes", "unheard_of"):
            person.record(name, value, arm="A")
            person.record(name, value, arm=f"{MARKED} arm")
            person.record(name, value)
            person.record(name, value, other=f"{MARKED} segment")
    client.flush(0.5)
    say(client.flush(until="stored"))
    persons[0].consent(False)
    persons[1].forget()
    client.flush(0.5)
    if end == "kill":
        _kill()
    client.close()


def what_is_imported(url: str, folder: str) -> None:
    """Say what the client brought along."""
    say(" ".join(sorted(sys.modules)))


def grow(url: str, folder: str, records: str) -> None:
    """Say by how many bytes the process grew at most over so many records."""
    client = consenting(url, folder)
    client.record("event", True)
    client.flush(until="stored")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(int(records)):
        client.record("event", True)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    say((after - before) * 1024)
    os._exit(0)


def record_in_a_signal_handler(url: str, folder: str) -> None:
    """Record in the main thread and, every now and then, in the middle of it."""
    client = consenting(url, folder)
    signal.signal(signal.SIGALRM, lambda *given: client.record("event", True))
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
    ends = time.monotonic() + 0.7
    while time.monotonic() < ends:
        client.record("event", True)
    signal.setitimer(signal.ITIMER_REAL, 0)
    say("recorded")
    os._exit(0)


def say(what: object) -> None:
    """Tell the test, at once."""
    print(what, flush=True)


APPS: dict[str, Callable[..., None]] = {
    each.__name__: each
    for each in (
        deliver,
        deliver_unasked,
        die,
        end,
        end_on_a_full_disk,
        fill_the_disk,
        fork_grandchild,
        fork_in_a_request,
        fork_in_the_prefork_way,
        fork_storm,
        fork_with_locks_held,
        grow,
        in_processes,
        record_in_a_signal_handler,
        record_marked,
        record_until_killed,
        record_without_rights,
        what_is_imported,
    )
}

if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG)
    APPS[sys.argv[1]](*sys.argv[2:])
