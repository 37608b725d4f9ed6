"""`forget()`: each row that was sent is closed once, at a time of its own; nothing is redrawn.

Once, of five rows none was ever closed when the process ended minutes later, and all five were
closed in one round when it was woken hours later. A new consent redrew cohort and paired
collection, and a receipt stated "spent 12 of 3".
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from scipy.stats import binom

from veilcount_client.delivery import closed_rows
from veilcount_client.delivery.closed_rows import RowCloses
from veilcount_client.recording.answer_times import is_answering
from veilcount_client.state import PersonState
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection

from ..device_fixtures import DAY, HOUR, MINUTE, Device, at, file, one_collection, set_clock

NAMES = ("one", "two", "three", "four", "five")
ALPHA = 1e-6  # of each statistical test: how often it fails by chance
PAIRS = 24  # of devices


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


def closed(device: Device) -> list[tuple[str, bytes]]:
    """Return the rows whose closing was requested, as often as it was, in order."""
    requests = device.wire.closed
    return sorted((series, urlsafe_b64decode(encoded + "==")) for _, series, encoded in requests)


def distinct_times(device: Device) -> int:
    """Return at how many different seconds rows were requested to be closed."""
    return len({round(instant) for instant, *_ in device.wire.closed})


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have rows closed after an hour of running on the average, and not after a day."""
    monkeypatch.setattr(closed_rows, "MEAN_CLOSE", HOUR)


# -- each row once, at a time of its own -----------------------------------------------------------


def closed_minutes_later(device: Device) -> None:
    """End the process, and start the next one days later: neither a flush nor the end hurries."""
    device.run_for(5 * MINUTE)
    before = closed(device)
    device.client.flush()
    device.stop()
    assert closed(device) == before
    device.start_at(device.clock.now() + 3 * DAY)
    device.run_for(DAY)


def killed_at_once(device: Device) -> None:
    device.crash()
    device.start_at(device.clock.now() + 5 * HOUR)
    device.run_for(DAY)


def many_short_processes(device: Device) -> None:
    for _ in range(40):
        device.stop()
        device.start_at(device.clock.now() + 4 * HOUR)
        device.run_for(20 * MINUTE)


def asleep(device: Device) -> None:
    set_clock(device.clock, device.clock.now() + 7 * HOUR)
    device.run_for(DAY)


def after_an_outage(device: Device) -> None:
    """Nothing gets through for half a day: whatever one row hears moves no other."""
    state = device.state
    before = {(each.series, each.pseudonym): each.due for each in state.row_closes(2e12, 100)}
    first = min(before, key=lambda row: before[row])
    device.wire.offline()
    device.run_until(before[first] + 0.01)
    after = {(each.series, each.pseudonym): each.due for each in state.row_closes(2e12, 100)}
    assert {row for row, due in after.items() if due != before[row]} == {first}
    device.run_for(DAY / 2)
    assert closed(device) == []
    device.wire.online()
    device.run_for(DAY)


@pytest.mark.parametrize(
    "scenario",
    [closed_minutes_later, killed_at_once, many_short_processes, asleep, after_an_outage],
)
def test_every_row_is_closed_once_at_a_time_of_its_own(
    tmp_path: Path, scenario: Callable[[Device], None]
) -> None:
    """However the process that forgot went on, and without another record or consent."""
    device = new_device(tmp_path)
    device.send()
    forget(device)
    scenario(device)

    assert closed(device) == sorted(rows(device))
    assert distinct_times(device) == len(NAMES)
    assert device.state.next_row_close() is None


def test_only_rows_that_may_have_arrived_are_closed(tmp_path: Path) -> None:
    """Also if the reply was lost; the row of a report that never left would tell of a record."""
    device = new_device(tmp_path)
    device.send("one", "two")
    device.wire.loses_reply = True
    device.send("three")
    device.wire.loses_reply = False
    device.record("four", "five")
    stored = len(device.stored)
    forget(device)
    device.run_for(2 * DAY)

    assert stored == len(NAMES)
    assert len(rows(device)) == 3
    assert closed(device) == sorted(rows(device))


# -- the times of one device are not closer than those of two --------------------------------------


@contextmanager
def one_time_for_all() -> Iterator[None]:
    """Have whatever gets a new time in one round get the same one: the planted variant."""
    drawn: dict[tuple[int, float], float] = {}
    later = RowCloses._later

    def together(each: RowCloses, start: float) -> float:
        return drawn.setdefault((id(each), start), later(each, start))

    with patch.object(RowCloses, "_later", together):
        yield


def close_pairs(folder: Path) -> int:
    """Return how often a device's own two rows are closed closer together than two devices' rows.

    Each device is asleep for hours after it was forgotten, each with randomness of its own, and
    each is compared with one other, which no other is compared with.
    """
    two = file(one={"unit": "month"}, two={"unit": "month"})
    one, other = (each.fingerprint for each in two.values())
    times = []
    for seed in range(2 * PAIRS):
        device = new_device(folder / str(seed), seed, two)
        device.send()
        device.client.forget()
        device.run_for(1)
        set_clock(device.clock, at(0, 16))
        device.run_for(DAY)
        times.append({series: instant for instant, series, _ in device.wire.closed})
        device.stop()
    return sum(
        abs(mine[one] - mine[other]) < abs(mine[one] - theirs[other])
        for mine, theirs in zip(times[::2], times[1::2], strict=True)
    )


def test_rows_of_one_device_are_closed_no_closer_than_those_of_two(memory: Path) -> None:
    """A sign test at alpha = 1e-6 on either side: of independent times, either pair may be closer.

    Planted: one time for all rows of a device, as before when it was woken hours later.
    """
    found = close_pairs(memory / "independent")
    with one_time_for_all():
        planted = close_pairs(memory / "together")

    assert all(binom.sf(wins - 1, PAIRS, 0.5) > ALPHA for wins in (found, PAIRS - found))
    assert binom.sf(planted - 1, PAIRS, 0.5) < ALPHA


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
        root, collections = device.person.root, device.collections.values()
        seen.add(
            str(
                [[is_answering(root, each, n) for n in range(each.periods)] for each in collections]
            )
        )
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
