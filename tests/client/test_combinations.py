"""Consent, ids, moves and hidden presence in combination: what an attack on them once found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import redis as redis_client

from veilcount_client.integrations.pages import PrivacyPages
from veilcount_client.session import Session
from veilcount_client.state import ConsentDecision, HeldValue, Resumption, StateError, file_checks
from veilcount_client.state.factory import open_state
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.state.sqlite_database import FILE
from veilcount_shared.verdict import Verdict

from .device_fixtures import HOUR, Device, at, file, one_collection
from .state.conftest import *  # noqa: F403 - the fixtures of both engines
from .tokens.signing_issuer import SigningIssuer

LAST = {"takes": "last", "linkage": "collection"}


def in_production() -> Any:
    """Treat misuse as an app with real randomness does: it is logged, and nothing is raised."""
    return patch.object(Session, "is_test", False)


def second(device: Device) -> Device:
    """Start another process with the state of a device, on the same clock and wire."""
    return Device(
        device.place, device.collections, device.clock, device.wire, consent=None, **device.options
    )


# -- a No that the state cannot take -----------------------------------------------------------


def test_a_no_that_cannot_be_stored_holds_and_nothing_leaves_before_it_is(tmp_path: Path) -> None:
    device = Device(tmp_path, file(a={}, b={}))
    device.record("a")
    failing = patch.object(type(device.state), "consent", side_effect=StateError("disk full"))
    with in_production(), failing:
        device.client.consent(False)
        device.record("b")
        device.run_until(at(1))
        unstored = device.client.consented, list(device.wire.attempts)
    device.run_until(at(2))
    device.stop()
    device.start()

    assert unstored == (False, [])
    assert device.client.consented is False
    assert device.wire.attempts == []


# -- a decision in another process does not reach what a process holds --------------------------


@pytest.mark.parametrize("name", [["a"], None], ids=["by name", "to all, and yes again"])
def test_a_no_in_one_process_wipes_what_another_holds_in_memory(tmp_path: Path, name: Any) -> None:
    tables: Any = {"a": LAST, "b": LAST}
    worker = Device(tmp_path, file(**tables), persons=True)
    worker.client.person(1).consent(True)
    other = second(worker)
    worker.client.person(1).record("a", True)
    worker.work()
    other.client.person(1).consent(False, only=name)
    if name is None:
        other.client.person(1).consent(True)
    worker.run_until(at(2))

    assert worker.wire.reports == []


def test_what_was_recorded_before_forget_leaves_in_no_process(tmp_path: Path) -> None:
    """It even leaves under the pseudonym that forget() was to end."""
    worker = Device(tmp_path, file(a=LAST), persons=True)
    worker.client.person(1).consent(True)
    other = second(worker)
    worker.client.person(1).record("a", True)
    worker.work()
    old = {row.pseudonym for row in worker.client.person(1).rows()}
    other.client.person(1).forget()
    other.client.person(1).consent(True)
    worker.run_until(at(2))

    assert (old, worker.wire.reports) == (set(), [])


def test_no_engine_holds_or_commits_what_the_consent_does_not_cover(state: Any) -> None:
    key, series, other = b"k" * 16, "11" * 16, "22" * 16
    covered = {each: Resumption() for each in (series, other)}
    state.consent(key, ConsentDecision(1.0, True, covered=covered))
    state.consent(
        key, ConsentDecision(2.0, True, withdrawn=frozenset({series}), declined=frozenset({"a"}))
    )

    assert not state.hold(None, HeldValue(key, series, 0, 0, "true", 1.0, 2.0))


# -- a No by name, and earlier forms of the question --------------------------------------------


@pytest.mark.parametrize(
    ("later", "options"),
    [({"epsilon": 0.5}, {}), ({}, {"ceiling": 30})],
    ids=["changed", "refused"],
)
def test_a_no_by_name_stops_what_is_on_its_way_of_an_earlier_form(
    tmp_path: Path, later: dict[str, object], options: dict[str, object]
) -> None:
    """Of a question that is refused now as well, and when the earlier form comes back."""
    old = file(a={}, b={})
    device = Device(tmp_path, old)
    original = dict(device.options)
    device.client.record("b", True)
    device.work()
    device.stop()
    device.options |= options
    device.start(file(a={}, b=later))
    with in_production():
        device.client.consent(False, only=["b"])
    device.run_until(at(2))
    device.stop()
    device.options = original
    device.start(old)
    device.record("b")
    device.run_until(at(4))

    assert device.wire.reports == []


def test_what_was_recorded_before_the_yes_is_no_answer(tmp_path: Path) -> None:
    device = Device(tmp_path, one_collection("it"), persons=True)
    person = device.client.person(1)
    person.record("it", True)  # queued
    device.clock._now += 0.01
    person.consent(True)
    device.work()

    assert device.state.sent(device.client._session.consents.key("id 1")) == []


def test_a_yes_on_the_page_is_stored_although_tokens_have_no_issuer(tmp_path: Path) -> None:
    """Once Django's users, for one: with persons=True no token collection is accepted."""
    tokens = SigningIssuer(lambda: 0.0).of(answers=29)["it"]
    collections = file(a={}) | {"it": tokens}
    device = Device(tmp_path, collections, persons=True)
    person = device.client.person(1)
    pages = PrivacyPages(lambda: device.client)

    assert (pages.decide(person, f"yes {pages._digest()}"), person.consented) == (0, True)


def test_a_yes_covers_no_question_that_the_form_did_not_show(tmp_path: Path) -> None:
    """A form of the old version, sent to a process of the new one."""
    device = Device(tmp_path, file(a={}), persons=True, ceiling=100, daily_ceiling=9)
    pages = PrivacyPages(lambda: device.client)
    form = pages.consent(device.client.person(1), dict).html
    answer = form.partition('name="consent" value="yes')[2].partition('"')[0]
    device.stop()
    device.start(file(a={}, b={"question": "Since when, may we ask?"}))
    stale = pages.decide(device.client.person(1), f"yes{answer}")

    assert "Since when" not in form
    assert (stale, device.client.person(1).consented) == (409, None)


# -- two decisions at once ----------------------------------------------------------------------


def decide_meanwhile(device: Device, other: Callable[[], None]) -> Any:
    """Have another process decide between this one's look and its write."""
    original, state = type(device.state).consent, device.state

    def consent(key: bytes, decision: ConsentDecision) -> None:
        other()
        original(state, key, decision)

    return patch.object(state, "consent", consent)


@pytest.mark.parametrize("other", [["a"], None], ids=["by name", "to everything"])
def test_of_two_refusals_at_once_none_is_lost(tmp_path: Path, other: list[str] | None) -> None:
    device = Device(tmp_path, file(a={}, b={}, c={}))
    process = second(device)
    with decide_meanwhile(device, lambda: process.client.consent(False, only=other)):
        device.client.consent(False, only=["b"])

    assert device.client.unasked() == []
    assert device.client.consented is (other is not None)


def test_a_consent_reaches_the_other_processes_of_one_person(tmp_path: Path) -> None:
    device = Device(tmp_path, one_collection("it"), consent=None)
    other = second(device)
    device.client.consent(True)
    for day in range(1, 4):
        other.record_at(at(day, 9))

    assert (other.client.must_ask, other.client.consented) == (False, True)
    assert device.state.sent(device.key) != []


def test_tokens_that_come_after_forget_are_not_kept(tmp_path: Path) -> None:
    """They name the pseudonyms of the secret that forget() wiped."""
    issuer = SigningIssuer(lambda: at(0, 9))
    device = Device(tmp_path, issuer.of(answers=29), issuer=issuer)

    def forgets(signed: list[bytes]) -> list[bytes]:
        device.client.forget()
        return signed

    issuer.fault = forgets
    device.run_until(at(1, 9))

    assert isinstance(device.state, SqliteState)
    with device.state._reading() as database:
        assert database.execute("select count(*) from token").fetchone() == (0,)


def test_the_closing_of_a_forgotten_row_does_not_silence_the_next_one(tmp_path: Path) -> None:
    """Whoever closes a pseudonym must not find the person's next one by its silence."""
    device = Device(tmp_path, one_collection("it", linkage="collection"))

    def forget_and_return() -> None:
        device.wire.during = lambda: None
        device.client.forget()
        device.client.consent(True)

    device.wire.during = forget_and_return
    device.wire.verdict = lambda _: Verdict.CLOSED
    device.send()
    device.wire.verdict = lambda _: None
    for day in range(1, 5):
        device.record_at(at(day, 9))
    device.run_until(at(6))

    assert len(device.wire.counted) == 4


def test_a_process_that_was_running_learns_of_the_move(tmp_path: Path) -> None:
    device = Device(tmp_path, one_collection("it", unit="month", until="2027-06-01"))
    file_checks.write_mark(file_checks.mark_path(tmp_path / FILE), 10_000)  # a restored file
    other = second(device)
    other.client.consent(True)

    barred = [each.state.person(device.key).barred > 0 for each in (other, device)]

    assert barred == [True, True]


# -- ids and only= that raise ------------------------------------------------------------------


def test_a_huge_number_is_no_crash(tmp_path: Path) -> None:
    device = Device(tmp_path, one_collection("it"), persons=True)

    device.client.person(10**5000).record("it", True)


HIDDEN = {"presence": "hidden", "linkage": "collection"}


@pytest.mark.parametrize("how", ["removed", "refused", "redefined"])
def test_who_recorded_before_a_definition_was_gone_is_as_present_as_who_did_not(
    tmp_path: Path, how: str
) -> None:
    with_it, without = file(a=HIDDEN, b={}), file(b={})
    periods = []
    for records in (True, False):
        device = Device(tmp_path / str(records), with_it, person=7, clock=at(0, 0.1))
        instant = device.instant("a", 1)
        device.run_until(instant - HOUR)
        if records:
            device.record("a")
        device.stop()
        if how != "refused":
            device.start(without if how == "removed" else file(a=HIDDEN | {"epsilon": 0.5}, b={}))
        else:
            device.options["daily_ceiling"] = "0.5"
            device.start()
        device.run_until(instant - HOUR / 2)
        device.stop()
        device.options.pop("daily_ceiling", None)
        device.start(with_it)
        device.run_until(at(3))
        periods.append(sorted(
            each.period for each in device.wire.reports
            if each.fingerprint == with_it["a"].fingerprint
        ))  # fmt: skip

    assert periods[0] == periods[1]


def test_who_consents_before_midnight_does_not_send_all_at_once(tmp_path: Path) -> None:
    names = {f"q{i}": HIDDEN for i in range(12)}
    device = Device(tmp_path, file(**names), clock=at(0, 23, 3570), person="midnight")
    device.run_until(at(0, 24, 3600))
    left = sorted(each.instant for each in device.wire.arrivals)

    assert len(left) < 4  # of twelve, in the hour after midnight


def test_a_clock_that_was_ahead_at_the_consent_loses_no_question_for_ever(tmp_path: Path) -> None:
    device = Device(tmp_path, one_collection("it"), clock=at(4000))
    device.stop()
    device.start_at(at(1, 9))
    device.client.consent(False)
    device.client.consent(True)  # nothing that the person does brings it back
    device.client.forget()
    device.client.consent(True)
    for day in range(2, 6):
        device.record_at(at(day, 9))
    device.run_until(at(8))

    assert device.wire.reports != [], device.client.explain("it")


def test_a_moved_state_does_not_promise_answers_whose_tokens_are_spent(tmp_path: Path) -> None:
    clock_issuer = SigningIssuer(lambda: at(0, 9))
    device = Device(tmp_path / "a", clock_issuer.of(answers=29), issuer=clock_issuer)
    device.run_until(at(1, 9))
    device.stop()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    device.place = tmp_path / "b"
    device.start()
    device.client.consent(True)
    device.run_until(at(3))
    for day in range(3, 6):
        device.record_at(at(day, 9))
    device.run_until(at(8))
    explained = str(device.client.explain("it"))

    assert device.wire.reports or "all is well" not in explained, explained


def test_a_mended_first_file_answers_no_period_that_the_second_answered(tmp_path: Path) -> None:
    device = Device(tmp_path, one_collection("it", unit="month", until="2027-06-01"))
    device.stop()
    good = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(b"damaged" * 1000)
    device.start_at(at(1))
    device.client.consent(True)
    device.record_at(at(40))
    device.run_until(at(42))
    device.stop()
    (tmp_path / FILE).write_bytes(good)  # the inode and the count are as they were
    for path in tmp_path.glob("2-*"):
        path.unlink()
    device.start_at(at(43))
    if device.client.must_ask:
        device.client.consent(True)
    device.record()
    device.run_until(at(46))
    periods = [each.period for each in device.wire.counted.values()]

    assert len(periods) == len(set(periods))


def test_a_refused_rename_in_between_keeps_the_lineage(tmp_path: Path) -> None:
    device = Device(tmp_path, file(a={}), ceiling=100, daily_ceiling=9)
    device.client.consent(False, only=["a"])
    device.stop()
    device.start(file(b={"replaces": "a", "epsilon": 4}))  # over the ceiling
    device.stop()
    device.start(file(c={"replaces": "b"}))

    assert device.client.unasked() == []


def test_an_emptied_redis_bars_begun_periods_as_a_damaged_file_does(frail: Any) -> None:
    state = open_state(f"{frail.url}#one")
    redis_client.Redis.from_url(frail.url).flushall()
    for _ in range(2):
        try:
            state.person(b"k" * 16)
        except StateError:
            continue
    barred = state.person(b"k" * 16).barred
    state.close()

    assert barred > 0


def test_a_decision_reads_no_other_person(tmp_path: Path) -> None:
    """9 ms each with 20,000 persons, in the app's request and under the lock of storing."""
    device = Device(tmp_path, file(a=HIDDEN), persons=True)
    with patch.object(device.state, "consenting", wraps=device.state.consenting) as consenting:
        device.client.person(1).consent(True)

    assert consenting.call_count == 0
