"""Batches of shufflers over HTTP: counted once, whole, and refused by name."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.shuffled_batches.batch_entry import BatchEntry
from veilcount_aggregator.records.shuffled_batches.batch_states import covers_of_periods
from veilcount_aggregator.records.shuffler_keys import load_shuffler_keys, trust_shuffler
from veilcount_aggregator.store import Cell
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState
from veilcount_shared.shuffling.part import BatchPart
from veilcount_shared.shuffling.sealed_report import seal_report
from veilcount_shared.verdict import Verdict

from .batch_fixtures import TestShuffler

MESSAGES = (0, 1, 1, 0, 1, 1, 1, 0, 1, 1)  # three parts


def sealed(shuffler: TestShuffler) -> list[bytes]:
    return [shuffler.seal(message) for message in MESSAGES]


def whole(shuffler: TestShuffler) -> list[BatchPart]:
    return shuffler.batch(sealed(shuffler))


def test_a_batch_counts_when_its_last_part_is_in(shuffler: TestShuffler) -> None:
    missing = [[0, 1], [0], []]
    for part, left in zip(reversed(whole(shuffler)), missing, strict=True):
        assert shuffler.counters() == [0, 0]
        reply = shuffler.send(part)
        assert reply.status == 200, reply.body
        assert reply.json == {
            "part": part.number,
            "parts": 3,
            "accepted": part.count,
            "unreadable": 0,
            "missing": left,
        }

    assert shuffler.counters() == [3, 7]
    store, series = shuffler.deployed.aggregator.store, shuffler.series()
    assert store.report_counts(series) == {Cell(0, 0): 10}
    assert store.new_pseudonyms(series) == {}


@pytest.mark.parametrize("order", sorted(set(permutations([0, 0, 1, 1, 2]))))
def test_parts_count_once_in_any_order_and_number(
    shuffler: TestShuffler, order: tuple[int, ...]
) -> None:
    parts = whole(shuffler)
    replies: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
    for number in order:
        reply = shuffler.send(parts[number])
        replies[number].add(reply.json["accepted"])

    assert replies == {0: {4}, 1: {4}, 2: {2}}
    assert shuffler.counters() == [3, 7]
    assert shuffler.deployed.counted("alone") == 10


def test_a_second_batch_is_refused_and_counted(shuffler: TestShuffler) -> None:
    for part in whole(shuffler):
        shuffler.send(part)
    reply = shuffler.send(shuffler.batch(sealed(shuffler), batch_id=bytes(16))[0])

    assert (reply.status, reply.problem) == (409, "second-batch")
    assert shuffler.counters() == [3, 7]
    shuffler.deployed.aggregator.flush()
    counts = shuffler.deployed.aggregator.store.service_counts()
    assert [times for name, times in counts.items() if name.word == "second-batch"] == [1]


HEADS: dict[str, dict[str, Any]] = {
    "crowd": {"crowd_id": bytes(16)},
    "covers": {"covers": 1, "reports": 9},
    "digest": {"digest": bytes(32)},
    "size": {"size": 494},
}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_that_is_not_of_its_definition_is_refused_by_name(
    shuffler: TestShuffler, name: str
) -> None:
    replies = [shuffler.send(part) for part in shuffler.batch(sealed(shuffler), **HEADS[name])[:3]]

    assert (replies[-1].status, replies[-1].problem) == (400, "bad-field")
    assert (replies[-1].json["place"] == name) or name == "size"
    assert shuffler.counters() == [0, 0]


def test_fewer_than_least_are_refused(shuffler: TestShuffler) -> None:
    (part,) = shuffler.batch(sealed(shuffler)[:1])

    assert shuffler.send(part).json["place"] == "reports"


def test_another_content_under_the_number_of_a_part_is_refused(shuffler: TestShuffler) -> None:
    parts = whole(shuffler)
    shuffler.send(parts[0])
    other = shuffler.sign(replace(parts[0], sealed=parts[0].sealed[::-1]))

    assert shuffler.send(other).json["place"] == "part"
    later = shuffler.batch(sealed(shuffler), digest=bytes(32))[1]
    assert shuffler.send(later).problem == "second-batch", "of the same id, by a restored store"
    assert [shuffler.send(part).status for part in parts[1:]] == [200, 200]


def test_the_trusted_shuffler_has_to_sign_each_part(shuffler: TestShuffler) -> None:
    part = whole(shuffler)[0]
    other = replace(part, signature=Ed25519PrivateKey.generate().sign(part.signed()))

    assert shuffler.send(other).json["place"] == "signature"
    moved = replace(part, number=1)
    assert shuffler.send(moved).json["place"] == "signature"
    assert shuffler.send(part).status == 200


@pytest.mark.parametrize("role", [Role.DEVICE, Role.ANALYST, Role.ADMIN])
def test_keys_of_other_roles_hand_nothing_over(shuffler: TestShuffler, role: Role) -> None:
    reply = shuffler.send(whole(shuffler)[0], key=shuffler.deployed.key(role))

    assert (reply.status, reply.problem) == (403, "wrong-role")


def test_another_shuffler_is_trusted_from_a_period_that_has_not_begun(
    shuffler: TestShuffler,
) -> None:
    store, clocks = shuffler.deployed.aggregator.store, shuffler.deployed.clocks
    before = shuffler.signer
    shuffler.signer = Ed25519PrivateKey.generate()
    key = trust_shuffler(store, shuffler.key_file, "alone", clocks.now)

    keys = load_shuffler_keys(store)
    assert key.start == "2026-12-06"
    old, new = (signer.public_key().public_bytes_raw() for signer in (before, shuffler.signer))
    days = [clocks.now.date() + timedelta(days=days) for days in (0, 1)]
    assert [keys.trusted("alone", day) for day in days] == [old, new]
    assert [keys.trusted("theme", day) for day in days] == [old, old]
    assert shuffler.send(whole(shuffler)[0]).json["place"] == "signature"


def test_a_batch_is_taken_from_the_end_of_its_grace_for_35_days(shuffler: TestShuffler) -> None:
    part, clocks = whole(shuffler)[0], shuffler.deployed.clocks
    end = clocks.now.replace(hour=0)
    clocks.now = end - timedelta(seconds=1)
    assert shuffler.send(part).problem == "batch-early"
    clocks.now = end + timedelta(days=35)
    assert shuffler.send(part).problem == "batch-late"
    clocks.now -= timedelta(seconds=1)
    assert shuffler.send(part).status == 200


def test_an_unfinished_batch_is_dropped_after_40_days_and_recorded(
    shuffler: TestShuffler,
) -> None:
    aggregator, clocks = shuffler.deployed.aggregator, shuffler.deployed.clocks
    shuffler.send(whole(shuffler)[0])
    end = clocks.now.replace(hour=0)
    clocks.now = end + timedelta(days=40) - timedelta(seconds=1)
    aggregator._close_batches([shuffler.series()])
    (raw,) = shuffler.entries().values()
    assert not BatchEntry.decode(raw).closed
    assert BatchEntry.decode(raw).counters

    clocks.now = end + timedelta(days=40)
    aggregator._close_batches([shuffler.series()])
    (raw,) = shuffler.entries().values()
    entry = BatchEntry.decode(raw)
    assert (entry.closed, entry.is_complete, entry.counters) == (True, False, b"")
    aggregator.flush()
    counts = aggregator.store.service_counts()
    assert [times for name, times in counts.items() if name.word == "unfinished"] == [1]


def test_what_cannot_be_read_spoils_nothing_else(shuffler: TestShuffler) -> None:
    plain = bytes([1]) + shuffler.series().collection.pack(1)
    sealed = shuffler.seal(1)
    unreadable = [
        bytes(247),
        sealed[:-1] + bytes([sealed[-1] ^ 1]),
        shuffler.seal(1, "theme"),
        shuffler.seal(1, period=1),
        shuffler.seal(1, mark=b"\1" * 16),
        shuffler.seal_plain(plain.ljust(100, b"\0") + b"\1" + bytes(91)),
        shuffler.seal_plain(b"\2" + plain[1:].ljust(191, b"\0")),
        shuffler.seal_plain(b"\1\xff".ljust(192, b"\0")),
        shuffler.seal_plain(plain.ljust(192, b"\0"))[:39] + bytes(208),
    ]
    chacha = replace(shuffler.gateway.config, aeads=(3,))
    other_suite = seal_report(chacha, shuffler.crowd_id(), 0, plain.ljust(192, b"\0"))
    replies = [
        shuffler.send(part) for part in shuffler.batch([*unreadable, other_suite, shuffler.seal(0)])
    ]

    assert [reply.json["unreadable"] for reply in replies] == [4, 4, 1]
    assert shuffler.counters() == [1, 1]
    (raw,) = shuffler.entries().values()
    assert BatchEntry.decode(raw).n == 2


def test_covers_are_stated_with_the_tally_they_are_in(shuffler: TestShuffler) -> None:
    store, series = shuffler.deployed.aggregator.store, shuffler.series("theme")
    reports = [shuffler.seal(number % 4, "theme") for number in range(142 + 100)]
    *parts, last = shuffler.batch(reports, "theme")
    for part in parts:
        assert shuffler.send(part).status == 200
    assert covers_of_periods(store, series, range(31)) == 0

    shuffler.send(last)
    assert covers_of_periods(store, series, range(31)) == 142
    assert covers_of_periods(store, series, range(1, 31)) == 0
    assert sum(shuffler.counters("theme")) == 242
    assert store.report_counts(series) == {Cell(0, 0): 100}


def test_a_report_that_travels_alone_is_not_counted_as_well(shuffler: TestShuffler) -> None:
    deployed = shuffler.deployed

    assert deployed.verdicts(deployed.report("alone")) == [Verdict.MALFORMED]
    assert deployed.counted("alone") == 0


def test_records_are_kept_as_they_were_signed(shuffler: TestShuffler) -> None:
    record = BatchRecord(BatchState.HANDED_OVER, shuffler.crowd_id(), 0, 10, 0, bytes([1]) * 32)
    signed = shuffler.sign(record)

    assert shuffler.send_record(record).json["place"] == "signature"
    assert shuffler.send_record(signed).json == {"state": "handed_over"}
    assert shuffler.send_record(signed).status == 200
    other = shuffler.sign(replace(record, reports=11))
    assert shuffler.send_record(other).problem == "record-differs"
    lost = shuffler.sign(BatchRecord(BatchState.LOST, shuffler.crowd_id(), 0))
    assert shuffler.send_record(lost).json == {"state": "lost"}


# -- two workers at once, and planted faults -------------------------------------------------------


def test_of_two_workers_with_the_same_part_one_adds_it(
    shuffler: TestShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second worker takes each part between the first one's read and its commit."""
    parts = whole(shuffler)
    nested: list[int] = []
    change_batch = type(shuffler.deployed.aggregator.store).change_batch

    def interleaved(store: Any, series: Any, change: Any) -> bool:
        if not nested:
            nested.append(1)
            assert shuffler.send(parts[number]).status == 200
        return bool(change_batch(store, series, change))

    monkeypatch.setattr(type(shuffler.deployed.aggregator.store), "change_batch", interleaved)
    for number in range(3):
        nested.clear()
        assert shuffler.send(parts[number]).json["accepted"] == parts[number].count

    assert shuffler.counters() == [3, 7]


def test_planted_a_part_that_is_not_looked_for_counts_twice(
    shuffler: TestShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchEntry, "totals_of", lambda *_: None)
    parts = whole(shuffler)
    for part in (parts[0], parts[0], parts[1], parts[2]):
        shuffler.send(part)

    assert shuffler.counters() != [3, 7]


def test_planted_counters_that_are_added_before_the_last_part_are_seen(
    shuffler: TestShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchEntry, "is_complete", True)
    monkeypatch.setattr(BatchEntry, "require_digest", lambda _: None)
    shuffler.send(whole(shuffler)[0])

    assert shuffler.counters() != [0, 0]


def test_planted_a_second_batch_that_is_taken_adds_to_the_first(
    shuffler: TestShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in whole(shuffler):
        shuffler.send(part)
    (second,) = shuffler.batch(sealed(shuffler)[:4], batch_id=bytes(16))
    begun = BatchEntry.begin(second.head, "2026-12-05")
    monkeypatch.setattr(BatchEntry, "decode", lambda _: begun)
    shuffler.send(second)

    assert np.sum(shuffler.counters()) == 14
