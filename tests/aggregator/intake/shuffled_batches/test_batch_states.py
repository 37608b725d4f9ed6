"""What an operator and an analyst read of batches: what is there, what is missing, and why."""

from __future__ import annotations

from datetime import timedelta

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.shuffled_batches.batch_states import batch_states
from veilcount_serving.findings import Severity
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState

from ...operate.doctor.doctor_fixtures import examine_deployment
from ...web.dashboard.page_fixtures import Visitor
from .batch_fixtures import TestShuffler


def texts(shuffler: TestShuffler) -> list[str]:
    aggregator, now = shuffler.deployed.aggregator, shuffler.deployed.clocks.now
    states = batch_states(aggregator.store, aggregator.store, shuffler.series(), now)
    return [f"{state.period} {state.text}" for state in states]


def figure(shuffler: TestShuffler, line: str) -> bool:
    key = shuffler.deployed.key(Role.ANALYST)
    shuffler.deployed.aggregator.flush()
    lines = shuffler.deployed.ask("GET", "/metrics", key=key).body.decode().splitlines()
    return line in lines


def test_a_batch_is_awaited_then_incomplete_then_handed_over(shuffler: TestShuffler) -> None:
    first, last = shuffler.batch([shuffler.seal(1) for _ in range(4)] + [bytes(247)])
    assert texts(shuffler) == ["0 nothing has come since its grace ended on 2026-12-05"]

    shuffler.send(last)
    assert texts(shuffler) == ["0 part 1 of 2 is missing since 2026-12-05"]
    missing = 'veilcount_batch_parts_missing{collection="alone"}'
    assert figure(shuffler, f"{missing} 1")

    shuffler.send(last)  # again: counted once
    shuffler.send(first)
    assert texts(shuffler) == ["0 handed over: 4 reports, 1 unreadable"]
    assert figure(shuffler, f"{missing} 0")
    assert figure(shuffler, "veilcount_batch_unreadable_total{} 1")


def test_the_record_of_a_shuffler_says_why_nothing_came(shuffler: TestShuffler) -> None:
    sentences = {
        BatchState.BELOW_LEAST: "not handed over: fewer than 2",
        BatchState.EXPIRED: "expired: this aggregator did not take it for 30 days",
        BatchState.LOST: "lost: its shuffler was restored from an older store",
    }
    for period, state in enumerate(sentences):
        shuffler.deployed.clocks.now += timedelta(days=1)
        record = BatchRecord(state, shuffler.crowd_id(period=period), period)
        shuffler.send_record(shuffler.sign(record))

    expected = [f"{period} {text}" for period, text in enumerate(sentences.values())]
    assert texts(shuffler)[:3] == expected
    key = shuffler.deployed.key(Role.ANALYST)
    (series,) = shuffler.deployed.ask("GET", "/v1/collections/alone", key=key).json["series"]
    assert [batch["text"] for batch in series["batches"]][:3] == list(sentences.values())
    assert series["batches"][0]["state"] == "below-least"
    visitor = Visitor(shuffler.deployed)
    visitor.log_in(key)
    assert all(text in visitor.get("/collections/alone").html for text in sentences.values())


def test_doctor_names_what_is_missing_and_whom_to_ask(shuffler: TestShuffler) -> None:
    parts = shuffler.batch([shuffler.seal(1) for _ in range(5)])
    shuffler.send(parts[0])
    assert examine_deployment(shuffler.deployed)["batches"].state is Severity.WARN
    assert "part 2 of 2 is missing" in examine_deployment(shuffler.deployed)["batches"].what

    shuffler.send(parts[1])
    assert examine_deployment(shuffler.deployed)["batches"].state is Severity.OK
    shuffler.send(shuffler.batch([shuffler.seal(1)] * 2, batch_id=bytes(16))[0])
    shuffler.deployed.aggregator.flush()
    assert examine_deployment(shuffler.deployed)["batches"].state is Severity.WRONG
    assert figure(shuffler, 'veilcount_batches_refused_total{reason="second-batch"} 1')
