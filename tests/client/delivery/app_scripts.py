"""Apps that record, end and are killed, by `python -m tests.client.delivery.app_scripts`.

Each prints what a test needs to know, and logs everything to standard error. The process starts
them as its forks: what they all import is imported once.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from veilcount_client import Client
from veilcount_client.delivery import deadline, transport
from veilcount_client.state import sqlite, sqlite_commit

from ...processes import limit_files, limited_files
from . import fork_scripts
from .app_client import MARKED, PER_DAY, around_sending, client_of, consenting, emit, worker_of

PRELOADED = (deadline,)  # what each client imports, and few scripts need
FULL = 4096  # bytes: no file of a device has so few
ENDLESS = 600.0  # seconds: an app that waits for so long is killed, and its test fails


def wait_without_end() -> None:
    vars(transport).update(TIMEOUT=(ENDLESS, ENDLESS), MAX_SECONDS=ENDLESS)


# -- deaths ----------------------------------------------------------------------------------------


def record_until_killed(url: str, folder: str, start: str) -> None:
    client = consenting(url, folder, float(start))
    emit("ready")
    for _ in range(PER_DAY):
        client.record("event", True)
        if client.flush(until="stored"):
            emit("stored")
        time.sleep(0.01)
    time.sleep(60)


def die(url: str, folder: str, start: str, step: str) -> None:
    """Record an event, and be killed at one step of its way."""
    client = consenting(url, folder, float(start))
    STEPS[step](client)
    client.record("event", True)
    if step == "queued":
        kill()
    client.flush(until="stored")
    emit("stored")
    client.flush(60)


def kill(*_: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def _die_in_commit(_: Client) -> None:
    commit = sqlite_commit.commit_draw

    def commit_and_die(*arguments: Any) -> Any:
        commit(*arguments)
        kill()

    vars(sqlite)["commit_draw"] = commit_and_die


def _die_in_settling(client: Client) -> None:
    state: Any = worker_of(client).state
    state.settle = kill


STEPS: dict[str, Callable[[Client], object]] = {
    "queued": lambda client: None,
    "commit": _die_in_commit,
    "stored": partial(around_sending, before=kill),
    "sent": partial(around_sending, after=kill),
    "settling": _die_in_settling,
}


# -- ends ------------------------------------------------------------------------------------------


def end(url: str, folder: str, start: str, how: str) -> None:
    """Record, and end the process in one of many ways."""
    wait_without_end()
    client = consenting(url, folder, float(start))
    client.record("event", True)
    client.record("theme", "light", arm="A")
    client.record("minutes", 5)
    client.record("minutes", 7)
    match how:
        case "in a request":
            sending = threading.Event()
            around_sending(client, before=sending.set)
            client.record("event", True)
            sending.wait(60)
            time.sleep(0.05)
        case "with a daemon thread":
            threading.Thread(target=_record_without_end, args=(client,), daemon=True).start()
            time.sleep(0.05)
        case "closed":
            client.close(0.2)
        case "by sys.exit":
            sys.exit(3)
        case "by an exception":
            raise RuntimeError(how)


def _record_without_end(client: Client) -> None:
    while True:
        client.record("event", True)
        time.sleep(0.001)


def deliver(url: str, folder: str, start: str, persons: str = "") -> None:
    emit(client_of(url, folder, float(start), persons=bool(persons)).flush(60))


# -- a disk that is full, a folder that is not there -----------------------------------------------


def fill_the_disk(url: str, folder: str) -> None:
    """Record while files may not grow, and again when they may."""
    client = consenting(url, folder)
    with limited_files(FULL):
        for _ in range(20):
            client.record("event", True)
        client.record("theme", f"{MARKED} value", arm="A")
        emit(client.flush(1, until="stored"))
        emit(client.flush(1))
        emit("; ".join(client.explain("event").reasons))
    emit(client.flush(until="stored"))
    emit(client.flush(60))


def end_on_a_full_disk(url: str, folder: str) -> None:
    client = consenting(url, folder)
    limit_files(FULL)
    client.record("event", True)
    emit("ended")


# -- what is kept and logged -----------------------------------------------------------------------


class Nasty:
    """A value whose every method raises, with the value in the message."""

    def _fail(self, *_: object) -> NoReturn:
        raise RuntimeError(MARKED)

    __repr__ = __str__ = __eq__ = __hash__ = __gt__ = __add__ = __float__ = _fail


VALUES = (f"{MARKED} dark", f"{MARKED} light", Nasty(), [MARKED], {MARKED: MARKED}, None, object())


def record_marked(url: str, folder: str, how: str) -> None:
    """Record marked values of marked persons in every way that can go wrong."""
    client = client_of(url, folder, persons=True)
    persons = [client.person(f"{MARKED} person {number}") for number in range(len(VALUES))]
    for person, value in zip(persons, VALUES, strict=True):
        person.record("theme", value, arm="A")  # before any consent
        person.consent(True)
        for name in ("theme", "event", "minutes", "unheard_of"):
            person.record(name, value, arm="A")
            person.record(name, value, arm=f"{MARKED} arm")
            person.record(name, value)
            person.record(name, value, other=f"{MARKED} segment")
    client.flush(0.5)
    emit(client.flush(until="stored"))
    persons[0].consent(False)
    persons[1].forget()
    client.flush(0.5)
    if how == "kill":
        kill()
    client.close()


def grow(url: str, folder: str, records: str) -> None:
    """Print by how many bytes the process grew at most over so many records."""
    client = consenting(url, folder)
    client.record("event", True)
    client.flush(until="stored")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(int(records)):
        client.record("event", True)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    emit((after - before) * 1024)
    os._exit(0)


def record_in_a_signal_handler(url: str, folder: str, interrupted: str) -> None:
    """Record in the main thread and, so often, in the middle of it."""
    client = consenting(url, folder)
    left = int(interrupted)

    def interrupt(*_: object) -> None:
        nonlocal left
        left -= 1
        client.record("event", True)

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
    while left > 0:
        client.record("event", True)
    signal.setitimer(signal.ITIMER_REAL, 0)
    emit("recorded")
    os._exit(0)


# -- the process that starts them ------------------------------------------------------------------


def main() -> None:
    """Run an app a line in a fork, and print its process id and its exit code."""
    for line in sys.stdin:
        output, log, name, *arguments = json.loads(line)
        child = os.fork()
        if not child:
            os.setsid()  # so that its children end with it
            for path, descriptor in ((os.devnull, 0), (output, 1), (log, 2)):
                os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), descriptor)
            logging.basicConfig(level=logging.DEBUG)
            (globals().get(name) or getattr(fork_scripts, name))(*arguments)
            return
        emit(child)
        emit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
