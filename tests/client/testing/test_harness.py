"""The testing kit: an app's tests see what it records, and nothing leaves the machine."""

from __future__ import annotations

import os
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import world
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
from veilcount_client.testing.settable_clock import first_common_noon
from veilcount_shared import parse_collections
from veilcount_shared.errors import UnknownSegment
from veilcount_shared.verdict import Verdict

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
URL = "http://127.0.0.1:9"  # nobody listens there


class App:
    """An app that makes its own client, the way real ones do."""

    def __init__(self, file: Path) -> None:
        self.client = Client(URL, collections=file)
        self.may = self.client.consented

    def choose(self, theme: str) -> None:
        self.client.record("theme", theme)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The app's definitions."""
    path = tmp_path / "collections.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which every connection is a failed test."""

    def refuse(*_: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)


# -- what a test sees ------------------------------------------------------------------------------


def test_what_was_recorded_is_listed_in_order(veilcount: ClientHarness) -> None:
    """The list has names and values as the app gave them, repeated ones too."""
    client = veilcount.client(COLLECTIONS)
    client.record("theme", "dark")
    client.record("saved", True, arm="B", size=3)
    client.record("theme", "dark")

    assert veilcount.recorded == [("theme", "dark"), ("saved", True), ("theme", "dark")]


def test_a_recorded_value_knows_its_segments(veilcount: ClientHarness) -> None:
    """The public segments come along, by name."""
    client = veilcount.client(COLLECTIONS)
    client.record("saved", True, size=2, arm="B")
    seen = veilcount.recorded[0]

    assert (seen.name, seen.value) == ("saved", True)
    assert seen.segments == {"arm": "B", "size": 2}


def test_what_was_sent_are_the_reports(veilcount: ClientHarness) -> None:
    """A flush takes the randomized answers to the list, marked as test ones."""
    client = veilcount.client(THEME)
    client.record("theme", "dark")
    before = list(veilcount.sent)

    assert veilcount.flush()
    assert before == []
    assert [report.fingerprint for report in veilcount.sent] == [THEME["theme"].fingerprint]
    assert all(batch.test for batch in veilcount.transport.batches)


def test_the_same_seed_sends_the_same_bytes() -> None:
    """Secrets, schedule and noise are seeded: a test that passes once passes again."""

    def run(seed: int) -> list[object]:
        with ClientHarness(seed=seed) as veilcount:
            client = veilcount.client(COLLECTIONS)
            for day in range(20):
                client.record("minutes", day)
                veilcount.advance(days=1)
            return list(veilcount.sent)

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_time_passes_only_by_advance(veilcount: ClientHarness) -> None:
    """After a week the next answer may be given; what was due on the way has left."""
    client = veilcount.client(THEME)
    client.record("theme", "dark")
    veilcount.advance(days=7)
    client.record("theme", "light")
    veilcount.flush()

    assert [report.period for report in veilcount.sent] == [0, 1]


def test_what_is_due_on_the_way_leaves_in_its_period(veilcount: ClientHarness) -> None:
    """Hidden presence sends one report a week, recorded or not, however far time is moved."""
    client = veilcount.client({"crashed": COLLECTIONS["crashed"]})
    veilcount.advance(days=28)

    assert client.consented
    assert [report.period for report in veilcount.sent] == [0, 1, 2, 3]


def test_the_clock_starts_inside_the_campaign(veilcount: ClientHarness) -> None:
    """A test does not depend on the day on which it runs."""
    veilcount.client(COLLECTIONS)

    assert datetime.fromtimestamp(veilcount.clock.now(), UTC) == datetime(
        2026, 12, 1, 12, tzinfo=UTC
    )


def test_a_clock_that_was_set_is_left_alone(veilcount: ClientHarness) -> None:
    """A test that is about a date sets it first."""
    chosen = datetime(2027, 11, 30, tzinfo=UTC)
    veilcount.clock.set(chosen)
    veilcount.client(THEME)

    assert veilcount.clock.now() == chosen.timestamp()


def test_where_campaigns_do_not_meet_the_clock_starts_in_most_of_them() -> None:
    """The first day with the most campaigns running is chosen."""
    late = FILE.replace(
        "from = 2026-12-01\nuntil = 2027-03-01", "from = 2028-01-01\nuntil = 2028-02-01"
    )

    assert first_common_noon(parse_collections(late, lambda _: []).values()).year == 2026


def test_an_instant_needs_a_time_zone() -> None:
    """A naive instant means another moment on each machine."""
    with pytest.raises(ValueError, match="time zone"):
        SettableClock().set(datetime(2026, 12, 1))  # noqa: DTZ001 - that is the point


# -- strict ----------------------------------------------------------------------------------------


def test_an_unknown_collection_fails_the_test(veilcount: ClientHarness) -> None:
    """What is only logged in production is an error here."""
    client = veilcount.client(THEME)

    with pytest.raises(UnknownCollection):
        client.record("colour", "red")


def test_an_undeclared_segment_fails_the_test(veilcount: ClientHarness) -> None:
    """Segments are a closed list."""
    client = veilcount.client(COLLECTIONS)

    with pytest.raises(UnknownSegment):
        client.record("saved", True, arm="C", size=1)
    assert veilcount.recorded == []


def test_options_reach_the_client(veilcount: ClientHarness) -> None:
    """An option of Client given to the kit is the client's."""
    client = veilcount.client(THEME, strict=False, persons=True)
    client.record("colour", "red")

    assert client.settings.persons


def test_a_kit_that_is_not_open_makes_no_client() -> None:
    """Outside of it, a client would be a real one."""
    with pytest.raises(RuntimeError, match="open the harness"):
        ClientHarness().client(THEME)


# -- consent ---------------------------------------------------------------------------------------


def test_persons_consent_by_default(veilcount: ClientHarness) -> None:
    """Most tests are not about consent; those that are leave the person unasked."""
    consented = veilcount.client(THEME).consented
    veilcount.consent = None

    assert consented
    assert veilcount.client(THEME).consented is None


def test_nothing_is_recorded_without_consent(veilcount: ClientHarness) -> None:
    """An app that asks too late sees an empty list."""
    veilcount.consent = None
    client = veilcount.client(THEME)
    client.record("theme", "dark")
    veilcount.advance(days=1)

    assert veilcount.recorded == []
    assert veilcount.sent == []


def test_persons_consent_likewise(veilcount: ClientHarness) -> None:
    """Each of many persons has answered yes; one who says no records nothing."""
    client = veilcount.client(THEME, persons=True)
    client.person(1).record("theme", "dark")
    client.person(2).consent(False)
    client.person(2).record("theme", "light")
    veilcount.flush()

    assert veilcount.recorded == [("theme", "dark")]
    assert len(veilcount.sent) == 1


# -- clients that the app makes --------------------------------------------------------------------


@pytest.mark.usefixtures("no_network")
def test_a_client_of_the_app_is_rerouted(
    veilcount: ClientHarness, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The app's own Client(...) has no thread, no network and no state outside of the kit."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    threads = threading.active_count()
    app = App(file)
    app.choose("dark")
    veilcount.advance(days=1)

    assert app.may
    assert veilcount.recorded == [("theme", "dark")]
    assert len(veilcount.sent) == 1
    assert threading.active_count() == threads
    assert not (tmp_path / "home").exists()


def test_an_app_that_starts_again_finds_its_state(veilcount: ClientHarness, file: Path) -> None:
    """Two clients of the app at the same place share what is frozen there."""
    first = App(file)
    first.choose("dark")
    first.client.close()
    second = App(file)
    second.choose("light")
    veilcount.flush()

    assert len(veilcount.sent) == 1
    assert second.client.explain("theme").losses == {"frozen": 1}


def test_two_clients_of_a_test_are_two_devices(veilcount: ClientHarness) -> None:
    """Each client that the kit makes has a state, hence a person, of its own."""
    for _ in range(2):
        veilcount.client(THEME).record("theme", "dark")
    veilcount.flush()
    one, other = veilcount.sent

    assert one.pseudonym != other.pseudonym


def test_kill_switches_of_the_machine_do_not_matter(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build machine with DO_NOT_TRACK set runs the same test; afterwards it is set again."""
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    with ClientHarness() as veilcount:
        App(file).choose("dark")

        assert veilcount.recorded == [("theme", "dark")]
    assert os.environ["DO_NOT_TRACK"] == "1"


def test_a_kill_switch_of_the_test_works(
    veilcount: ClientHarness, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test may turn one on, to see that the app goes on without."""
    monkeypatch.setenv("VEILCOUNT_DISABLED", "1")
    app = App(file)
    app.choose("dark")

    assert veilcount.recorded == []


def test_afterwards_everything_is_as_before(tmp_path: Path) -> None:
    """A closed kit leaves no trace in the client's classes."""
    before = (vars(client_module)["Session"], Client.person)
    with ClientHarness() as veilcount:
        veilcount.client(THEME)

        assert vars(client_module)["Session"] is not before[0]
    client = Client(URL, collections=THEME, state_dir=tmp_path, threaded=False)

    assert (vars(client_module)["Session"], Client.person) == before
    assert client.consented is None
    client.close()


def test_a_client_that_cannot_open_says_so(veilcount: ClientHarness) -> None:
    """Strict: an app without definitions fails its test, not its users."""
    assert veilcount.recorded == []
    with pytest.raises(NotUsable, match="definitions"):
        Client(URL)


# -- transports ------------------------------------------------------------------------------------


def test_an_aggregator_that_is_away_can_be_played(veilcount: ClientHarness) -> None:
    """An answer of the transport stands until it is taken back; nothing is lost meanwhile."""
    client = veilcount.client(THEME)
    client.record("theme", "dark")
    veilcount.transport.outcome = Later("offline")
    arrived = veilcount.flush()
    why = client.explain("theme").reasons
    veilcount.transport.outcome = None
    veilcount.advance(days=1)

    assert not arrived
    assert "offline" in " ".join(why)
    assert len(veilcount.sent) == 1


def test_forgetting_can_be_seen(veilcount: ClientHarness) -> None:
    """The rows that a forgotten person asks to be closed are listed."""
    client = veilcount.client(THEME)
    client.record("theme", "dark")
    veilcount.flush()
    client.forget()
    veilcount.advance(days=30)

    assert [row[0] for row in veilcount.transport.closed] == [THEME["theme"].fingerprint]


def test_a_production_aggregator_refuses_seeded_randomness(
    veilcount: ClientHarness, tmp_path: Path
) -> None:
    """What the kit sends to a real aggregator is refused, through its real web application."""
    with world(tmp_path, FILE, now=datetime(2026, 12, 2, tzinfo=UTC)) as aggregator:
        client = veilcount.client(COLLECTIONS, transport=WsgiTransport(aggregator.app))
        client.record("theme", "dark")
        veilcount.flush()

        assert len(veilcount.sent) == 1
        assert aggregator.counted("theme") == 0
    assert client.explain("theme").losses == {"malformed": 1}


def test_seeded_randomness_makes_test_batches(tmp_path: Path) -> None:
    """It is the source that decides: no kit is needed for a production aggregator to refuse."""
    transport = RecordingTransport()
    with Client(
        URL,
        collections=THEME,
        state_dir=tmp_path,
        transport=transport,
        randomness=SeededRandomSource(1),
        clock=SettableClock(datetime(2026, 12, 2, tzinfo=UTC)),
        threaded=False,
    ) as client:
        client.consent(True)
        client.record("theme", "dark")
        client.flush()

    assert [batch.test for batch in transport.batches] == [True]


def test_a_device_reaches_an_app_in_process(tmp_path: Path) -> None:
    """With the system's randomness all is real but for the socket: the answer is counted."""
    now = datetime(2026, 12, 2, tzinfo=UTC)
    with (
        world(tmp_path, FILE, now=now) as aggregator,
        Client(
            URL,
            collections=COLLECTIONS,
            state_dir=tmp_path,
            transport=WsgiTransport(aggregator.app, key="k"),
            clock=SettableClock(now),
            threaded=False,
        ) as client,
    ):
        client.consent(True)
        client.record("theme", "dark")

        assert client.flush()
        assert aggregator.counted("theme") == 1


def test_an_app_in_process_may_know_no_rows(tmp_path: Path) -> None:
    """A row that no one knows is as good as closed."""
    with world(tmp_path, FILE) as aggregator:
        assert WsgiTransport(aggregator.app).close_row("0" * 64, "A" * 22)


def test_a_transport_remembers_what_it_hands_on() -> None:
    """A recording transport in front of another gives back the other's answer."""

    class Duplicates(RecordingTransport):
        def send(self, body: bytes, reports: int) -> Delivered:
            super().send(body, reports)
            return Delivered((Verdict.DUPLICATE,) * reports)

    with ClientHarness() as veilcount:
        client = veilcount.client(THEME, transport=(behind := Duplicates()))
        client.record("theme", "dark")
        veilcount.flush()

        assert veilcount.transport.batches == behind.batches
        assert len(veilcount.sent) == 1
