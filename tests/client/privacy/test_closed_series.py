"""What the aggregator has closed: of that row nothing is drawn, charged or sent any more.

Of that row alone: a server that closes one pseudonym must not see another fall silent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.records.definitions import close_collection
from veilcount_client.diagnostics.doctor import examine
from veilcount_client.diagnostics.problems import CLOSED
from veilcount_client.settings import read_settings
from veilcount_client.state.losses import Loss
from veilcount_client.testing import SettableClock, WsgiTransport
from veilcount_shared import Collection, SystemRandomSource
from veilcount_shared.verdict import Verdict

from ...aggregator.web.api.deployment_fixtures import NOW as TODAY
from ...aggregator.web.api.deployment_fixtures import deployment
from ..device_fixtures import (
    HOUR,
    Device,
    at,
    definitions_text,
    file,
    minutes_of,
    one_collection,
    set_clock,
)

LINKED = {"linkage": "collection"}
EVENT: dict[str, object] = {"unit": "event", "per_day": 2, **LINKED}
FILE = definitions_text(
    it={"question": "?", "unit": "event", "per_day": 2, "linkage": "collection"}
)


class ClosingDevice(Device):
    """A device at a server that has closed some collections, by default all."""

    def __init__(
        self, place: Path, collections: dict[str, Collection], *closed: str, **options: Any
    ) -> None:
        """Be in use from the second morning of the campaign on."""
        super().__init__(place, collections, at(1, 9), person="closing", **options)
        names = {collections[name].fingerprint for name in closed or collections}
        self.wire.verdict = lambda report: Verdict.CLOSED if report.fingerprint in names else None

    def sent(self, name: str) -> int:
        """Return how many reports of a collection left the device."""
        series = self.collections[name].fingerprint
        batches = [each.batch for each in self.wire.attempts]
        return sum(each.fingerprint == series for batch in batches for each in batch.reports)


# -- what is no longer done ------------------------------------------------------------------------


def test_a_closed_collection_costs_nothing_and_sends_nothing(tmp_path: Path) -> None:
    """Of two reports the first hears the word; all others, and later records, are losses.

    Another collection goes on: a verdict is about one row.
    """
    device = ClosingDevice(tmp_path, file(it=EVENT, other=EVENT), "it")
    for _ in range(2):
        device.client.record("it", True)
    device.run_until(at(2))
    heard = device.sent("it"), device.spent("it")
    for day in (3, 4, 5):
        device.send("it", "other")
        device.run_until(at(day))

    assert heard == (device.sent("it"), device.spent("it")) == (1, 2 * 10**6)
    statuses = [each.status for each in device.state.sent(device.key)]
    assert sorted(statuses) == ["closed"] * 2 + ["delivered"] * 3
    assert device.losses("it") == {"closed": 5}
    assert (device.sent("other"), device.losses("other")) == (3, {})


def test_absences_of_a_closed_collection_are_not_drawn(tmp_path: Path) -> None:
    """Hidden presence ends with the first report that heard the word, recorded or not."""
    with minutes_of(HOUR):
        device = ClosingDevice(tmp_path, one_collection("it", presence="hidden", **LINKED))
        device.run_until(at(9))

    assert (device.sent("it"), device.spent("it")) == (1, 10**6)
    assert device.losses("it") == {"closed": 1}


def test_what_is_held_is_dropped_and_not_drawn(tmp_path: Path) -> None:
    """A value that waits for its instant when its row is closed is not drawn at it."""
    device = ClosingDevice(tmp_path, one_collection("it", takes="last", **LINKED))
    device.client.record("it", True)
    device.restart()  # the end of a process draws what it holds
    set_clock(device.clock, at(2, 0.1))
    device.send("it")
    held = len(device.worker.recorder._held)
    device.run_until(at(4))

    assert (device.sent("it"), device.spent("it")) == (1, 10**6)
    assert (held, len(device.worker.recorder._held)) == (1, 0)
    assert device.losses("it") == {"closed": 2}


@pytest.mark.parametrize("linkage", ["period", "none"])
def test_no_other_row_of_the_collection_falls_silent(tmp_path: Path, linkage: str) -> None:
    """Each period, and each report that nothing links, is sent and hears it for itself."""
    device = ClosingDevice(tmp_path, one_collection("it", **EVENT | {"linkage": linkage}))
    rows = []
    for day in (2, 3, 4):
        device.run_until(at(day))
        device.send("it")
        device.send("it")
        rows.append(device.sent("it"))

    assert rows == ([1, 2, 3] if linkage == "period" else [2, 4, 6])


def test_no_other_persons_row_falls_silent(tmp_path: Path) -> None:
    device = ClosingDevice(tmp_path, one_collection("it", **EVENT), persons=True, consent=None)
    for person in range(4):
        device.client.person(person).consent(True)
        device.client.person(person).record("it", True)
        device.client.flush()

    assert device.sent("it") == 4


def test_true_values_that_wait_are_dropped(tmp_path: Path) -> None:
    """They leave memory, and are no longer among those that a crash would lose."""
    keys = {"model": "central", "budget": 1, "unit": "event", "per_day": 3, **LINKED}
    device = ClosingDevice(tmp_path, one_collection("it", **keys), trust_curator=True)
    device.send("it")
    device.run_until(at(1.5))
    for _ in range(3):
        device.client.record("it", True)
    device.send("it")

    assert device.sent("it") == 1
    assert not device.worker.uploader.outboxes.has_true_values
    assert device.losses("it") == {"closed": 5}
    assert not device.state.losses().get((Loss.CRASHED, "it"))


def test_development_closes_no_row(tmp_path: Path) -> None:
    device = ClosingDevice(tmp_path, one_collection("it"), development=True)
    for _ in range(3):
        device.send("it")

    assert device.sent("it") == 3
    assert device.client.explain("it").reasons == (f"closed: {CLOSED}",)


# -- who knows -------------------------------------------------------------------------------------


def test_the_next_process_knows(tmp_path: Path) -> None:
    """The word lasts as long as the row: a forgotten person's next one hears it for itself."""
    device = ClosingDevice(tmp_path, one_collection("it", **EVENT))
    device.send("it")
    device.crash()
    device.start()
    device.send("it")
    device.client.consent(False)
    device.client.consent(True)
    device.send("it")
    before = device.sent("it")
    device.client.forget()
    device.client.consent(True)
    device.send("it")
    device.restart()
    device.send("it")

    assert (before, device.sent("it")) == (1, 2)


def test_an_aggregator_closes_and_its_devices_fall_silent(tmp_path: Path) -> None:
    """The real endpoints: counted, closed by its operator, answered with the word, and quiet."""
    with deployment(tmp_path, FILE) as aggregator:
        device = Device(
            tmp_path / "state",
            one_collection("it", **EVENT),
            SettableClock(TODAY),
            WsgiTransport(aggregator.app),
            randomness=SystemRandomSource(),
        )
        device.client.record("it", True)
        counted = device.client.flush()
        close_collection(aggregator.aggregator.store, "it", TODAY, "operator")
        aggregator.aggregator.catalog_cache.refresh()
        device.client.record("it", True)
        refused = device.client.flush()
        device.client.record("it", True)
        device.client.flush()

        assert (counted, refused) == (True, False)
        assert device.client.explain("it").losses == {"closed": 2}
        assert aggregator.counted("it") == 1


def test_the_receipt_and_the_doctor_name_a_closed_collection(tmp_path: Path) -> None:
    """To the person, in words and as JSON; to the operator, with what to do about it."""
    definitions, state = tmp_path / "collections.toml", tmp_path / "state"
    definitions.write_text(FILE, encoding="utf-8")
    device = ClosingDevice(state, file(it=EVENT, other=EVENT), "it")
    device.send("it", "other")
    receipt = device.client.receipt()
    settings = read_settings({}, collections=str(definitions), state=str(state))
    result = {each.subject: each for each in examine(settings, device.clock.now)}["closed, it"]
    device.client.consent(False)
    withdrawn, closed = device.client.explain("it").reasons  # what is to be mended first

    assert [entry.closed for entry in receipt.entries] == [True, False]
    assert receipt.text().count("closed: no more reports are accepted") == 1
    assert receipt.json()["collections"][0]["closed"] is True
    assert withdrawn.startswith("consent: ")
    assert closed.startswith("closed: ")
    assert not result.ok
    assert "leave it out" in result.message
