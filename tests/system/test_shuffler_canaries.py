"""Canaries from their plan to their result, through a real shuffler's store and a real aggregator.

Planted: shufflers that keep the order in which reports came, or drop some.
"""

from __future__ import annotations

import json
import random
import socket
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from veilcount_aggregator.operate.shuffler_canaries.canary_file import CanaryFile, merge
from veilcount_aggregator.operate.shuffler_canaries.canary_planning import draw_plan, gateway_keys
from veilcount_aggregator.operate.shuffler_canaries.canary_sender import (
    NO_ANSWER,
    CanarySender,
    Share,
    post_envelope,
)
from veilcount_aggregator.records.gateway_keys import create_gateway_key, load_gateway_keys
from veilcount_aggregator.records.shuffled_batches.batch_states import PeriodBatch, batch_states
from veilcount_aggregator.records.shuffled_batches.record_store import keep_record
from veilcount_aggregator.records.shuffler_canary_plans import KIND
from veilcount_aggregator.store import Cell
from veilcount_analysis.series.series import Series
from veilcount_client.delivery.transport import HttpTransport
from veilcount_client.testing import SeededRandomSource
from veilcount_serving.errors import SettingsError
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState
from veilcount_shared.shuffling.crowd import Crowd, sealed_size
from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE
from veilcount_shared.shuffling.plain_report import PLAIN_BYTES
from veilcount_shuffler import shuffling_pass
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.held_file import read_records

from ..aggregator.operate.cli.conftest import typed
from .shuffler_canary_parties import AFTER_GRACE, MESSAGES, START, Parties, all_parties, counted

__all__ = ["all_parties", "typed"]  # fixtures


def test_a_right_shuffler_and_canaries_that_are_subtracted_exactly(all_parties: Parties) -> None:
    file = all_parties.plan()
    (plan,) = all_parties.deployed.aggregator.store.records(KIND).values()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(plan)["key"] not in file.read_text()
    all_parties.devices_send()
    sent = all_parties.sender(file).run()
    all_parties.hand_over(SeededRandomSource(36))

    assert sum(canary.held is not None for canary in sent.batches[0].canaries) == 30
    store, series = all_parties.deployed.aggregator.store, all_parties.deployed.series("theme")
    drawn, randomizer = SeededRandomSource(36), series.collection.randomizer
    expected = Counter([*MESSAGES, *(randomizer.cover(drawn) for _ in range(142))])
    assert counted(all_parties.deployed) == [expected[message] for message in range(4)]
    assert store.report_counts(series) == {Cell(0, 0): len(MESSAGES)}
    code, shown = all_parties.result(file)
    assert code == 0
    assert "order: not kept, as far as canaries see." in shown
    assert "none of 30 canaries is missing: at most 9.6% are dropped" in shown
    assert "An order that is kept of a tenth of the reports is not seen." in shown
    assert "A shuffler that knows the canaries" in shown


def test_the_batch_says_how_many_of_it_are_canaries(all_parties: Parties) -> None:
    file = all_parties.plan("--canaries", "7")
    all_parties.devices_send()
    all_parties.sender(file).run()
    all_parties.hand_over()

    texts = [batch.text for batch in states(all_parties)]
    assert texts[0] == "handed over: 1,027 reports, of which 7 are canaries of the operator"


def states(created: Parties) -> Sequence[PeriodBatch]:
    store, series = created.deployed.aggregator.store, created.deployed.series("theme")
    return batch_states(store, store, series, AFTER_GRACE)


def keep_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the batch has the order in which reports came."""

    def distribute(
        files: Sequence[Path], buckets: Sequence[Path], size: int, _: bytes, disk: Disk
    ) -> None:
        records = [sealed for file in files for sealed in read_records(file, size)]
        lines = [
            number.to_bytes(shuffling_pass.MAC_BYTES, "big") + sealed
            for number, sealed in enumerate(dict.fromkeys(records))
        ]
        for path in buckets:
            path.write_bytes(b"")
        buckets[0].write_bytes(b"".join(lines))

    monkeypatch.setattr(shuffling_pass, "_distribute", distribute)


def drop_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a tenth of what was acknowledged is dropped, at random."""
    source = random.Random(36)

    def some(file: Path, size: int) -> Iterator[bytes]:
        yield from (sealed for sealed in read_records(file, size) if source.random() >= 0.1)

    monkeypatch.setattr(shuffling_pass, "read_records", some)


@pytest.mark.parametrize(
    ("plant", "words"),
    [(keep_order, "order: KEPT. 0 of 435 pairs"), (drop_tenth, "reports: DROPPED.")],
)
def test_a_shuffler_that_does_not_keep_its_word_is_seen(
    all_parties: Parties,
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
    words: str,
) -> None:
    plant(monkeypatch)
    file = all_parties.plan()
    all_parties.devices_send(MESSAGES * 2)
    all_parties.sender(file).run()
    all_parties.hand_over()
    code, shown = all_parties.result(file)

    assert (code, words in shown) == (1, True), shown


@contextmanager
def recorder(requests: list[bytes], status: int) -> Iterator[str]:
    """Listen as a shuffler or a proxy, and keep each request as it came."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    request = b""
                    while not request.endswith(b"VE envelope"):
                        request += connection.recv(1 << 16)
                    requests.append(request)
                    reply = f"HTTP/1.1 {status} Any\r\nContent-Length: 2\r\n\r\n{{}}"
                    connection.sendall(reply.encode())

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


def test_a_canary_is_posted_byte_for_byte_as_a_device_posts() -> None:
    requests: list[bytes] = []
    with recorder(requests, 202) as url:
        assert post_envelope(url, b"VE envelope", "") == 202
        device = HttpTransport(url, None, lambda: 0.0)
        device.request("POST", "/v1/envelopes", b"VE envelope", ENVELOPE_TYPE)

    canary, report = requests
    assert canary == report
    assert canary.startswith(b"POST /v1/envelopes HTTP/1.1\r\n")


def test_a_canary_goes_through_a_proxy_and_no_answer_is_none() -> None:
    requests: list[bytes] = []
    with recorder(requests, 410) as proxy:
        shuffler = "http://shuffler.example.net/acme/"
        assert [post_envelope(shuffler, b"VE envelope", proxy) for _ in range(2)] == [410, 410]

    assert requests[0].startswith(b"POST http://shuffler.example.net/acme/v1/envelopes HTTP/1.1\r")
    assert post_envelope("http://127.0.0.1:1", b"VE envelope", "") == NO_ANSWER


class Interrupted(Exception):
    """Ctrl-C."""


def test_sending_is_resumed_with_the_same_bytes(all_parties: Parties) -> None:
    """Ended before an answer is written, every time: one ciphertext, one canary each."""
    file = all_parties.plan("--canaries", "12")
    planned = {canary.envelope for _, canary in CanaryFile.load(file).pending()}
    all_parties.devices_send()

    def lost(shuffler: str, envelope: bytes, proxy: str) -> int:
        all_parties.post(shuffler, envelope, proxy)
        raise Interrupted

    for post in (lost, lost, all_parties.post):
        try:
            all_parties.sender(file, post=post).run()
        except Interrupted:
            continue
    all_parties.hand_over()

    assert {envelope.hex() for envelope in all_parties.envelopes} == planned
    assert len(all_parties.envelopes) > len(set(all_parties.envelopes))
    code, shown = all_parties.result(file)
    assert (code, "DROPPED" in shown) == (0, False)


def test_what_is_overdue_leaves_within_the_hour_at_instants_of_its_own(
    all_parties: Parties,
) -> None:
    file = all_parties.plan("--canaries", "20", "--batches", "1")
    start = all_parties.clock.now = datetime(2026, 12, 3, 12, tzinfo=UTC)
    times = [canary.held for canary in all_parties.sender(file).run().batches[0].canaries]

    assert all(held and start < held <= start + timedelta(hours=1, seconds=1) for held in times)
    assert len(set(times)) > 15


def test_what_is_not_held_is_sent_again_within_an_hour_until_the_grace_ends(
    all_parties: Parties,
) -> None:
    file = all_parties.plan("--canaries", "1", "--batches", "1")
    tries: list[datetime] = []

    def away(*_: object) -> int:
        tries.append(all_parties.clock())
        return 503 if len(tries) % 2 else 0

    sent = all_parties.sender(file, post=away).run()
    gaps = [after - before for before, after in pairwise(tries)]

    assert len(tries) > 48
    assert max(gaps) <= timedelta(seconds=3600)
    assert tries[-1] < sent.batches[0].ends
    assert sent.batches[0].canaries[0].is_over
    over = all_parties.sender(file, post=lambda *_: 410).run()
    assert over.batches[0].canaries[0].held is None


def test_a_canary_that_was_never_acknowledged_is_not_dropped(all_parties: Parties) -> None:
    file = all_parties.plan("--canaries", "12", "--batches", "1")
    lost = CanaryFile.load(file).batches[0].canaries[3].envelope
    all_parties.devices_send()

    def post(shuffler: str, envelope: bytes, proxy: str) -> int:
        return NO_ANSWER if envelope.hex() == lost else all_parties.post(shuffler, envelope, proxy)

    all_parties.sender(file, post=post).run()
    all_parties.hand_over()
    code, shown = all_parties.result(file)

    assert (code, "none of 11 canaries is missing" in shown) == (0, True), shown


def test_shares_and_proxies_divide_the_canaries(all_parties: Parties) -> None:
    """At several places with one plan, each through proxies in turn."""
    file = all_parties.plan("--canaries", "12", "--batches", "1")
    copies = [all_parties.folder / f"copy {number}" for number in (1, 2)]
    all_parties.devices_send()
    used: list[Counter[str]] = []
    for number, copy in enumerate(copies, 1):
        copy.write_bytes(file.read_bytes())
        copy.chmod(0o600)
        proxies: Counter[str] = Counter()

        def through(
            shuffler: str, envelope: bytes, proxy: str, used: Counter[str] = proxies
        ) -> int:
            used[proxy] += 1
            return all_parties.post(shuffler, envelope, proxy)

        sender = all_parties.sender(copy, post=through, proxies=("a", "b", "c"))
        all_parties.clock.now = datetime(2026, 12, 2, 1, tzinfo=UTC)
        sent = CanarySender(
            copy, sender.clock, sender.sleep, sender.proxies, Share(number, 2), through
        ).run()
        assert sum(canary.held is not None for canary in sent.batches[0].canaries) == 6
        used.append(proxies)
    all_parties.hand_over()

    assert used == [Counter("aabbcc")] * 2
    merged = merge(map(CanaryFile.load, copies)).batches[0].canaries
    assert all(canary.held for canary in merged)
    assert "none of 12 canaries is missing" in all_parties.result(*copies)[1]


def test_below_534_reports_a_result_says_how_many_batches_it_needs(all_parties: Parties) -> None:
    file = all_parties.plan("--canaries", "5")
    all_parties.devices_send()
    assert len(CanaryFile.load(file).batches) == 6
    assert "no batches" not in all_parties.result(file)[1]
    assert "batches that are still needed: 6." in all_parties.result(file)[1]
    assert "reports: open." in all_parties.result(file)[1]

    one = CanaryFile.load(file)
    one.batches = one.batches[:1]
    one.save(file)
    all_parties.sender(file).run()
    all_parties.hand_over()
    assert "batches that are still needed: 5." in all_parties.result(file)[1]


def test_instants_are_drawn_as_a_device_draws_them(all_parties: Parties) -> None:
    """In the first third of the grace, each on its own."""
    batch = CanaryFile.load(all_parties.plan()).batches[0]
    over = datetime(2026, 12, 2, tzinfo=UTC)
    hours = [(canary.due - over) / timedelta(hours=1) for canary in batch.canaries]

    assert 0 <= min(hours) < 6
    assert 18 < max(hours) < 24
    assert len(set(hours)) == 30
    assert sorted(hours) != hours


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("direct",), 'NAME = "direct": its reports travel alone: canaries are for'),
        (("alone",), "3 % of `least` = 20 is less than one canary"),
        (("theme", "--canaries", "31"), 'canaries = "31": give 1 to 30, 3 % of `least`'),
        (("nobody",), "no collection is named"),
    ],
)
def test_a_plan_is_refused_by_name(all_parties: Parties, words: tuple[str, ...], says: str) -> None:
    file = all_parties.folder / "canaries.json"
    plan = ("canary", "plan", *words, "--to", "https://shuffler.example.net")
    refused = all_parties.typed(*plan, "--out", str(file), "--store", all_parties.url)

    assert refused.code == 2
    assert says in refused.err
    assert not file.exists(), "no file without its plan"


def test_files_that_are_none_or_that_others_may_read_are_refused(all_parties: Parties) -> None:
    file = all_parties.plan()
    file.chmod(0o640)
    assert "others may read it" in all_parties.typed("canary", "send", str(file)).err
    file.write_text("{}")
    file.chmod(0o600)
    assert "veilcount canary plan --out" in all_parties.typed("canary", "send", str(file)).err
    share = all_parties.typed("canary", "send", str(file), "--share", "3/2")
    assert "write it like 2/3" in share.err


def test_canaries_are_of_the_key_that_devices_have_for_a_period(all_parties: Parties) -> None:
    """And of no period whose key is not certain: a new one is shipped 90 days ahead."""
    stored = all_parties.deployed.aggregator.store
    first = gateway_keys(load_gateway_keys(stored))[0]
    second_key = create_gateway_key(stored, START, START.date() + timedelta(days=2))
    file = CanaryFile.load(all_parties.plan("--batches", "4"))

    theme = all_parties.deployed.series("theme")
    configs = [first.config, first.config, second_key.config, second_key.config]
    assert [batch.crowd_id for batch in file.batches] == [
        crowd_of(theme, period, config) for period, config in enumerate(configs)
    ]
    keys, early = gateway_keys(load_gateway_keys(stored)), START - timedelta(days=88)
    assert draw_plan(theme, keys, 1, 9, early).periods == range(3)
    assert draw_plan(theme, keys[:1], 1, 40, START).periods == range(2, 31)
    with pytest.raises(SettingsError, match="begins within 90 days"):
        draw_plan(theme, keys, 1, 9, START - timedelta(days=100))
    with pytest.raises(SettingsError, match="relay-keys create"):
        gateway_keys([])


def crowd_of(series: Series, period: int, config: KeyConfig) -> str:
    size = sealed_size(PLAIN_BYTES)
    crowd = Crowd(series.fingerprint, period, config.encode(), config.aeads[0], size)
    return crowd.crowd_id.hex()


def test_programs_read_what_people_read(all_parties: Parties) -> None:
    file = all_parties.plan("--canaries", "2", "--batches", "1")
    all_parties.devices_send()
    all_parties.sender(file).run()
    sent = all_parties.typed("canary", "send", str(file), "--json")
    assert sent.json == {"canaries": 2, "held": 2, "over": 0}
    all_parties.hand_over()
    result = ("canary", "result", str(file), "--store", all_parties.url, "--json")
    facts = all_parties.typed(*result).json

    assert (facts["order_kept"], facts["pairs"], facts["batches_missing"]) == (False, 1, 42)
    assert (facts["held"], facts["dropped"], len(facts["limits"])) == (2, 0, 3)
    assert facts["batches"][0]["state"] == "complete"


def test_a_batch_that_did_not_come_is_called_as_its_shuffler_calls_it(all_parties: Parties) -> None:
    file = all_parties.plan("--canaries", "2", "--batches", "2")
    store, series = all_parties.deployed.aggregator.store, all_parties.deployed.series("theme")
    first = bytes.fromhex(CanaryFile.load(file).batches[0].crowd_id)
    keep_record(store, series, BatchRecord(BatchState.BELOW_LEAST, first, 0))
    code, shown = all_parties.result(file)

    assert (code, "below-least" in shown, shown.count("awaited")) == (0, True, 1)


def test_files_of_two_plans_are_not_merged(all_parties: Parties) -> None:
    one = CanaryFile.load(all_parties.plan("--batches", "1"))
    (all_parties.folder / "canaries.json").unlink()
    all_parties.clock.advance(days=1)
    other = CanaryFile.load(all_parties.plan("--batches", "1"))

    with pytest.raises(SettingsError, match="give the files of one plan"):
        merge([one, other])


def test_a_second_plan_of_the_same_periods_leaves_no_file(all_parties: Parties) -> None:
    all_parties.plan()
    other = all_parties.folder / "other.json"
    plan = ("canary", "plan", "theme", "--to", "https://shuffler.example.net")
    refused = all_parties.typed(*plan, "--out", str(other), "--store", all_parties.url)

    assert "a plan has canaries in 0 to 0" in refused.err
    assert not other.exists()
