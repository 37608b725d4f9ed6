"""What the aggregator has closed: of that row nothing is drawn, charged or sent any more.

Of that row alone: a server that closes one pseudonym must not see another fall silent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.aggregator.api.deployment_fixtures import NOW as TODAY
from tests.aggregator.api.deployment_fixtures import deployment
from veilcount_aggregator.catalog.definitions import close_collection
from veilcount_client.diagnostics.doctor import examine
from veilcount_client.diagnostics.problems import CLOSED
from veilcount_client.settings import read_settings
from veilcount_client.state import SentReport
from veilcount_client.state.losses import Loss
from veilcount_client.testing import SettableClock, WsgiTransport
from veilcount_shared import Collection, SystemRandomSource
from veilcount_shared.verdict import Verdict

from ..device_fixtures import (
    Device,
    Wire,
    at,
    clock_at,
    file,
    one_collection,
    pass_time,
    secrets,
    set_clock,
)

EVENT: dict[str, object] = {"unit": "event", "per_day": 2, "linkage": "collection"}
FILE = """
app = "acme"
[it]
question = "?"
boolean = true
epsilon = 1
unit = "event"
per_day = 2
linkage = "collection"
from = 2026-12-01
until = 2026-12-31
"""


class ClosingDevice:
    """A device at a server that takes no more for some collections."""

    def __init__(
        self, place: Path, collections: dict[str, Collection], *shut: str, **options: Any
    ) -> None:
        """Be in use from the second morning of the campaign on."""
        self.clock = clock_at(at(1, 9))
        self.wire = Wire(self.clock)
        self.shut = {collections[name].fingerprint for name in shut or collections}
        self.wire.verdict = lambda report: (
            Verdict.CLOSED if report.fingerprint in self.shut else None
        )
        with secrets("closing"):
            self.device = Device(place, collections, self.clock, self.wire, **options)

    def record(self, *names: str) -> None:
        """Record something, and have everything sent that may leave."""
        for name in names:
            self.device.client.record(name, True)
        self.device.client.flush()

    def until(self, day: float) -> None:
        """Let time pass."""
        pass_time(self.clock, at(day), self.device)

    def sent(self, name: str) -> int:
        """Return how many reports of a collection left the device."""
        series = self.device.collections[name].fingerprint
        batches = [each.batch for each in self.wire.attempts]
        return sum(each.fingerprint == series for batch in batches for each in batch.reports)

    def spent(self, name: str) -> int:
        """Return what a collection has cost the person."""
        spent = self.device.worker.state.spent(self.device.client._session.key(""))
        return spent[name].life if name in spent else 0

    def lost(self, name: str) -> dict[str, int]:
        """Return what was lost of a collection."""
        return dict(self.device.client.explain(name).losses)

    def stored(self) -> list[SentReport]:
        """Return the person's reports."""
        return self.device.worker.state.sent(self.device.client._session.key(""))


# -- what is no longer done ------------------------------------------------------------------------


def test_a_record_of_a_closed_collection_costs_nothing_and_goes_nowhere(tmp_path: Path) -> None:
    """The first report hears the word; from then on each record is a loss that says so."""
    house = ClosingDevice(tmp_path, one_collection("it", **EVENT))
    house.record("it")
    heard = house.sent("it"), house.spent("it")
    for day in (2, 3, 4):
        house.until(day)
        house.record("it")

    assert heard == (1, 10**6)
    assert (house.sent("it"), house.spent("it")) == heard
    assert house.lost("it") == {"closed": 4}


def test_other_collections_go_on(tmp_path: Path) -> None:
    """A verdict is about one row."""
    house = ClosingDevice(tmp_path, file(it=EVENT, other=EVENT), "it")
    for day in (2, 3):
        house.record("it", "other")
        house.until(day)

    assert (house.sent("it"), house.sent("other")) == (1, 2)
    assert house.lost("other") == {}


def test_absences_of_a_closed_collection_are_not_drawn(tmp_path: Path) -> None:
    """Hidden presence ends with the first report that heard the word, recorded or not."""
    house = ClosingDevice(tmp_path, one_collection("it", presence="hidden", linkage="collection"))
    house.until(9)

    assert (house.sent("it"), house.spent("it")) == (1, 10**6)
    assert house.lost("it") == {"closed": 1}


def test_what_is_held_is_dropped_and_not_drawn(tmp_path: Path) -> None:
    """A value that waits for its instant when its row is closed is not drawn at it."""
    house = ClosingDevice(tmp_path, one_collection("it", takes="last", linkage="collection"))
    house.device.client.record("it", True)
    house.device.restart()  # the end of a process draws what it holds
    set_clock(house.clock, at(2, 0.1))
    house.record("it")
    held = len(house.device.worker.recorder._held)
    house.until(4)

    assert (house.sent("it"), house.spent("it")) == (1, 10**6)
    assert (held, len(house.device.worker.recorder._held)) == (1, 0)
    assert house.lost("it") == {"closed": 2}


def test_what_waits_is_dropped_unsent(tmp_path: Path) -> None:
    """Of a row's two reports the first hears the word, and the other does not leave."""
    house = ClosingDevice(tmp_path, one_collection("it", **EVENT))
    for _ in range(2):
        house.device.client.record("it", True)
    house.until(7)

    assert house.sent("it") == 1
    assert [each.status for each in house.stored()] == ["closed"] * 2
    assert house.lost("it") == {"closed": 2}


@pytest.mark.parametrize("linkage", ["period", "none"])
def test_no_other_row_of_the_collection_falls_silent(tmp_path: Path, linkage: str) -> None:
    """Each period, and each report that nothing links, is sent and hears it for itself."""
    house = ClosingDevice(tmp_path, one_collection("it", unit="event", per_day=2, linkage=linkage))
    rows = []
    for day in (2, 3, 4):
        house.until(day)
        house.record("it")
        house.record("it")
        rows.append(house.sent("it"))

    assert rows == ([1, 2, 3] if linkage == "period" else [2, 4, 6])


def test_no_other_persons_row_falls_silent(tmp_path: Path) -> None:
    """Whoever closes the row of one person hears of the next one all the same."""
    house = ClosingDevice(tmp_path, one_collection("it", **EVENT), persons=True, consent=None)
    for person in range(10):
        house.device.client.person(person).consent(True)
        house.device.client.person(person).record("it", True)
        house.device.client.flush()

    assert house.sent("it") == 10


def test_true_values_that_wait_are_dropped(tmp_path: Path) -> None:
    """They leave memory, and are no longer among those that a crash would lose."""
    central = {"model": "central", "budget": 1, "unit": "event", "per_day": 3}
    house = ClosingDevice(
        tmp_path, one_collection("it", linkage="collection", **central), trust_curator=True
    )
    house.record("it")
    house.until(1.5)
    for _ in range(3):
        house.device.client.record("it", True)
    house.record("it")

    assert house.sent("it") == 1
    assert house.device.worker.recorder.outbox.next_due() is None
    assert house.lost("it") == {"closed": 5}
    assert not house.device.worker.state.losses().get((Loss.CRASHED, "it"))


def test_development_closes_no_row(tmp_path: Path) -> None:
    """Each record is as if of another person, with a row of its own."""
    house = ClosingDevice(tmp_path, one_collection("it"), development=True)
    for _ in range(3):
        house.record("it")

    assert house.sent("it") == 3
    assert house.device.client.explain("it").reasons == (f"closed: {CLOSED}",)


# -- who knows -------------------------------------------------------------------------------------


def test_the_next_process_knows(tmp_path: Path) -> None:
    """The word lasts as long as the row: a forgotten person's next one hears it for itself."""
    house = ClosingDevice(tmp_path, one_collection("it", **EVENT))
    house.record("it")
    house.device.crash()
    house.device.start()
    house.record("it")
    house.device.client.consent(False)
    house.device.client.consent(True)
    house.record("it")
    before = house.sent("it")
    house.device.client.forget()
    house.device.client.consent(True)
    house.record("it")
    house.device.restart()
    house.record("it")

    assert (before, house.sent("it")) == (1, 2)


def test_another_form_of_the_collection_is_not_closed(tmp_path: Path) -> None:
    """It is another series: its reports leave."""
    house = ClosingDevice(tmp_path, one_collection("it", **EVENT))
    house.record("it")
    house.until(2)
    house.device.stop()
    house.device.start(one_collection("it", **EVENT | {"epsilon": 0.5}))
    house.device.client.consent(True)
    house.record("it")

    assert house.sent("it") == 1
    assert len(house.wire.counted) == 1


def test_only_a_reply_that_was_heard_closes(tmp_path: Path) -> None:
    """Counted as closed there, the reply lost: the same report goes again, and hears it then."""
    house = ClosingDevice(tmp_path, one_collection("it", **EVENT))
    house.wire.loses_reply = True
    house.record("it")
    before = house.device.client.explain("it").reasons
    house.wire.loses_reply = False
    house.until(2)

    assert not any("closed" in each for each in before)
    assert house.device.client.explain("it").reasons == (f"closed: {CLOSED}",)


def test_an_aggregator_closes_and_its_devices_fall_silent(tmp_path: Path) -> None:
    """The real endpoints: counted, closed by its operator, answered with the word, and quiet."""
    clock = SettableClock(TODAY)
    with deployment(tmp_path, FILE) as aggregator:
        wire = WsgiTransport(aggregator.app)
        device = Device(
            tmp_path / "state",
            one_collection("it", **EVENT),
            clock,
            wire,
            randomness=SystemRandomSource(),
        )
        device.client.record("it", True)
        counted = device.client.flush()
        close_collection(aggregator.aggregator.store, "it", TODAY, "operator")
        aggregator.aggregator.watch.refresh()
        device.client.record("it", True)
        refused = device.client.flush()
        device.client.record("it", True)
        device.client.flush()

        assert (counted, refused) == (True, False)
        assert device.client.explain("it").losses == {"closed": 2}
        assert aggregator.counted("it") == 1


# -- what is told ----------------------------------------------------------------------------------


def test_the_receipt_states_that_a_collection_is_closed(tmp_path: Path) -> None:
    """To the person, in words and as JSON."""
    house = ClosingDevice(tmp_path, file(it=EVENT, other=EVENT), "it")
    house.record("it", "other")
    receipt = house.device.client.receipt()

    assert [entry.closed for entry in receipt.entries] == [True, False]
    assert receipt.text().count("closed: no more reports are accepted") == 1
    assert receipt.json()["collections"][0]["closed"] is True


@pytest.mark.parametrize("consent", [None, False])
def test_consent_is_explained_before_a_closing(tmp_path: Path, consent: bool | None) -> None:  # noqa: FBT001
    """What would have to be mended first comes first."""
    house = ClosingDevice(tmp_path, one_collection("it", **EVENT))
    house.record("it")
    house.device.client.forget()
    if consent is not None:
        house.device.client.consent(consent)
    first, second = house.device.client.explain("it").reasons

    assert first.startswith("consent: ")
    assert second.startswith("closed: ")


def test_the_doctor_names_a_closed_collection(tmp_path: Path) -> None:
    """And says what to do about it."""
    (tmp_path / "collections.toml").write_text(FILE, encoding="utf-8")
    house = ClosingDevice(tmp_path / "state", one_collection("it", **EVENT))
    house.record("it")
    settings = read_settings(
        {}, collections=str(tmp_path / "collections.toml"), state=str(tmp_path / "state")
    )
    told = {each.subject: each for each in examine(settings, house.clock.now)}["closed, it"]

    assert not told.ok
    assert "leave it out" in told.message
