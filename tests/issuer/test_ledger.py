"""The ledger: no account exceeds its caps, whoever races, on every engine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Barrier
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilcount_aggregator.errors import OverCap
from veilcount_aggregator.store import Store, open_store
from veilcount_issuer.ledger import KIND, Caps, IssuanceLedger, SlotRequest
from veilcount_shared import Collection, load_collections

from ..aggregator.store.engines import Empty

SECRET = bytes(range(32))
REQUESTS = st.lists(st.tuples(st.integers(0, 4), st.binary(min_size=1, max_size=1)), max_size=6)


@given(st.integers(1, 3), st.integers(1, 4), st.lists(REQUESTS, max_size=8))
@settings(max_examples=300, deadline=None)
def test_caps_against_a_model(
    per_period: int, periods: int, history: list[list[tuple[int, bytes]]]
) -> None:
    """A request is granted exactly if afterwards no cap is exceeded; a refusal changes nothing."""
    caps, issued = Caps(per_period, periods), dict[int, list[bytes]]()
    granted = set[tuple[int, bytes]]()
    for wanted in history:
        would = granted | set(wanted)
        counts = [sum(period == each for each, _ in would) for period in range(5)]
        fits = max(counts) <= per_period and sum(map(bool, counts)) <= periods
        try:
            issued = caps.admit(issued, wanted)
        except OverCap:
            assert not fits
        else:
            assert fits
            granted = would
        assert {(period, mark) for period, marks in issued.items() for mark in marks} == granted


@pytest.fixture(scope="session")
def theme(definitions: Path) -> Collection:
    """Two of four periods, one token each."""
    return load_collections(definitions)["theme"]


@pytest.fixture
def url(empty: Empty) -> str:
    made = empty()
    open_store(made, make=True).close()
    return made


@pytest.fixture
def ledger(store: Store) -> IssuanceLedger:
    return IssuanceLedger(store, SECRET)


def granted(record: Callable[[], object]) -> bool:
    try:
        record()
    except OverCap:
        return False
    return True


def test_marks_go_with_their_period_and_the_count_of_periods_stays(
    ledger: IssuanceLedger, store: Store, theme: Collection
) -> None:
    def stored() -> int:
        return sum(map(len, store.records(KIND + theme.fingerprint).values()))

    ledger.record("alice", theme, [SlotRequest(0, b"x"), SlotRequest(1, b"y")], 0)
    before = stored()
    ledger.record("alice", theme, [SlotRequest(1, b"y")], 1)

    assert stored() < before
    for late in (b"x", b"another"):  # to a host whose clock is behind
        with pytest.raises(OverCap) as refused:
            ledger.record("alice", theme, [SlotRequest(0, late)], 0)
        assert refused.value.left == {0: 0}
    with pytest.raises(OverCap) as refused:
        ledger.record("alice", theme, [SlotRequest(2, b"z")], 2)
    assert refused.value.periods_left == 0
    assert stored() < before
    ledger.delete(theme.fingerprint)
    assert stored() == 0


def test_accounts_and_collections_share_nothing(
    ledger: IssuanceLedger, store: Store, theme: Collection, definitions: Path
) -> None:
    """The store's keys of one account in two collections, or under two secrets, are unrelated."""
    crash = load_collections(definitions)["crash"]
    for collection in (theme, crash):
        for account in ("alice", "bob"):
            ledger.record(account, collection, [SlotRequest(0, b"x")], 0)
    IssuanceLedger(store, bytes(32)).record("alice", theme, [SlotRequest(0, b"x")], 0)
    records = [store.records(KIND + each.fingerprint) for each in (theme, crash)]
    keys = [key for each in records for key in each]

    assert len(keys) == len(set(keys)) == 5
    assert len({content for each in records for content in each.values()}) == 3


def test_an_account_that_is_erased_meanwhile_is_counted_all_the_same(
    ledger: IssuanceLedger, store: Store, theme: Collection
) -> None:
    """Its record changes its name between the list of names and the look at the records."""
    ledger.record("an account", theme, [SlotRequest(3, b"blinded")], 0)
    listed = store.record_keys

    def record_keys(kind: str) -> list[str]:
        names = [*listed(kind)]
        with patch.object(store, "record_keys", listed):
            ledger.erase("an account", theme.fingerprint)
        return names

    with patch.object(store, "record_keys", record_keys):
        counted = ledger.accounts(theme.fingerprint)

    assert counted == {3: 1}


def test_threads_that_race_for_the_last_place(url: str, theme: Collection) -> None:
    """Of eight that ask for another token of the same period, one wins, each time."""
    barrier = Barrier(8)

    def race(number: int, attempt: int) -> bool:
        with closing(open_store(url)) as own:
            ledger, wanted = IssuanceLedger(own, SECRET), [SlotRequest(0, bytes([number]))]
            barrier.wait(30)
            return granted(lambda: ledger.record(f"account {attempt}", theme, wanted, 0))

    with ThreadPoolExecutor(8) as threads:
        for attempt in range(5):
            wins = list(threads.map(race, range(8), [attempt] * 8))
            assert wins.count(True) == 1


def _grab(url: str, definitions: Path, process: int, found: multiprocessing.Queue[int]) -> None:
    collection = load_collections(definitions)["theme"]
    with closing(open_store(url)) as own:
        ledger = IssuanceLedger(own, SECRET)
        for number in range(16):
            wanted = [SlotRequest(number % 4, bytes([process, number]))]
            account = f"account {number // 4}"
            found.put(granted(partial(ledger.record, account, collection, wanted, 0)))


def test_processes_that_race(url: str, definitions: Path) -> None:
    """Four accounts may have two tokens each, whatever two processes ask for at once."""
    context = multiprocessing.get_context("spawn")
    found: multiprocessing.Queue[int] = context.Queue()
    processes = [context.Process(target=_grab, args=(url, definitions, n, found)) for n in range(2)]
    for each in processes:
        each.start()
    wins = sum(found.get(timeout=60) for _ in range(2 * 16))
    for each in processes:
        each.join(30)

    assert wins == 4 * 2


KILLED = """
import sys
from pathlib import Path
from veilcount_issuer.ledger import IssuanceLedger, SlotRequest
from veilcount_aggregator.store import open_store
from veilcount_shared import load_collections

url, definitions, secret = sys.argv[1:]
collection = load_collections(Path(definitions))["theme"]
ledger = IssuanceLedger(open_store(url), bytes.fromhex(secret))
for number in range(1_000_000):
    ledger.record(str(number), collection, [SlotRequest(0, b"first")], 0)
    print(number, flush=True)  # as a signature leaves
"""


@pytest.mark.parametrize("seconds", [0.02, pytest.param(0.11, marks=pytest.mark.full)])
def test_a_killed_issuer_has_recorded_what_left_it(
    url: str, definitions: Path, theme: Collection, seconds: float
) -> None:
    """Everything that left is in the ledger; the one in between is free for its own message."""
    command = [sys.executable, "-c", KILLED, url, str(definitions), SECRET.hex()]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)
    assert process.stdout is not None
    assert process.stdout.readline() == "0\n"
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    left = [0, *map(int, process.stdout.read().split("\n")[:-1])]
    process.wait(30)
    process.stdout.close()

    with closing(open_store(url)) as store:
        ledger = IssuanceLedger(store, SECRET)
        for number in left:
            with pytest.raises(OverCap):
                ledger.record(str(number), theme, [SlotRequest(0, b"second")], 0)
        for number in (left[-1], left[-1] + 1):
            ledger.record(str(number), theme, [SlotRequest(0, b"first")], 0)
        assert len(store.records(KIND + theme.fingerprint)) == len(left) + 1


def test_a_ledger_without_compare_and_set_is_caught(
    url: str, theme: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: read, then write. Two that have both read are both granted."""
    with closing(open_store(url)) as store:
        original, barrier = store.change_record, Barrier(2)

        def blind_write(record: object, expected: bytes | None) -> bool:
            barrier.wait(30)
            found = store.records_at(record.kind, [record.key]).get(record.key)  # type: ignore[attr-defined]
            return original(record, found) or original(record, None) or True  # type: ignore[arg-type]

        monkeypatch.setattr(store, "change_record", blind_write)
        ledger = IssuanceLedger(store, SECRET)

        def ask(message: bytes) -> bool:
            return granted(lambda: ledger.record("alice", theme, [SlotRequest(0, message)], 0))

        with ThreadPoolExecutor(2) as threads:
            assert list(threads.map(ask, (b"1", b"2"))) == [True, True]
