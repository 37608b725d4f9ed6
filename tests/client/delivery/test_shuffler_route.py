"""By which way what has a batch goes, who is shown it, and that it shows nothing of a record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from datetime import date
from pathlib import Path
from unittest.mock import patch

import pytest

from veilcount_client import Client
from veilcount_client.delivery.transport import Delivered, Later, Outcome
from veilcount_client.recording.answer_drawing import AnswerDrawer
from veilcount_client.recording.recorder import Recorder
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.oblivious_http.key_file import encode_key_file
from veilcount_shared.shuffling.envelope import Envelope

from ..device_fixtures import DAY, Device, at
from .shuffler_fixtures import COLLECTIONS, KEY, KEYS, FakeShuffler, device, hurried

# -- the route -------------------------------------------------------------------------------------


ROUTES = [
    ({"shuffler": None}, "no other way: give Client(shuffler=URL, relay_keys=FILE)"),
    ({"relay_keys": None}, "give the file of `veilcount relay-keys create --out`"),
    ({"relay_keys": b"[]"}, "keys: give the file of"),
    ({"shuffler": "shuffler.example"}, "shuffler = 'shuffler.example' does not begin with"),
    ({"shuffler": "https://shuffler.example"}, "a shuffler cannot tell a developer's reports"),
]


@pytest.mark.parametrize(("options", "words"), ROUTES)
def test_without_a_route_a_question_is_refused_by_name_and_sent_no_other_way(
    tmp_path: Path, options: dict[str, object], words: str
) -> None:
    with device(tmp_path, "visible", "plain", **options) as (one, shuffler):
        one.record_at(at(0, 10), "visible")
        one.record("plain")
        one.run_until(at(9))

        assert words in one.client._session.problems.messages["load visible"]
        assert {report.fingerprint for report in one.wire.reports} == {
            COLLECTIONS["plain"].fingerprint
        }
        assert shuffler.arrived == []
        assert any("load visible" in reason for reason in one.client.explain("visible").reasons)


def test_a_client_of_batches_alone_needs_no_aggregator(tmp_path: Path) -> None:
    chosen = {"visible": COLLECTIONS["visible"]}
    with closing(
        Client(
            collections=chosen,
            state_dir=tmp_path,
            shuffler="https://shuffler.example",
            relay_keys=KEYS,
            threaded=False,
            strict=True,
        )
    ) as client:
        assert client._session.consents.accepted == chosen
        assert "The shuffler is run by shuffler.example." in client.receipt().text()


def test_an_address_that_encrypts_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veilcount_client.session.Session.is_test", False)
    with device(tmp_path, "visible", shuffler="http://shuffler.example") as (one, _):
        assert "over http://" in one.client._session.problems.messages["shuffler"]


def test_a_period_that_no_key_is_for_is_not_answered(tmp_path: Path) -> None:
    later = encode_key_file([(date(2026, 12, 3), KEY.encode())]).encode()
    with device(tmp_path, "visible", relay_keys=later) as (one, shuffler):
        for day in range(4):
            one.record_at(at(day, 10), "visible")
        one.run_until(at(8))

        assert [period for period, _ in shuffler.held(one.collections["visible"])] == [2, 3]
        assert one.losses("visible") == {"no_key": 2}


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """The addresses and envelopes that leave; the first one's replies are lost."""
    seen: list[tuple[str, bytes]] = []

    class Named:
        def __init__(self, url: str, _: object) -> None:
            self.url = url

        def send_envelope(self, envelope: bytes) -> Outcome:
            seen.append((self.url, envelope))
            is_first = "one" in self.url
            return Later("the reply was lost") if is_first else Delivered(("held",))

    monkeypatch.setattr("veilcount_client.delivery.shuffler_route.ShufflerTransport", Named)
    monkeypatch.setattr("veilcount_client.session.Session.is_test", False)
    return seen


def updated(one: Device, instant: float) -> None:
    """Start a version of the app that names another shuffler."""
    one.stop()
    one.options["shuffler"] = "https://two.example"
    one.start_at(instant)


def test_a_new_address_serves_the_periods_that_begin_after_it(
    tmp_path: Path, sends: list[tuple[str, bytes]]
) -> None:
    with device(tmp_path, "visible", shuffler="https://one.example") as (one, _):
        one.record_at(at(0, 10), "visible")
        one.record_at(at(1, 10), "visible")
        updated(one, at(1, 11))
        one.record_at(at(2, 10), "visible")
        one.run_until(at(7))

    periods = {(url, Envelope.decode(envelope).period) for url, envelope in sends}
    assert periods == {
        ("https://one.example", 0),
        ("https://one.example", 1),
        ("https://two.example", 2),
    }


@pytest.mark.parametrize("jump", [0, -40 * 365 * DAY], ids=["right", "as after a flat battery"])
def test_what_is_sealed_goes_to_one_shuffler_whatever_the_clock_says_at_an_update(
    tmp_path: Path, sends: list[tuple[str, bytes]], jump: float
) -> None:
    with device(tmp_path, "visible", shuffler="https://one.example") as (one, _):
        one.record_at(at(0, 10), "visible")
        one.run_until(at(2))
        assert sends
        updated(one, at(2) + jump)
        one.stop()
        one.start_at(at(2, 1))
        one.run_until(at(3, 12))

    assert {url for url, _ in sends} == {"https://one.example"}
    assert len({envelope for _, envelope in sends}) == 1


NEW = KeyConfig(2, KEY.public, KEY.aeads)
BOTH = encode_key_file([(date(2026, 11, 1), KEY.encode()), (date(2026, 11, 2), NEW.encode())])


def keys_of(shuffler: FakeShuffler) -> dict[int, int]:
    """Return the key of each period's report."""
    envelopes = [each.envelope for each in shuffler.arrived]
    return {envelope.period: envelope.sealed[0] for envelope in envelopes}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", ["theme", "last"])
def test_a_key_that_comes_within_a_period_seals_from_the_next_one_on(
    tmp_path: Path, name: str, *, recorded: bool
) -> None:
    """Its id would show whether something was recorded before the update."""
    with device(tmp_path, name) as (one, shuffler):
        one.run_until(at(0, 9))
        if recorded:
            one.record(name, value="dark")
        one.stop()
        one.options["relay_keys"] = BOTH.encode()
        one.start_at(at(0, 12))
        one.run_until(at(5))

        assert keys_of(shuffler) == {0: 1, 1: 2, 2: 2, 3: 2}


def test_a_process_that_has_no_route_wipes_nothing_of_those_that_have(tmp_path: Path) -> None:
    """A cron job without the variable: the shuffler would learn who had recorded."""
    with device(tmp_path, "theme", "last") as (one, shuffler):
        one.record_at(at(0, 10), "theme", value="dark")
        one.record_at(at(0, 11), "last", value="dark")
        before = one.stored, one.state.held(one.key, one.collections["last"].fingerprint)
        one.stop()
        one.options["shuffler"] = None
        one.start_at(at(0, 12))
        assert "load theme" in one.client._session.problems.messages
        assert (one.stored, one.state.held(one.key, one.collections["last"].fingerprint)) == before
        one.stop()
        one.options["shuffler"] = shuffler
        one.start_at(at(0, 13))
        one.run_until(at(4))

        for collection in one.collections.values():
            assert 0 in dict(shuffler.held(collection))
        assert one.losses("theme", "last") == {}


@pytest.mark.parametrize("name", ["theme", "hidden"])
def test_a_process_of_an_older_version_shows_nothing_of_what_was_recorded(
    tmp_path: Path, name: str
) -> None:
    """It does not have the question, and wipes what waits of it; a newer one draws the absences."""
    found = []
    for recorded in (False, True):
        with device(tmp_path / str(recorded), name, "plain") as (one, shuffler):
            one.run_until(at(0, 1))
            if recorded:
                one.record(name, value="dark")
            one.run_until(at(0, 2))  # before any absence of the day
            older = {"plain": COLLECTIONS["plain"]}
            Device(one.place, older, one.clock, one.wire, **one.options).stop()
            one.run_until(at(6))
            of_it = {report.period for report in one.wire.reports if report.segment == 0}
            found.append((of_it, {each.envelope.period for each in shuffler.arrived}))

    assert found[0] == found[1]
    assert any(1 in periods and 0 not in periods for periods in found[0])


def test_the_person_and_the_developer_are_shown_the_route(tmp_path: Path) -> None:
    with device(tmp_path, "theme", "plain") as (one, shuffler):
        one.record_at(at(0, 10), "theme", value="dark")
        waiting = one.client.explain("theme")
        shuffler.outcome = Later("503", seen=False)
        one.run_until(at(2))
        trouble = one.client.explain("theme")
        shuffler.outcome = Delivered(("held",))
        one.run_until(at(3))

        assert waiting.reasons[-1] == "on the way: 1 reports wait for their instants"
        assert (waiting.route, one.client.explain("plain").route) == ("shuffler", "direct")
        assert "the shuffler answers 503: it is busy or down" in str(trouble)
        assert one.client.explain("theme").delivered_on
        page = one.client.receipt().html()
        assert "handed to the shuffler" in page
        assert "Reports travel through a shuffler" in page
        one.client.forget()
        assert not one.client.explain("theme").delivered_on


# -- what the device knows of it shows nowhere -----------------------------------------------------


def shape(
    place: Path, records: Sequence[tuple[float, object]], name: str = "theme"
) -> list[tuple[float, int, bytes, int]]:
    """Return what the shuffler sees of a device: instants, sizes, crowds, periods."""
    with device(place, name) as (one, shuffler):
        for instant, value in records:
            one.record_at(instant, name, value=value)
        one.run_until(at(6))
        return [
            (each.at, len(each.raw), each.envelope.crowd_id, each.envelope.period)
            for each in shuffler.arrived
        ]


RECORDS: list[list[tuple[float, object]]] = [
    [],
    [(at(0, 3), "dark")],
    [(at(day, 2 + day), "light") for day in range(5)],
]


def no_absences(self: object, *_: object) -> Iterator[object]:
    """The planted mistake: a period without a record is left out."""
    yield from ()


def test_a_hidden_question_looks_the_same_whatever_was_recorded_and_when(tmp_path: Path) -> None:
    shapes = [shape(tmp_path / str(place), records) for place, records in enumerate(RECORDS)]

    assert shapes[0] == shapes[1] == shapes[2]
    assert len(shapes[0]) == 5


def test_of_a_visible_question_it_is_seen_that_there_was_an_answer_and_nothing_else(
    tmp_path: Path,
) -> None:
    lives = [
        [(at(0, 1), True), (at(2, 1), True)],
        [(at(0, 23), False), (at(0, 23.5), True), (at(2, 9), False)],
    ]
    shapes = [shape(tmp_path / str(place), life, "visible") for place, life in enumerate(lives)]

    assert shapes[0] == shapes[1]
    assert [period for *_, period in shapes[0]] == [0, 2]


@pytest.mark.parametrize("mistake", ["absences", "times"])
def test_a_device_that_shows_what_was_recorded_is_seen(tmp_path: Path, mistake: str) -> None:
    mistakes: dict[str, AbstractContextManager[object]] = {
        "absences": patch.object(Recorder, "_missing", no_absences),
        "times": patch.object(AnswerDrawer, "_times", hurried),
    }
    with mistakes[mistake]:
        shapes = [shape(tmp_path / str(place), records) for place, records in enumerate(RECORDS)]

    assert shapes[0] != shapes[2]
