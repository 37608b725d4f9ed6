"""Hashes are counted exactly once, whenever the process that sends them is killed."""

from __future__ import annotations

import time
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.connection import Connection
from random import Random

import pytest

from veilcount_aggregator.store import Cell, open_store
from veilcount_analysis.mechanisms import tally

from .conftest import OPERATED
from .series_fixtures import HASHES, histograms, report, send, series

FORK = get_context("fork")
HASHED, CELL = series("hashes"), Cell(0, 0)
GROUPS, SIZE = 80, 20  # of reports: more than are merged in one step
MESSAGES = [Random(4).choice(HASHES) for _ in range(GROUPS * SIZE)]


def send_all(url: str, first: int, pipe: Connection) -> None:
    """Send all groups, whatever was sent before; row `first` + n reports the n-th message."""
    with closing(open_store(url)) as store:
        for group in range(0, len(MESSAGES), SIZE):
            numbers = range(group, group + SIZE)
            send(store, HASHED, *(report(first + n, 0, message=MESSAGES[n]) for n in numbers))
            pipe.send(group)
    pipe.send("done")


def send_under_kills(url: str, *, new_rows: bool) -> None:
    """Kill senders in the middle of a commit, after more and more groups, until one is done."""
    chance = Random(7)
    for life in range(100):
        ours, theirs = FORK.Pipe(duplex=False)
        first = 10_000 * life * new_rows
        process = FORK.Process(target=send_all, args=(url, first, theirs))
        process.start()
        theirs.close()
        groups = 16 * (life + 1)
        while groups and ours.poll(60) and ours.recv() != "done":
            groups -= 1
        if not groups:
            time.sleep(chance.random() * 0.002)
            process.kill()
        process.join(60)
        if process.exitcode == 0:
            return
    raise AssertionError("no sender was done")


@pytest.mark.parametrize("empty", OPERATED, indirect=True)
def test_what_a_killed_process_has_sent_is_counted_once(url: str) -> None:
    """Each next one sends all again. Rows that are new each time, planted, count twice."""
    expected = tally(HASHED.collection, MESSAGES).tolist()
    with closing(open_store(url, make=True)) as store:
        send_under_kills(url, new_rows=False)

        assert store.counters(HASHED, [CELL]).tolist() == expected
        assert store.report_counts(HASHED) == {CELL: len(MESSAGES)}
        assert histograms(store, HASHED) == {0: [len(MESSAGES)]}

        send_under_kills(url, new_rows=True)
        assert store.counters(HASHED, [CELL]).tolist() != expected
