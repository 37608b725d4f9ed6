"""What the aggregator replied: a warning when trouble begins and ends, a reason in `explain`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_client import Client
from veilcount_client.delivery import replies
from veilcount_client.delivery.transport import HttpTransport, Later, Transport
from veilcount_client.diagnostics.doctor import examine
from veilcount_client.settings import read_settings
from veilcount_client.state import StateError
from veilcount_client.testing import RecordingTransport, WsgiTransport
from veilcount_shared import SystemRandomSource, parse_collections
from veilcount_shared.verdict import Verdict

from ...aggregator.web.api.deployment_fixtures import FILE, NOW, Deployment, deployment
from ..delivery.app_client import NOBODY
from ..delivery.server_fixtures import answering, serving
from ..device_fixtures import Device, Wire, at, clock_at, file, one_collection

DEFINITIONS = parse_collections(FILE, lambda _: [])
OTHER = parse_collections(FILE.replace("epsilon = 1\n", "epsilon = 2\n"), lambda _: [])
PROBLEM = "application/problem+json"
FORTY_DAYS = timedelta(days=40)


def device(
    place: Path, transport: Transport, collections: Any = DEFINITIONS, **more: Any
) -> Device:
    """Return a device of a person who has recorded a theme, and tried to send it."""
    clock = clock_at((NOW + more.pop("ahead", timedelta())).timestamp())
    made = Device(
        place, collections, clock, transport, randomness=SystemRandomSource(), **more
    )  # reports of predictable randomness are test reports
    made.send("theme", value="dark")
    return made


def reason(made: Device, name: str = "theme") -> str:
    """Return the one reason that concerns the aggregator."""
    (found,) = [each for each in made.client.explain(name).reasons if each.startswith("server")]
    return found


# -- each kind of trouble has its own sentence -----------------------------------------------------


def at_server(served: Deployment, key: str | None = None) -> Transport:
    return WsgiTransport(served.app, key, NOW.timestamp)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (lambda _: None, "answers 401: it requires a key: give VEILCOUNT_KEY"),
        (lambda _: "veilcount_device_wrong", "answers 401: it does not know the key"),
        (lambda served: served.key(Role.ANALYST), "answers 403: the key is of another role"),
    ],
)
def test_a_key_that_is_missing_is_not_one_that_is_wrong(
    key: Callable[[Deployment], str | None], words: str, tmp_path: Path
) -> None:
    with deployment(tmp_path, FILE) as served:
        served.key(Role.DEVICE)  # from now on one is required
        shown = key(served)
        made = device(tmp_path / "state", at_server(served, shown), key=shown)

    assert words in reason(made)
    assert reason(made).endswith("(1 waiting)")


def test_a_definition_that_was_never_pushed_is_named(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as served:
        made = device(tmp_path / "state", at_server(served), OTHER)

    assert "has no such definition: have its operator push" in reason(made)


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (FORTY_DAYS, "this machine's clock is ahead, let NTP set it"),
        (-FORTY_DAYS, "this machine's clock is behind"),
    ],
)
def test_a_clock_forty_days_off_is_named(ahead: timedelta, words: str, tmp_path: Path) -> None:
    """A report from the future waits, one from the past was dropped."""
    now = NOW + timedelta(days=120)
    with deployment(tmp_path, FILE, now=now) as served:
        made = device(tmp_path / "state", at_server(served), ahead=now - NOW + ahead)

    assert words in reason(made)


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (503, "text/plain", "answers 503: it is busy or down"),
        (404, "text/html", "answers 404: no aggregator at this address"),
        (308, "text/html", "answers 308: no redirect is followed"),
        (418, "text/html", "answers 418: not as an aggregator would"),
        (400, PROBLEM, "answers 400 and refused the reports for good"),
        (415, PROBLEM, "answers 415: it takes no bodies of this release: have its operator"),
    ],
)
def test_a_status_is_named_with_host(status: int, kind: str, words: str, tmp_path: Path) -> None:
    with serving(answering(status, b"{}", Content_Type=kind)) as server:
        transport = HttpTransport(server.url, None, NOW.timestamp)
        made = device(tmp_path, transport, url=server.url)

    assert f"{server.url} {words}" in reason(made)


def test_an_aggregator_that_cannot_be_reached_is_named_without_its_password(tmp_path: Path) -> None:
    url = "http://ann:secret@127.0.0.1:9"
    made = device(tmp_path, HttpTransport(url, None, NOW.timestamp), url=url)

    assert "http://127.0.0.1:9 cannot be reached (ConnectionError)" in reason(made)
    assert "secret" not in str(made.client.explain("theme"))


def test_the_end_of_a_server_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sunset = "Sun, 06 Jun 2027 08:00:00 GMT"
    with serving(answering(503, Sunset=sunset, Deprecation="@1798761600")) as server:
        client = Client(
            server.url, collections=DEFINITIONS, state_dir=tmp_path, clock=clock_at(NOW.timestamp())
        )
        client.consent(True)
        client.record("theme", "dark")
        for _ in range(2):
            client.flush()
        client.close()
        requests = len(server.requests)

    (line,) = [line for line in caplog.messages if "2027-06-06" in line]
    assert requests > 1
    assert f"{server.url}: deprecated from 2027-01-01, it ends on 2027-06-06: ship" in line


def test_a_test_batch_needs_a_server_in_development(tmp_path: Path) -> None:
    """What most first runs meet: development=True against a server without --dev."""
    with deployment(tmp_path, FILE) as served:
        client = Client(
            NOBODY,
            collections=DEFINITIONS,
            development=True,
            transport=at_server(served),
            clock=clock_at(NOW.timestamp()),
            threaded=False,
        )
        client.consent(True)
        client.record("theme", "dark")
        client.flush()
        (found,) = client.explain("theme").reasons
        client.close()

    assert "test batches need `veilcount dev`" in found


@pytest.mark.parametrize("verdict", [each for each in Verdict if not each.delivered])
def test_every_verdict_that_is_no_delivery_has_a_sentence(verdict: Verdict) -> None:
    assert verdict in replies.VERDICTS


# -- what was delivered ----------------------------------------------------------------------------


def test_what_was_delivered_is_stated_with_its_day(tmp_path: Path) -> None:
    """Also by the next process, and while later reports meet trouble."""
    made = Device(tmp_path, one_collection("it", takes="first"), at(2, 9))
    made.send()
    first = str(made.client.explain("it"))
    made.restart()
    second = str(made.client.explain("it"))
    made.wire.offline()
    made.run_for(86_400)
    made.send()

    assert "delivered: 1, the collection's last 2026-12-03" in first
    assert second == first
    assert "delivered: 1, the collection's last 2026-12-03" in str(made.client.explain("it"))
    assert reason(made, "it").startswith("server, 2026-12-04: ")
    made.restart()
    assert "cannot be reached (offline)" in reason(made, "it")


def test_a_reply_is_written_once_a_day(tmp_path: Path) -> None:
    """Of many reports, one note, as long as nothing changes."""
    made = Device(tmp_path, one_collection("it", unit="event", per_day=40))
    series = made.collections["it"].fingerprint
    with patch.object(type(made.state), "keep", autospec=True) as keep:
        for _ in range(40):
            made.send()
    kept = [each for each in keep.call_args_list if each.args[1] == f"reply {series}"]

    assert len(made.wire.counted) == 40
    assert len(kept) == 1
    assert len(kept[0].args[2]) < 100


def test_a_state_that_cannot_keep_a_reply_costs_no_report(tmp_path: Path) -> None:
    made = Device(tmp_path, one_collection("it"))
    with patch.object(type(made.state), "keep", side_effect=StateError("full")):
        made.send()

    assert [each.status for each in made.state.sent(made.key)] == ["delivered"]


def test_forgetting_forgets_the_days_of_deliveries(tmp_path: Path) -> None:
    """Of a device's one person; of many persons they are nobody's."""
    one = Device(tmp_path / "one", one_collection("it"))
    one.send()
    one.client.forget()
    many = Device(tmp_path / "many", one_collection("it"), persons=True)
    ann = many.client.person("ann")
    ann.consent(True)
    ann.record("it", True)
    many.client.flush()
    ann.forget()
    series = one.collections["it"].fingerprint

    assert not one.state.note(f"reply {series}")
    assert many.state.note(f"reply {series}") == "counted|2026-12-01|2026-12-01"


def test_the_doctor_knows_what_a_probe_does_not_hear(tmp_path: Path) -> None:
    """That a definition was never pushed, which only the reply to a report of it says."""
    definitions = tmp_path / "collections.toml"
    definitions.write_text(FILE.replace("epsilon = 1\n", "epsilon = 2\n"), encoding="utf-8")
    with deployment(tmp_path, FILE) as served:
        device(tmp_path / "state", at_server(served), OTHER).stop()
    settings = read_settings({}, collections=str(definitions), state=str(tmp_path / "state"))
    results = {each.subject: each for each in examine(settings, NOW.timestamp)}

    assert not results["delivery, theme"].ok
    assert "on 2026-12-03 the aggregator has no such definition" in str(results["delivery, theme"])
    assert "delivery, opened" not in results


def test_a_cap_that_is_spent_is_named(tmp_path: Path) -> None:
    """forget() frees the slot, not the budget of the day."""
    made = Device(tmp_path, one_collection("it", epsilon=2))
    made.send()
    made.client.forget()
    made.client.consent(True)
    made.send()

    (found,) = made.client.explain("it").reasons
    assert found.startswith("cap: epsilon 2 of 2 is spent in this day")
    assert found.endswith("until 2026-12-02")


# -- the log ---------------------------------------------------------------------------------------


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if ", delivery" in each.getMessage()]


def test_trouble_and_its_end_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Once a kind, however many reports and collections it meets."""
    made = Device(tmp_path, file(a={"unit": "event"}, b={"unit": "event"}))
    for why in ("503", "503", "ConnectionError", "503"):
        made.wire.mood = lambda why=why: Later(why)
        made.send()
    during = lines(caplog)
    made.wire.online()
    made.client.flush()

    assert [line.partition(": ")[2][:30] for line in during] == [
        "the aggregator answers 503: it",
        "the aggregator cannot be reach",
    ]
    assert lines(caplog)[2:] == ["veilcount, delivery: the aggregator takes reports again"]


def test_trouble_that_comes_and_goes_is_quiet_for_an_hour(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of which one host in two is down says nothing new with each reply."""
    passed = [0.0]
    monkeypatch.setattr("veilcount_client.delivery.replies.time.monotonic", lambda: passed[0])
    made = Device(tmp_path, one_collection("it", unit="event", per_day=40))

    def flap() -> list[str]:
        caplog.clear()
        for mood in (lambda: Later("503"), lambda: None) * 5:
            made.wire.mood = mood
            made.send()
        return lines(caplog)

    assert len(flap()) == 2
    assert flap() == []
    passed[0] = replies.QUIET + 1
    assert len(flap()) == 2


def test_a_refused_collection_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The others are counted, which ends nothing of its trouble."""
    collections = file(known={"unit": "event"}, other={"unit": "event"})
    wire = Wire(clock_at(at(0, 9)))
    wire.verdict = lambda report: (
        Verdict.UNKNOWN_COLLECTION
        if report.fingerprint == collections["other"].fingerprint
        else None
    )
    made = Device(tmp_path, collections, wire.clock, wire)
    made.send("other")
    made.send("known")
    made.client.flush()
    (warning,) = lines(caplog)
    wire.verdict = lambda _: None
    made.client.flush()

    assert warning.startswith("veilcount, delivery [other]: the aggregator has no such definition")
    assert len(lines(caplog)) == 2


def test_a_first_production_run_is_quiet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = device(tmp_path, RecordingTransport())

    assert caplog.text == ""
    assert made.client.explain("theme").delivered == 1
