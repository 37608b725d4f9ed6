"""`forget()` sends nothing; nothing is drawn again; rows are named before, or never.

Where forgets are rare, a request to close a row names its person: at one a week, the next request
came from the same person in 129 of 143 cases. A new consent once redrew cohort and paired
collection, and a receipt stated "spent 12 of 3".
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.delivery.uploader import Uploader
from veilcount_client.recording.answer_times import is_answering
from veilcount_client.recording.known_definitions import RowName
from veilcount_client.state import PersonState
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection

from ..device_fixtures import DAY, HOUR, Device, at, file, one_collection, set_clock

NAMES = ("one", "two", "three", "four", "five")


def new_device(
    place: Path, seed: int = 1, collections: dict[str, Collection] | None = None, **options: Any
) -> Device:
    """Return a device that answers five questions, each under a pseudonym of its own."""
    collections = collections or file(**{name: {"unit": "month"} for name in NAMES})
    randomness = SeededRandomSource(seed)
    return Device(place, collections, person=seed, randomness=randomness, **options)


def forget(device: Device) -> None:
    device.client.forget()
    device.work()


def rows(device: Device) -> set[tuple[str, bytes]]:
    return {(report.fingerprint, report.pseudonym) for report in device.wire.reports}


# -- nothing is sent -------------------------------------------------------------------------------


def runs_on(device: Device) -> None:
    device.run_for(5 * DAY)


def ends_and_starts(device: Device) -> None:
    device.client.flush()
    device.stop()
    device.start_at(device.clock.now() + 3 * DAY)
    device.run_for(DAY)


def is_killed(device: Device) -> None:
    device.crash()
    device.start_at(device.clock.now() + 5 * HOUR)
    device.run_for(DAY)


def sleeps(device: Device) -> None:
    set_clock(device.clock, device.clock.now() + 7 * HOUR)
    device.run_for(DAY)


def what_follows(place: Path, life: Callable[[Device], None]) -> int:
    """Return how many requests leave after a person was forgotten, of whom much was waiting."""
    device = new_device(place)
    device.send("one", "two")
    device.wire.loses_reply = True
    device.send("three")
    device.wire.loses_reply = False
    device.record("four", "five")
    before = len(device.wire.attempts)
    forget(device)
    life(device)
    return len(device.wire.attempts) - before


@pytest.mark.parametrize("life", [runs_on, ends_and_starts, is_killed, sleeps])
def test_to_be_forgotten_sends_nothing(tmp_path: Path, life: Callable[[Device], None]) -> None:
    """However the process that forgot went on, and whatever had left or waited."""
    assert what_follows(tmp_path, life) == 0


def test_a_request_that_names_a_row_is_seen(tmp_path: Path) -> None:
    """The planted variant, and once so: what had left is named to the server again."""

    def forgetting(state: SqliteState, key: bytes) -> None:
        left.extend(state.sent(key))
        forgetting_all(state, key)

    def closing(uploader: Uploader, **more: Any) -> None:
        running(uploader, **more)
        while left:
            uploader._send([left.pop().report])

    left: list[Any] = []
    forgetting_all, running = SqliteState.forget, Uploader.run
    with patch.object(SqliteState, "forget", forgetting), patch.object(Uploader, "run", closing):
        assert what_follows(tmp_path, runs_on) > 0


# -- rows are named before -------------------------------------------------------------------------


def named(names: list[RowName]) -> set[tuple[str, bytes]]:
    return {(row.fingerprint, urlsafe_b64decode(row.pseudonym + "==")) for row in names}


def test_all_rows_of_a_person_can_be_named_until_they_are_forgotten(tmp_path: Path) -> None:
    """Also those of definitions that are gone, and more than a receipt keeps reports."""
    dates = {"until": "2027-12-01"}
    both = file(whole={"linkage": "collection", **dates}, day={**dates})
    device = new_device(tmp_path, collections=both)
    for day in range(100):
        device.run_until(at(day, 9))
        device.send()
    device.stop()
    device.start(file(other={}))
    names = device.client.rows()

    assert len(rows(device)) == 101
    assert rows(device) == named(names)
    assert str(names[0]) == f"{names[0].fingerprint} {names[0].pseudonym}"
    device.client.forget()
    assert device.client.rows() == []


def test_where_nothing_links_there_is_no_row_to_name(tmp_path: Path) -> None:
    device = new_device(tmp_path, collections=one_collection("it", linkage="none"))
    device.send()

    assert len(device.wire.reports) == 1
    assert device.client.rows() == []


# -- forgetting and consenting again ---------------------------------------------------------------

PAIRED: dict[str, dict[str, object]] = {
    "local": {"unit": "month", "twin": "central", "linkage": "collection"},
    "central": {"unit": "month", "model": "central", "budget": 1, "adjacency": "substitute"},
    "cohort": {"cohort": {"draw": "spring", "of": 3, "number": 0}},
    "few": {"answers": 4},
}


def again_and_again(device: Device) -> set[str]:
    """Be forgotten and consent, again and again; return in which periods the person answers."""
    seen = set()
    for _ in range(8):
        person, collections = device.person, device.collections.values()
        periods = [
            [is_answering(person, collection, period) for period in range(collection.periods)]
            for collection in collections
        ]
        seen.add(str(periods))
        device.client.forget()
        device.client.consent(True)
    return seen


def test_a_new_consent_redraws_neither_cohort_nor_pair_nor_periods(tmp_path: Path) -> None:
    """Planted: they hang on the secret that `forget` renews, as before."""
    person = SqliteState.person

    def renewed(state: SqliteState, key: bytes) -> PersonState:
        found = person(state, key)
        return replace(found, root=found.secret)

    device = new_device(tmp_path / "root", collections=file(**PAIRED), trust_curator=True)
    seen = again_and_again(device)
    with patch.object(SqliteState, "person", renewed):
        other = new_device(tmp_path / "secret", collections=file(**PAIRED), trust_curator=True)
        planted = again_and_again(other)

    assert len(seen) == 1
    assert len(planted) > 1


def test_what_is_spent_never_exceeds_the_cap(tmp_path: Path) -> None:
    """Forgotten every day, a person of three answers of epsilon 1 gives three."""
    keys = {"answers": 3, "linkage": "collection", "until": "2026-12-10"}
    device = new_device(tmp_path, collections=one_collection("it", **keys))
    for day in range(1, 10):
        device.send()
        device.run_until(at(day, 9))
        device.client.forget()
        device.client.consent(True)
    receipt = device.client.receipt()

    assert len(device.wire.counted) == 3
    assert [(entry.spent, entry.life) for entry in receipt.entries] == [(3.0, "3")]
    assert receipt.charged <= receipt.ceiling == 3.0


def derive_pseudonym(secret: bytes, series: str, epoch: int) -> bytes:
    fields = [str(each).encode() for each in ("veilcount", 1, "pseudonym", series, epoch)]
    encoded = b"".join(len(each).to_bytes(4, "big") + each for each in fields)
    return hmac.digest(secret, encoded, hashlib.sha256)[:16]


def test_nothing_that_leaves_depends_on_the_root(tmp_path: Path) -> None:
    """A pseudonym of the root would join a person's reports before and after being forgotten.

    The planted variant: of the secret, the same derivation does give the pseudonym.
    """
    collections = file(one={"linkage": "collection"}, two={"linkage": "period"})
    device = new_device(tmp_path, collections=collections)
    root, secret = device.person.root, device.person.secret
    seen = []
    for _ in range(2):
        device.send()
        seen.append(rows(device))
        forget(device)
        device.run_for(DAY)
        device.client.consent(True)
    first, both = seen
    pseudonyms = {pseudonym for _, pseudonym in both}

    def derived(key: bytes) -> set[bytes]:
        return {derive_pseudonym(key, series, epoch) for series, _ in both for epoch in range(3)}

    assert len(both) == 2 * len(first)
    assert derived(secret) & pseudonyms
    assert not derived(root) & pseudonyms
    assert not any(root in each.body or root[:8] in each.body for each in device.wire.attempts)
