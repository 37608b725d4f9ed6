"""The testing kit: an app's tests see what it records, and nothing leaves the machine."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.aggregator.api.deployment_fixtures import deployment
from veilcount_client import Client, NotUsable, UnknownCollection
from veilcount_client import client as client_module
from veilcount_client.delivery.transport import Delivered, Later
from veilcount_client.testing import (
    ClientHarness,
    RecordingTransport,
    SeededRandomSource,
    SettableClock,
    WsgiTransport,
)
from veilcount_client.testing.doubles import first_common_noon
from veilcount_shared import parse_collections
from veilcount_shared.errors import UnknownSegment
from veilcount_shared.verdict import Verdict

from ..delivery.app_client import NOBODY

FILE = """
app = "acme-editor"

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
epsilon = 1
unit = "week"
from = 2026-12-01
until = 2027-12-01

[saved]
question = "Was the file saved?"
boolean = true
epsilon = 1
unit = "event"
per_day = 4
from = 2026-12-01
until = 2027-12-01
segments = {arm = ["A", "B"], size = [1, 2, 3]}

[minutes]
question = "How long was it used?"
range = [0, 240]
measure = "mean"
takes = "sum"
epsilon = 1
unit = "day"
from = 2026-12-01
until = 2027-12-01
answers = 7

[crashed]
question = "Did it crash?"
boolean = true
epsilon = 1
unit = "week"
presence = "hidden"
takes = "any"
held = "process"
from = 2026-12-01
until = 2027-03-01
"""
COLLECTIONS = parse_collections(FILE, lambda _: [])
THEME = {"theme": COLLECTIONS["theme"]}
NOON = datetime(2026, 12, 2, 12, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "collections.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def app_client(file: Path) -> Client:
    return Client(NOBODY, collections=file)


def real_client(folder: Path, **options: Any) -> Client:
    client = Client(
        NOBODY,
        collections=THEME,
        state_dir=folder,
        clock=SettableClock(NOON),
        threaded=False,
        **options,
    )
    client.consent(True)
    return client


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

    assert list(periods.values()) == [[0, 1], [0, 1, 2, 3]]


def test_the_clock_starts_inside_the_campaign_unless_it_was_set(veilcount: ClientHarness) -> None:
    """Of campaigns that do not meet, in most; a naive instant is another on each machine."""
    veilcount.client(COLLECTIONS)
    begins = veilcount.clock.now()
    late = FILE.replace("from = 2026-12-01\nuntil = 2027-03", "from = 2028-01-01\nuntil = 2028-03")
    veilcount.clock.set(NOON)
    veilcount.client(THEME)

    assert begins == datetime(2026, 12, 1, 12, tzinfo=UTC).timestamp()
    assert first_common_noon(parse_collections(late, lambda _: []).values()).year == 2026
    assert veilcount.clock.now() == NOON.timestamp()
    with pytest.raises(ValueError, match="time zone"):
        veilcount.clock.set(NOON.replace(tzinfo=None))


# -- strict ----------------------------------------------------------------------------------------


def test_mistakes_that_production_logs_fail_the_test(veilcount: ClientHarness) -> None:
    """An unknown collection, an undeclared segment, an app without definitions."""
    client = veilcount.client(COLLECTIONS)

    with pytest.raises(UnknownCollection):
        client.record("colour", "red")
    with pytest.raises(UnknownSegment):
        client.record("saved", True, arm="C", size=1)
    with pytest.raises(NotUsable, match="definitions"):
        Client(NOBODY)
    assert veilcount.recorded == []


def test_a_harness_that_is_not_open_makes_no_client() -> None:
    """Outside of it, a client would be a real one."""
    with pytest.raises(RuntimeError, match="open the harness"):
        ClientHarness().client(THEME)


# -- consent ---------------------------------------------------------------------------------------


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
    veilcount: ClientHarness, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    threads = threading.active_count()
    client = app_client(file)
    client.record("theme", "dark")
    veilcount.advance(days=1)

    assert client.consented
    assert veilcount.recorded == [("theme", "dark")]
    assert len(veilcount.sent) == 1
    assert threading.active_count() == threads
    assert not (tmp_path / "home").exists()


def test_an_app_that_starts_again_finds_its_state(veilcount: ClientHarness, file: Path) -> None:
    """Clients of the app in one directory share what is frozen; those of a test are devices."""
    with app_client(file) as first:
        first.record("theme", "dark")
    second = app_client(file)
    second.record("theme", "light")
    veilcount.client(THEME).record("theme", "dark")
    veilcount.flush()

    assert second.explain("theme").losses == {"frozen": 1}
    assert len({report.pseudonym for report in veilcount.sent}) == len(veilcount.sent) == 2


def test_only_the_kill_switches_of_the_test_matter(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build machine with DO_NOT_TRACK runs the same test; afterwards it is set again."""
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    with ClientHarness() as veilcount:
        app_client(file).record("theme", "dark")
        assert veilcount.recorded == [("theme", "dark")]
        with monkeypatch.context() as patch:
            patch.setenv("VEILCOUNT_DISABLED", "1")
            app_client(file).record("theme", "dark")
        assert veilcount.recorded == [("theme", "dark")]
    assert os.environ["DO_NOT_TRACK"] == "1"


def test_afterwards_everything_is_as_before(tmp_path: Path) -> None:
    before = (vars(client_module)["Session"], Client.person)
    with ClientHarness() as veilcount:
        veilcount.client(THEME)

        assert vars(client_module)["Session"] is not before[0]
    assert (vars(client_module)["Session"], Client.person) == before
    with Client(NOBODY, collections=THEME, state_dir=tmp_path, threaded=False) as client:
        assert client.consented is None


# -- transports ------------------------------------------------------------------------------------


def test_an_outage_can_be_played_and_forgetting_be_seen(veilcount: ClientHarness) -> None:
    """The outcome of the transport stays until it is reset; rows to be closed are listed."""
    client = veilcount.client(THEME)
    client.record("theme", "dark")
    veilcount.transport.outcome = Later("offline")
    arrived = veilcount.flush()
    why = client.explain("theme").reasons
    veilcount.transport.outcome = None
    veilcount.advance(days=1)
    client.forget()
    veilcount.advance(days=30)

    assert not arrived
    assert "offline" in " ".join(why)
    assert len(veilcount.sent) == 1
    assert [row[0] for row in veilcount.transport.closed] == [THEME["theme"].fingerprint]


def test_a_production_aggregator_rejects_seeded_randomness(
    veilcount: ClientHarness, tmp_path: Path
) -> None:
    """Through its real web application."""
    with deployment(tmp_path, FILE, now=NOON) as aggregator:
        client = veilcount.client(COLLECTIONS, transport=WsgiTransport(aggregator.app))
        client.record("theme", "dark")
        veilcount.flush()

        assert len(veilcount.sent) == 1
        assert aggregator.counted("theme") == 0
    assert client.explain("theme").losses == {"malformed": 1}


def test_seeded_randomness_makes_test_batches(tmp_path: Path) -> None:
    """The source decides: no harness is needed for a production aggregator to reject them."""
    transport = RecordingTransport()
    source = SeededRandomSource(1)
    with real_client(tmp_path, transport=transport, randomness=source) as client:
        client.record("theme", "dark")
        client.flush()

    assert [batch.test for batch in transport.batches] == [True]


def test_a_device_reaches_an_app_in_process(tmp_path: Path) -> None:
    """All is real but for the socket: the answer is counted, and an unknown row is closed."""
    with deployment(tmp_path, FILE, now=NOON) as aggregator:
        transport = WsgiTransport(aggregator.app, key="k")
        with closing(real_client(tmp_path, transport=transport)) as client:
            client.record("theme", "dark")

            assert client.flush()
        assert aggregator.counted("theme") == 1
        assert transport.close_row("0" * 64, "A" * 22)


def test_a_transport_remembers_what_it_hands_on() -> None:
    """A recording transport in front of another returns the other's outcome."""

    class Duplicates(RecordingTransport):
        def send(self, body: bytes, reports: int) -> Delivered:
            super().send(body, reports)
            return Delivered((Verdict.DUPLICATE,) * reports)

    with ClientHarness() as veilcount:
        client = veilcount.client(THEME, transport=(inner := Duplicates()))
        client.record("theme", "dark")
        veilcount.flush()

        assert veilcount.transport.batches == inner.batches
        assert len(veilcount.sent) == 1
