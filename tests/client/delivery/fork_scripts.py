"""Apps that fork, in every way that apps do."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from veilcount_client import Client
from veilcount_client.delivery import uploader

from .app_client import PER_DAY, consenting, emit, worker_of


def fork_with_locks_held(url: str, folder: str) -> None:
    """Fork while another thread holds every lock there is, and a record is queued."""
    client = consenting(url, folder, persons=True)
    with every_lock_held(client) as release:
        client.person("one").record("event", True)
        threading.Timer(0.3, release.set).start()
        reap([fork(client, "two", deliver=True)])
    emit(client.flush(60))


def fork_storm(url: str, folder: str, rounds: str) -> None:
    """Fork four children again and again while two threads store without a pause."""
    # What a process was sending when it left by os._exit comes again in seconds.
    vars(uploader).update(LEASE=3.0, MAX_SECONDS=1.0)
    client = consenting(url, folder, persons=True)
    over = threading.Event()
    threads = [threading.Thread(target=_store_until, args=(client, over)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(int(rounds)):
        reap([fork(client, name) for name in ("six", "seven", "eight", "nine")])
    over.set()
    for thread in threads:
        thread.join(60)
    emit(client.flush(60))


def _store_until(client: Client, over: threading.Event) -> None:
    """Store until it is over, and until the person's day is used up."""
    recorded = 0
    while not over.is_set() or recorded < PER_DAY:
        client.person("one").record("theme", "light", arm="A")
        client.person("one").record("event", True)
        client.flush(until="stored")
        recorded += 1


def fork_by_multiprocessing(url: str, folder: str) -> None:
    """Record in the children of multiprocessing, which end without a word."""
    client = consenting(url, folder, persons=True)
    client.person("one").record("event", True)
    forks = multiprocessing.get_context("fork")
    children = [
        forks.Process(target=client.person(name).record, args=("event", True))
        for name in ("two", "three")
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0, child.exitcode
    emit(client.flush(60))


_in_pool: list[Client] = []  # as the children of a pool inherit it


def _record_in_pool(name: str) -> None:
    _in_pool[0].person(name).record("event", True)


def _store_in_pool(name: str) -> None:
    _record_in_pool(name)
    assert _in_pool[0].flush(until="stored")


def pool_that_is_terminated(url: str, folder: str) -> None:
    """Store in each task: leaving the block kills the workers, in the midst of anything."""
    _in_pool.append(consenting(url, folder, persons=True))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(_store_in_pool, ("one", "two", "three"))
    emit(_in_pool[0].flush(60))


def pool_that_is_joined(url: str, folder: str) -> None:
    """Record and nothing else: workers that end by themselves store what they have."""
    _in_pool.append(consenting(url, folder, persons=True))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(_record_in_pool, ("one", "two", "three"))
        pool.close()
        pool.join()
    emit(_in_pool[0].flush(60))


def fork(client: Client, name: str, *, deliver: bool = False) -> int:
    """Record for a person in a child that leaves by os._exit once all is stored, or delivered."""
    child = os.fork()
    if not child:
        client.person(name).record("event", True)
        flushed = client.flush(60) if deliver else client.flush(until="stored")
        os._exit(0 if flushed else 1)
    return child


def reap(children: list[int]) -> None:
    for child in children:
        assert os.waitpid(child, 0)[1] == 0


@contextmanager
def every_lock_held(client: Client) -> Iterator[threading.Event]:
    """Hold, in a thread of its own, whatever in the client can be held."""
    worker = worker_of(client)
    owners = [worker, worker._process, worker.state, worker.recorder]
    owners += [worker.uploader, worker.uploader.in_flight, worker.uploader.outboxes.memory]
    fields = [each for owner in owners for each in _fields(owner) if not isinstance(each, type)]
    locks = [each for each in fields if hasattr(each, "acquire")]
    assert len(locks) >= 3
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        for lock in locks:
            lock.acquire()
        held.set()
        release.wait()
        for lock in locks:
            lock.release()

    threading.Thread(target=hold, daemon=True).start()
    assert held.wait(60)
    yield release
    release.set()


def _fields(owner: object) -> list[Any]:
    fields = list(getattr(owner, "__dict__", {}).values())
    return [*fields, *(each._cond for each in fields if hasattr(each, "_cond"))]
