"""What travels by shuffler: sealed once, and sent at an instant drawn before anything is known."""

from __future__ import annotations

import json
import socket
from collections import Counter
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import pytest

from veilcount_client.delivery.shuffler import Shuffler, ShufflerTransport
from veilcount_client.delivery.transport import Delivered, Later, Outcome, Rejected
from veilcount_client.recording.answer_drawing import AnswerDrawer
from veilcount_client.recording.shuffler_sealing import Sealing
from veilcount_client.state import QueuedReport
from veilcount_shared import Collection
from veilcount_shared.oblivious_http.key_file import decode_key_file
from veilcount_shared.problem_details import OVER
from veilcount_shared.shuffling.times import grace_end

from ..device_fixtures import DAY, HOUR, at, set_clock
from .app_client import NOBODY
from .server_fixtures import Behaviour, Server, answering, problem, serving
from .shuffler_fixtures import KEYS, FakeShuffler, device, hurried

# -- the life of a report --------------------------------------------------------------------------


def test_each_period_sends_one_sealed_report_in_the_first_third_of_its_grace(
    tmp_path: Path,
) -> None:
    with device(tmp_path, "theme", "last") as (one, shuffler):
        for day in range(5):
            one.record_at(at(day, 10), "theme", value="dark")
            one.record_at(at(day, 11), "last", value="dark")
            one.record_at(at(day, 12), "last", value="system")
        one.run_until(at(12))

        for name, collection in one.collections.items():
            assert sorted(period for period, _ in shuffler.held(collection)) == list(range(11)), (
                name
            )
        for each in shuffler.arrived:
            over = at(each.envelope.period + 1)
            assert over <= each.at < over + DAY + HOUR
        assert len(shuffler.arrived) == len({each.raw for each in shuffler.arrived}) == 22
        assert one.wire.attempts == []


def test_what_is_sealed_is_what_the_receipt_shows(tmp_path: Path) -> None:
    with device(tmp_path, "theme", "last", "minutes", "visible") as (one, shuffler):
        for name, value in {
            "theme": "dark",
            "last": "dark",
            "minutes": 30,
            "visible": True,
        }.items():
            one.record_at(at(0, 10), name, value=value)
        one.run_until(at(4))

        for entry in one.client.receipt().entries:
            rows = [row for row in entry.sent if row["period"] == 0]
            held = dict(shuffler.held(one.collections[entry.name]))
            assert [row["message"] for row in rows] == [held[0].hex()]
            assert rows[0]["status"] == "sent"


def undrawn(_: Collection, value: str, __: object) -> int:
    """Return the place of a value, without any noise."""
    return ["light", "dark", "system"].index(value)


def test_an_answer_is_final_at_the_end_of_its_period(tmp_path: Path) -> None:
    with device(tmp_path, "last") as (one, shuffler):
        with patch.object(Collection, "message", undrawn):
            one.record_at(at(0, 0, 1), "last", value="dark")
            one.record_at(at(0, 23, 3599), "last", value="system")
            one.run_until(at(3))

        assert dict(shuffler.held(one.collections["last"]))[0] == one.collections["last"].pack(2)


def test_the_first_period_is_the_first_that_begins_after_the_consent(tmp_path: Path) -> None:
    with device(tmp_path, "theme", "visible", consent=None) as (one, shuffler):
        one.run_until(at(1, 9))
        one.client.consent(True)
        for day in (1, 2, 3):
            one.record_at(at(day, 10), "visible")
        one.run_until(at(8))

        assert min(period for period, _ in shuffler.held(one.collections["theme"])) == 2
        assert [period for period, _ in shuffler.held(one.collections["visible"])] == [2, 3]


# -- when nothing leaves ---------------------------------------------------------------------------


def test_flush_and_close_send_nothing_early(tmp_path: Path) -> None:
    with device(tmp_path, "theme") as (one, shuffler):
        one.record_at(at(0, 10), "theme", value="dark")
        assert one.client.flush()
        one.run_until(at(1, 0, 30))
        assert one.client.flush()
        one.stop()

        assert shuffler.arrived == []


def test_a_report_that_leaves_with_its_record_is_seen(tmp_path: Path) -> None:
    with (
        patch.object(AnswerDrawer, "_times", hurried),
        device(tmp_path, "theme") as (one, shuffler),
    ):
        one.record_at(at(0, 10), "theme", value="dark")
        one.client.flush()

        assert len(shuffler.arrived) == 1


def test_a_device_that_was_off_sends_within_the_hour_after_its_start(tmp_path: Path) -> None:
    with device(tmp_path, "theme") as (one, shuffler):
        one.record_at(at(0, 10), "theme", value="dark")
        one.stop()
        one.start_at(at(3, 12))
        one.run_until(at(3, 14))

        (first,) = [each.at for each in shuffler.arrived if each.envelope.period == 0]
        assert at(3, 12) <= first <= at(3, 13) + 1


@pytest.mark.parametrize("jitter", [0.0, 3600.0])
def test_of_what_is_overdue_no_two_leave_together(tmp_path: Path, jitter: float) -> None:
    """Whatever the app says of the jitter: that is of reports which an aggregator takes."""
    with device(tmp_path, "theme", "visible", jitter=jitter) as (one, shuffler):
        one.record_at(at(0, 10), "theme", value="dark")
        one.record("visible")
        one.stop()
        one.start_at(at(3, 12))
        one.run_until(at(3, 13, 1))

        times = sorted(each.at for each in shuffler.arrived if each.envelope.period < 2)
        assert len(times) == 3, "of theme two periods, of which one is an absence"
        assert times[0] < at(3, 12, 2)
        assert all(later - sooner > 1 for sooner, later in pairwise(times))


def test_a_command_that_never_waits_sends_one_report_at_each_run(tmp_path: Path) -> None:
    """It runs for a second, six hours apart: a time within the hour would always pass unused."""
    with device(tmp_path, "theme", "visible") as (one, shuffler):
        one.record_at(at(0, 10), "theme", value="dark")
        one.record("visible")
        for hour in range(12, 24 * 5, 6):
            set_clock(one.clock, at(0, hour))
            before = len(shuffler.arrived)
            assert one.client.flush()
            assert len(shuffler.arrived) - before <= 1

        found = Counter(each.envelope.period for each in shuffler.arrived)
        assert found[0] == 2
        assert one.losses("theme", "visible") == {}


def test_what_fails_at_the_end_of_the_grace_is_sent_again_before_it(tmp_path: Path) -> None:
    with device(tmp_path, "visible") as (one, shuffler):
        one.record_at(at(0, 10), "visible")
        shuffler.outcome = Later("no network", seen=False)
        one.run_until(at(3, 23, 3300))
        before = len(shuffler.arrived)
        one.run_until(at(4) - 1)

        assert len(shuffler.arrived) - before >= 1


def test_after_the_grace_nothing_is_sent_and_it_counts_for_the_person(tmp_path: Path) -> None:
    with device(tmp_path, "visible") as (one, shuffler):
        one.record_at(at(0, 10), "visible")
        one.stop()
        one.start_at(at(4, 0, 1))
        one.run_until(at(6))

        assert shuffler.arrived == []
        assert one.losses("visible") == {"aged": 1}
        assert one.wire.attempts == []  # no loss is reported


@pytest.mark.parametrize("ending", ["forget", "withdraw", "decline"])
def test_what_is_withdrawn_never_leaves(tmp_path: Path, ending: str) -> None:
    with device(tmp_path, "theme", "visible") as (one, shuffler):
        one.record_at(at(0, 10), "visible")
        one.run_until(at(1, 0, 30))
        if ending == "forget":
            one.client.forget()
        else:
            one.client.consent(False, only=None if ending == "withdraw" else ["theme", "visible"])
        one.run_until(at(9))

        assert shuffler.arrived == []
        assert one.wire.attempts == []


# -- replies ---------------------------------------------------------------------------------------


LOST = Later("the reply was lost")
KEPT = [Later("503", seen=False), Later("404", seen=False), Later("429", seen=False), LOST]


def resealed(self: Shuffler, queued_report: QueuedReport) -> Outcome:
    """The planted mistake: sealed afresh for each attempt."""
    collection = self.collections[queued_report.report.fingerprint]
    (key,) = decode_key_file(KEYS)
    sealing = Sealing(None, lambda _: key, str)  # type: ignore[arg-type] # without tokens
    sealed = sealing.seal(b"", collection, queued_report.report)
    assert isinstance(sealed, bytes)
    return self.connect("").send_envelope(sealed.partition(b"\0")[2])


@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize("reply", KEPT, ids=lambda reply: reply.why)
def test_every_attempt_sends_the_same_bytes(tmp_path: Path, reply: Later, *, planted: bool) -> None:
    with device(tmp_path, "visible") as (one, shuffler):
        one.record_at(at(0, 10), "visible")
        shuffler.outcome = reply
        with patch.object(Shuffler, "send", resealed if planted else Shuffler.send):
            one.run_until(at(2))
            one.restart()
            one.run_until(at(3))
            shuffler.outcome = Delivered(("held",))
            one.run_until(at(4))

        assert len(shuffler.arrived) > 2
        assert (len({each.raw for each in shuffler.arrived}) == 1) is not planted
        gaps = [b.at - a.at for a, b in zip(shuffler.arrived, shuffler.arrived[1:], strict=False)]
        assert max(gaps) <= HOUR + 1
        assert one.client.explain("visible").delivered == 1


@pytest.mark.parametrize(
    ("before", "loss"),
    [([], "over"), ([Later("503", seen=False)], "over"), ([LOST], "unanswered")],
    ids=["at once", "after a refusal", "after a lost reply"],
)
def test_a_batch_that_has_left_ends_a_report(
    tmp_path: Path, before: list[Outcome], loss: str
) -> None:
    with device(tmp_path, "visible") as (one, _):
        one.record_at(at(0, 10), "visible")
        outcomes = iter([*before, Rejected("410")])
        with patch.object(FakeShuffler, "send_envelope", lambda *_: next(outcomes)):
            one.run_until(at(4))

        assert next(outcomes, None) is None
        assert one.losses("visible") == {loss: 1}
        (row,) = one.client.receipt().entries[0].sent
        assert row["status"] == loss


def test_what_the_grace_ends_unanswered_is_not_called_lost(tmp_path: Path) -> None:
    with device(tmp_path, "visible") as (one, shuffler):
        one.record_at(at(0, 10), "visible")
        shuffler.outcome = LOST
        one.run_until(at(6))

        assert one.losses("visible") == {"unanswered": 1}
        last = max(each.at for each in shuffler.arrived)
        assert last < grace_end(one.collections["visible"], 0).timestamp()


# -- over HTTP -------------------------------------------------------------------------------------


def garbage(_: Server, connection: socket.socket, __: object) -> None:
    connection.sendall(b"HTTP/1.1 garbage\r\n\r\n")


def silence(_: Server, connection: socket.socket, __: object) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def gone(name: str) -> Behaviour:
    body = json.dumps({"type": f"urn:{name}" if name != "over" else OVER.uri}).encode()
    return answering(410, body, Content_Type="application/problem+json")


REPLIES: list[tuple[Behaviour, Outcome]] = [
    (answering(202, b'{"state":"held"}'), Delivered(("held",))),
    (gone("over"), Rejected("410")),
    (gone("not-an-aggregator"), Later("410")),
    (answering(410, b"<html>", Content_Type="text/html"), Later("410")),
    (answering(202, b"<html>"), Later("202")),
    (answering(202, b'{"state":"lost"}'), Later("202")),
    (problem(404), Later("404", seen=False)),
    (problem(503), Later("503", seen=False)),
    (answering(502), Later("502")),
    (answering(200, b"{}"), Later("200")),
    (answering(302, Location="/elsewhere"), Later("302")),
    (garbage, Later("ConnectionError")),
    (silence, Later("ConnectionError")),
]


@pytest.mark.parametrize(("behaviour", "outcome"), REPLIES, ids=lambda each: str(each)[:24])
def test_two_replies_alone_settle_an_envelope(behaviour: Behaviour, outcome: Outcome) -> None:
    with serving(behaviour) as server:
        transport = ShufflerTransport(server.url, at)
        assert transport.send_envelope(b"envelope") == outcome

    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/envelopes", b"envelope")
    assert request.header("content-type") == "application/vnd.veilcount.envelope"
    assert request.header("user-agent") == "veilcount"
    assert not {"authorization", "cookie"} & {name for name, _ in request.headers}


def test_an_attempt_that_reached_nobody_is_none() -> None:
    transport = ShufflerTransport(NOBODY, at)
    assert transport.send_envelope(b"envelope") == Later("ConnectionError", seen=False)


# -- records at the end of a period ----------------------------------------------------------------


def test_a_record_that_is_stored_after_its_period_is_no_absence(tmp_path: Path) -> None:
    """It waited in memory over the period's end, as in an outage of the disk."""
    with device(tmp_path, "theme", "last") as (one, shuffler):
        with patch.object(Collection, "message", undrawn):
            one.run_until(at(0, 23, 3500))
            one.client.record("theme", "dark")
            one.client.record("last", "dark")
            set_clock(one.clock, at(1, 0, 300))
            one.run_until(at(3))

        for collection in one.collections.values():
            assert dict(shuffler.held(collection))[0] == collection.pack(1)
        assert one.losses() == {}
