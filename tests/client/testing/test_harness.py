"""The testing kit: an app's tests see what it records, and nothing leaves the machine."""

from __future__ import annotations

import os
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_client import Client, NotUsable, UnknownCollection
from veilcount_client import session as session_module
from veilcount_client.delivery.transport import Delivered, Later
from veilcount_client.testing import ClientHarness, RecordingTransport, WsgiTransport
from veilcount_client.testing.doubles import first_common_noon
from veilcount_shared.errors import UnknownSegment
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import encode_binary, encode_json

from ...aggregator.web.api.deployment_fixtures import deployment
from ..delivery.app_client import NOBODY
from ..device_fixtures import file, one_collection

FILE = Path(__file__).parents[3] / "docs" / "collections.toml"
WEEKLY = {"unit": "week", "until": "2027-06-01"}
COLLECTIONS = file(
    theme={"values": ["light", "dark", "system"], **WEEKLY},
    saved={"unit": "event", "per_day": 4, "segments": {"arm": ["A", "B"], "size": [1, 2, 3]}},
    minutes={"range": [0, 240], "measure": "mean", "takes": "sum", "answers": 7},
    crashed={"presence": "hidden", "takes": "any", "held": "device", **WEEKLY},
)
THEME = {"theme": COLLECTIONS["theme"]}
NOON = datetime(2026, 12, 2, 12, tzinfo=UTC)


def app_client() -> Client:
    return Client(NOBODY, collections=FILE)


# -- what a test sees ------------------------------------------------------------------------------


def test_records_are_listed_and_a_flush_sends_test_reports(veilcount: ClientHarness) -> None:
    """Names, values and segments as the app gave them, repeated ones too."""
    client = veilcount.client(COLLECTIONS)
    client.record("theme", "dark")
    client.record("saved", True, size=2, arm="B")
    client.record("theme", "dark")
    saved, before = veilcount.recorded[1], list(veilcount.sent)
    arrived = veilcount.flush()
    names = [COLLECTIONS[name].fingerprint for name in ("theme", "saved")]

    assert veilcount.recorded == [("theme", "dark"), ("saved", True), ("theme", "dark")]
    assert (saved.name, saved.value, saved.segments) == ("saved", True, {"arm": "B", "size": 2})
    assert (before, arrived) == ([], True)
    assert sorted(report.fingerprint for report in veilcount.sent) == sorted(names)
    assert all(batch.test for batch in veilcount.transport.batches)


def test_the_same_seed_sends_the_same_bytes() -> None:
    """Secrets, schedule and noise are seeded: a test that passes once passes again."""

    def run(seed: int) -> list[object]:
        with ClientHarness(seed=seed) as veilcount:
            client = veilcount.client(COLLECTIONS)
            for day in range(8):
                client.record("minutes", day)
                veilcount.advance(days=1)
            return list(veilcount.sent)

    assert run(1) == run(1) != run(2)


def test_time_passes_only_by_advance(veilcount: ClientHarness) -> None:
    """What is due on the way leaves in its period; hidden presence is one report a week."""
    client = veilcount.client({name: COLLECTIONS[name] for name in ("theme", "crashed")})
    periods: dict[str, list[int]] = {each.fingerprint: [] for each in client.collections.values()}
    client.record("theme", "dark")
    veilcount.advance(days=7)
    client.record("theme", "light")
    veilcount.advance(days=21)
    for report in veilcount.sent:
        periods[report.fingerprint].append(report.period)

    theme, crashed = periods.values()
    assert theme == [0, 1]
    assert crashed in ([0, 1, 2, 3], [0, 1, 2, 3, 4]), "the last week's may be due later"


def test_the_clock_starts_inside_the_campaign_and_can_be_set(veilcount: ClientHarness) -> None:
    """Of campaigns that do not meet, in most; a naive instant is another on each machine."""
    veilcount.client(COLLECTIONS)
    begins = veilcount.clock.now()
    late = one_collection("late", **{"from": "2028-01-01", "until": "2028-03-01"})
    veilcount.clock.set(NOON)
    veilcount.client(THEME)

    assert begins == datetime(2026, 12, 1, 12, tzinfo=UTC).timestamp()
    assert first_common_noon((COLLECTIONS | late).values()).year == 2026
    assert veilcount.clock.now() == NOON.timestamp()
    with pytest.raises(ValueError, match="time zone"):
        veilcount.clock.set(NOON.replace(tzinfo=None))


def test_mistakes_that_production_logs_fail_the_test(veilcount: ClientHarness) -> None:
    """An unknown collection, an undeclared segment, an app without definitions, no open harness."""
    client = veilcount.client(COLLECTIONS)

    with pytest.raises(UnknownCollection):
        client.record("colour", "red")
    with pytest.raises(UnknownSegment):
        client.record("saved", True, arm="C", size=1)
    with pytest.raises(NotUsable, match="definitions"):
        Client(NOBODY)
    with pytest.raises(RuntimeError, match="open the harness"):
        ClientHarness().client(THEME)
    assert veilcount.recorded == []


def test_persons_consent_by_default(veilcount: ClientHarness) -> None:
    """Also each of many persons; one who refuses, or was not asked, records nothing."""
    client = veilcount.client(THEME, persons=True, strict=False)
    client.person(1).record("theme", "dark")
    client.person(1).record("colour", "red")
    client.person(2).consent(False)
    client.person(2).record("theme", "light")
    veilcount.consent = None
    unasked = veilcount.client(THEME)
    unasked.record("theme", "dark")
    veilcount.flush()

    assert unasked.consented is None
    assert veilcount.recorded == [("theme", "dark")]
    assert len(veilcount.sent) == 1


# -- clients that the app makes --------------------------------------------------------------------


def test_a_client_of_the_app_has_no_thread_no_network_and_no_state_outside(
    veilcount: ClientHarness, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    before = set(threading.enumerate())
    client = app_client()
    client.record("theme", "dark")
    veilcount.advance(days=1)

    assert client.consented
    assert veilcount.recorded == [("theme", "dark")]
    assert len(veilcount.sent) == 1
    assert set(threading.enumerate()) <= before
    assert not (tmp_path / "home").exists()


def test_an_app_that_starts_again_finds_its_state(veilcount: ClientHarness) -> None:
    """Clients of the app in one directory share what is frozen; those of a test are devices."""
    veilcount.clock.set(NOON)  # within both campaigns
    with app_client() as first:
        first.record("theme", "dark")
    second = app_client()
    second.record("theme", "light")
    veilcount.client(THEME).record("theme", "dark")
    veilcount.flush()

    assert second.explain("theme").losses == {"frozen": 1}
    assert len({report.pseudonym for report in veilcount.sent}) == len(veilcount.sent) == 2


def test_only_the_kill_switches_of_the_test_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build machine with DO_NOT_TRACK runs the same test; afterwards it is set again."""
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    with ClientHarness() as veilcount:
        app_client().record("theme", "dark")
        assert veilcount.recorded == [("theme", "dark")]
        with monkeypatch.context() as patch:
            patch.setenv("VEILCOUNT_DISABLED", "1")
            app_client().record("theme", "dark")
        assert veilcount.recorded == [("theme", "dark")]
    assert os.environ["DO_NOT_TRACK"] == "1"


def test_afterwards_everything_is_as_before(tmp_path: Path) -> None:
    before = (vars(session_module)["Session"], Client.person)
    with ClientHarness() as veilcount:
        veilcount.client(THEME)

        assert vars(session_module)["Session"] is not before[0]
    assert (vars(session_module)["Session"], Client.person) == before
    with Client(NOBODY, collections=THEME, state_dir=tmp_path, threaded=False) as client:
        assert client.consented is None


# -- transports ------------------------------------------------------------------------------------


def test_an_outage_can_be_played_and_forgetting_sends_nothing(veilcount: ClientHarness) -> None:
    """The outcome of the transport stays until it is reset; rows are named before `forget`."""
    client = veilcount.client(THEME)
    client.record("theme", "dark")
    veilcount.transport.outcome = Later("offline")
    arrived = veilcount.flush()
    why = client.explain("theme").reasons
    veilcount.transport.outcome = None
    veilcount.advance(days=1)
    rows = client.rows()
    client.forget()
    veilcount.advance(days=30)

    assert not arrived
    assert "offline" in " ".join(why)
    assert len(veilcount.sent) == 1
    assert [row.fingerprint for row in rows] == [THEME["theme"].fingerprint]
    assert client.rows() == []


def test_production_rejects_seeded_randomness(veilcount: ClientHarness, tmp_path: Path) -> None:
    """Through its real web application."""
    with deployment(tmp_path, FILE.read_text(encoding="utf-8"), now=NOON) as aggregator:
        transport = WsgiTransport(aggregator.app, key="k")
        client = veilcount.client(FILE, transport=transport)
        client.record("theme", "dark")
        veilcount.flush()

        assert len(veilcount.sent) == 1
        assert aggregator.counted("theme") == 0
    assert client.explain("theme").losses == {"malformed": 1}


def test_every_hundredth_report_comes_again_and_none_is_lost_or_double() -> None:
    """An app that counts on flush() finds out, and a client that drops what it does not know."""
    with ClientHarness() as veilcount:
        client = veilcount.client(file(saved={"unit": "event", "per_day": 250}))
        for _ in range(250):
            client.record("saved", True)
        flushed = [veilcount.flush()]
        sent = len(veilcount.sent)
        veilcount.advance(days=1)
        flushed += [veilcount.flush()]

        assert flushed == [False, True]
        assert sent == len(veilcount.sent) == 250
        assert client.explain("saved").losses == {}


def test_a_recording_transport_takes_a_batch_that_a_test_wrote_as_json() -> None:
    batch = Batch((Report("ab" * 32, 1, 0, bytes(16), 2, b"\1"),))
    transport = RecordingTransport()
    for body in (encode_binary(batch), encode_json(batch), b"\n" + encode_json(batch)):
        assert transport.send(body, 1) == Delivered((Verdict.COUNTED,))

    assert transport.batches == [batch] * 3
