"""Consent: nothing is recorded or sent without it, and a withdrawal wipes at once and for good."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from veilcount_client import Client, NotAnAnswer
from veilcount_client import consent as consent_module
from veilcount_client.session import Session
from veilcount_client.state.losses import Loss
from veilcount_shared import SystemRandomSource

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


def test_a_withdrawal_stops_what_is_left_of_a_question_that_is_gone(tmp_path: Path) -> None:
    """A report of an earlier release of the app is on its way when the person withdraws."""
    device = Device(tmp_path, file(a={}, b={}))
    device.record()
    device.stop()
    device.start(file(c={}))
    device.wire.during = lambda: device.client.consent(False)
    device.client.flush()

    assert len(device.wire.attempts) == 1


# -- a decision is True or False -------------------------------------------------------------------

NO_DECISIONS = ["no", "yes", "", 0, 1, None, [], np.True_, object()]


@pytest.mark.parametrize("answer", NO_DECISIONS, ids=lambda each: type(each).__name__)
def test_anything_but_true_and_false_stores_nothing(
    tmp_path: Path, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A form that delivers "no" once stored a yes, and the report left."""
    device = Device(tmp_path, one_collection("it"), consent=None, randomness=SystemRandomSource())
    with caplog.at_level(logging.WARNING, "veilcount"):
        for _ in range(2):
            device.client.consent(answer)
        device.record()
        device.run_until(at(1))

    assert device.client.consented is None
    assert device.wire.attempts == []
    assert caplog.text.count("consent: give True or False, not a") == 1


@pytest.mark.parametrize("options", [{"strict": True}, {"development": True}, {}])
def test_a_wrong_decision_raises_for_a_developer(tmp_path: Path, options: dict[str, Any]) -> None:
    """In `strict`, in development, and in tests, whose randomness is seeded."""
    device = Device(tmp_path, one_collection("it"), consent=None, **options)

    with pytest.raises(NotAnAnswer, match=r'not a str; of a form: answer == "yes"'):
        device.client.consent("no")  # type: ignore[arg-type] # the mistake
    assert device.client.consented is None


def test_a_decision_by_truth_is_found(tmp_path: Path) -> None:
    """The planted variant: whatever is true is a yes, so "no" is one."""
    device = Device(tmp_path, one_collection("it"), consent=None)
    with patch.object(consent_module, "check_answer", bool):
        device.client.consent("no")  # type: ignore[arg-type] # the mistake

    assert device.client.consented is True


# -- what is asked ---------------------------------------------------------------------------------

RAISED = {"ceiling": 999, "daily_ceiling": 99}


def updated(device: Device, **tables: dict[str, object]) -> Client:
    """Start a later release of the app, with other questions."""
    device.stop()
    device.options |= RAISED
    device.start(file(**tables))
    return device.client


def test_the_question_is_put_while_undecided_and_never_again_after_a_no(tmp_path: Path) -> None:
    device = Device(tmp_path, file(a={}), consent=None)
    undecided = device.client.must_ask
    device.client.consent(False, only="new")  # while undecided a plain answer
    after_no = device.client.must_ask
    client = updated(device, a={}, b={})

    assert (undecided, after_no) == (True, False)
    assert client.consented is False
    assert (client.must_ask, client.unasked()) == (False, [])
    client.consent(True, only="new")  # nothing is new to who said no to everything
    assert client.consented is False


def test_after_a_yes_the_question_is_put_when_something_is_added(tmp_path: Path) -> None:
    """`if client.consented is None: ask` once lost all that a release added, without a word.

    Consent covers what the definitions held when it was given.
    """
    device = Device(tmp_path, file(a={}))
    client = updated(device, a={}, b={})
    question = client.must_ask, client.unasked()
    device.send("b")
    before = len(device.wire.counted)
    client.consent(True, only="new")
    device.send()

    assert question == (True, ["b"])
    assert (client.must_ask, client.unasked()) == (False, [])
    assert (before, len(device.wire.counted)) == (0, 2)


def test_a_no_to_what_is_new_keeps_the_rest_and_is_kept_by_name(tmp_path: Path) -> None:
    """A changed or renamed form is not asked again; only a yes to its name lifts it."""
    device = Device(tmp_path, file(a={}))
    device.record("a")
    updated(device, a={}, b={}).consent(False, only="new")
    device.record("a", "b")
    device.run_until(at(1))
    kept = {NAMES_OF[each.fingerprint] for each in device.wire.counted.values()}
    client = updated(device, a={}, c={"replaces": "b", "epsilon": 2})
    question = client.must_ask, client.unasked()
    client.consent(True)
    covers = client.unasked(), covered(device)
    client.consent(True, only=["c"])

    assert kept == {"a"}
    assert question == (False, [])
    assert covers == ([], {"a"})
    assert covered(device) == {"a", "c"}


NAMES_OF = {each.fingerprint: name for name, each in file(a={}, b={}).items()}


def covered(device: Device) -> set[str]:
    series = device.person.covered
    return {name for name, each in device.collections.items() if each.fingerprint in series}


def test_a_no_to_a_named_question_wipes_what_waits_of_it_alone(tmp_path: Path) -> None:
    device = Device(tmp_path, file(a={}, b={}, c={"takes": "last"}))
    device.record()
    device.client.consent(False, only=["b", "c"])
    device.run_until(at(1))

    assert [each.fingerprint for each in device.wire.counted.values()] == [
        device.collections["a"].fingerprint
    ]
    assert (device.client.consented, device.client.must_ask) == (True, False)
    assert "ask again" not in str(device.client.explain("b"))


def test_a_yes_to_a_name_after_a_no_leaves_the_others_declined(tmp_path: Path) -> None:
    device = Device(tmp_path, file(a={}, b={}), consent=False)
    device.client.consent(True, only=["a"])

    assert covered(device) == {"a"}
    assert not device.client.must_ask


@pytest.mark.parametrize("only", ["a", ["x"], [], [1], 1, True, object()])
def test_a_decision_about_no_question_changes_nothing(tmp_path: Path, only: Any) -> None:
    """It raises for a developer, and is no crash of the app."""
    device = Device(tmp_path, file(a={}), consent=None)
    with patch.object(Session, "is_test", False):
        device.client.consent(True, only=only)

    with pytest.raises(NotAnAnswer, match="only"):
        device.client.consent(True, only=only)
    assert device.client.consented is None


def test_there_is_no_question_under_a_kill_switch_or_without_a_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An opt-out was once asked at each of three starts, on a read-only home too."""
    (tmp_path / "a file").touch()
    homeless = Device(tmp_path / "a file", one_collection("it"), consent=None)
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    silenced = Device(tmp_path / "home", one_collection("it"), consent=None)

    assert [homeless.client.must_ask, silenced.client.must_ask] == [False, False]


def test_a_record_that_is_dropped_for_want_of_consent_is_logged_once_a_collection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of what was not asked or came later; who said no is no mistake of the app's."""
    with caplog.at_level(logging.INFO, "veilcount"):
        device = Device(tmp_path, file(a={}), consent=None)
        for _ in range(3):
            device.record()
        device.client.consent(True)
        client = updated(device, a={}, b={})
        for _ in range(3):
            device.record("b")
        client.consent(False)
        device.record()

    lines = [each for each in caplog.messages if "what is recorded is dropped" in each]
    kinds = [line.split(":")[0] for line in lines]
    assert kinds == ["veilcount, consent a", "veilcount, consent b"]
    assert all("client.must_ask" in line for line in lines)
