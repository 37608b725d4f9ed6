"""Consent: nothing is recorded or sent without it, and a withdrawal wipes at once and for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilcount_client.state.losses import Loss

from ..device_fixtures import Device, at, file, one_collection

TRUE_VALUE: dict[str, object] = {"model": "central", "budget": 1}


def test_nothing_is_recorded_before_consent(tmp_path: Path) -> None:
    """What was recorded before is counted, and not reported once consent is given."""
    device = Device(tmp_path, one_collection("it"), consent=None)
    device.send()
    device.client.consent(True)
    device.run_until(at(1))

    assert device.wire.attempts == []
    assert device.losses() == {Loss.NO_CONSENT: 1}


def test_losses_are_not_sent_without_consent(tmp_path: Path) -> None:
    device = Device(tmp_path, one_collection("it"), consent=None)
    device.state.lose({(Loss.CORRUPT, ""): 3})
    device.run_until(at(3))
    before = list(device.wire.attempts)
    device.client.consent(True)
    device.work()
    device.run_until(at(6))

    assert before == []
    assert len(device.wire.attempts) == 1


def test_a_withdrawal_wipes_at_once_and_for_good(tmp_path: Path) -> None:
    """After a new consent nothing is drawn again."""
    collections = file(first={}, last={"takes": "last"}, true=TRUE_VALUE)
    device = Device(tmp_path, collections, at(0, 0.1), person="answers", trust_curator=True)
    device.record()
    device.client.consent(False)
    after = device.stored
    device.record_at(at(0, 3), "first")
    device.client.consent(True)
    for name in ("first", "true"):
        device.record_at(at(0, 4), name, value=False)
    device.run_until(at(1))

    assert after == []
    assert device.wire.attempts == []
    assert device.spent("first") == 10**6


@pytest.mark.parametrize("keys", [{}, TRUE_VALUE], ids=["reports", "true values"])
def test_a_withdrawal_stops_what_is_about_to_leave(tmp_path: Path, keys: dict[str, object]) -> None:
    """Withdrawn while the first of several bodies is on its way, the others stay."""
    collections = file(**{f"c{number}": keys for number in range(5)})
    device = Device(tmp_path, collections, trust_curator=bool(keys))
    device.wire.during = lambda: device.client.consent(False)
    device.send()

    assert len(device.wire.attempts) == 1


def test_a_new_collection_waits_for_consent(tmp_path: Path) -> None:
    """Consent covers what the definitions held when it was given."""
    device = Device(tmp_path, file(a={}))
    device.stop()
    device.options = {"ceiling": 60, "daily_ceiling": 2}
    device.start(file(a={}, b={}))
    unasked = device.client.unasked()
    device.send("b")
    before = len(device.wire.reports)
    device.client.consent(True)
    device.send("b")

    assert (unasked, device.client.unasked()) == (["b"], [])
    assert (before, len(device.wire.reports)) == (0, 1)
