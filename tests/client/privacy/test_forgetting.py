"""`forget()`: each row that was sent is closed once, at a time of its own; nothing is redrawn.

Before, of five rows none was ever closed when the process ended minutes later, and all five were
closed in one round when it was woken hours later. A new consent redrew cohort and paired
collection, and a receipt said "spent 12 of 3".
"""

from __future__ import annotations

import hashlib
import hmac
import shutil
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import comb
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.delivery import row_closes
from veilcount_client.delivery.row_closes import RowCloses
from veilcount_client.recording.answer_times import is_answering
from veilcount_client.state import PersonState
from veilcount_client.state import sqlite as sqlite_module
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection

from ..device_fixtures import (
    DAY,
    HOUR,
    MINUTE,
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

NAMES = ("one", "two", "three", "four", "five")
ALPHA = 1e-6  # of each statistical test: how often it fails by chance
PAIRS = 24  # of devices


class Home:
    """A device that has sent its answer to five questions, each under a pseudonym of its own."""

    def __init__(
        self,
        place: Path,
        seed: int = 1,
        collections: dict[str, Collection] | None = None,
        **options: Any,
    ) -> None:
        self.clock = clock_at(at(0, 9))
        self.wire = Wire(self.clock)
        self.collections = collections or file(**{name: {"unit": "month"} for name in NAMES})
        with secrets(("forgetting", seed)):
            self.device = Device(
                place,
                self.collections,
                self.clock,
                self.wire,
                randomness=SeededRandomSource(seed),
                **options,
            )

    def send(self, *names: str) -> None:
        """Record, and have it arrive."""
        for name in names or self.collections:
            self.device.client.record(name, True)
        self.device.client.flush()

    def forget(self) -> float:
        """Be forgotten; return when."""
        self.device.client.forget()
        self.device.work()
        return self.clock.now()

    def until(self, seconds: float) -> None:
        """Let time pass."""
        pass_time(self.clock, self.clock.now() + seconds, self.device)

    @property
    def rows(self) -> set[tuple[str, bytes]]:
        """Return the rows that the server has."""
        return {(report.fingerprint, report.pseudonym) for report in self.wire.reports}

    @property
    def closed(self) -> list[tuple[str, bytes]]:
        """Return the rows that were asked to be closed, as often as they were."""
        return [(series, _bytes(spelled)) for _, series, spelled in self.wire.closed]

    @property
    def times(self) -> list[float]:
        """Return when rows were asked to be closed."""
        return [instant for instant, _, _ in self.wire.closed]


def _bytes(spelled: str) -> bytes:
    return urlsafe_b64decode(spelled + "==")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have rows closed after an hour of running on the average, and not after a day."""
    monkeypatch.setattr(row_closes, "MEAN_CLOSE", HOUR)


# -- each row once, at a time of its own -----------------------------------------------------------


def one_long_process(home: Home) -> None:
    """Go on."""
    home.until(DAY)


def closed_minutes_later(home: Home) -> None:
    """End the process, and start the next one days later."""
    home.until(5 * MINUTE)
    home.device.stop()
    set_clock(home.clock, home.clock.now() + 3 * DAY)
    home.device.start()
    home.until(DAY)


def killed_at_once(home: Home) -> None:
    """Die in the moment after, and come back hours later."""
    home.device.crash()
    set_clock(home.clock, home.clock.now() + 5 * HOUR)
    home.device.start()
    home.until(DAY)


def many_short_processes(home: Home) -> None:
    """Run for a quarter of an hour, some times a day."""
    for _ in range(60):
        home.device.stop()
        set_clock(home.clock, home.clock.now() + 4 * HOUR)
        home.device.start()
        home.until(15 * MINUTE)


def asleep(home: Home) -> None:
    """Sleep for hours in the same process."""
    set_clock(home.clock, home.clock.now() + 7 * HOUR)
    home.until(DAY)


LIVES = (one_long_process, closed_minutes_later, killed_at_once, many_short_processes, asleep)


@pytest.mark.parametrize("life", LIVES)
def test_every_row_is_closed_once_at_a_time_of_its_own(
    tmp_path: Path, life: Callable[[Home], None]
) -> None:
    """However the process that forgot went on, and without another record or consent."""
    home = Home(tmp_path)
    home.send()
    home.forget()
    life(home)

    assert len(home.closed) == len(NAMES)
    assert set(home.closed) == home.rows
    assert len({round(instant) for instant in home.times}) == len(NAMES)
    assert home.device.worker.state.next_row_close() is None


def test_only_rows_that_were_sent_are_closed(tmp_path: Path) -> None:
    """To ask for the row of a report that never left would tell of a record."""
    home = Home(tmp_path)
    home.send("one", "two")
    for name in NAMES[2:]:
        home.device.client.record(name, True)
    home.device.work()
    stored = len(home.device.worker.state.sent(home.device.client._session.key("")))
    home.forget()
    home.until(2 * DAY)

    assert stored == len(NAMES)
    assert len(home.closed) == 2
    assert set(home.closed) == home.rows


def test_a_row_whose_reply_was_lost_is_closed(tmp_path: Path) -> None:
    """It may be there: whatever was on its way counts as sent."""
    home = Home(tmp_path)
    home.wire.loses_reply = True
    home.send("one")
    home.wire.loses_reply = False
    home.forget()
    home.until(DAY)

    assert set(home.closed) == home.rows
    assert len(home.closed) == 1


def test_each_row_is_tried_again_by_itself(tmp_path: Path) -> None:
    """After an outage of half a day the rows do not leave in one round, nor is one left out."""
    home = Home(tmp_path)
    home.send()
    home.wire.offline()
    home.forget()
    home.until(DAY / 2)
    before = list(home.wire.closed)
    home.wire.online()
    home.until(DAY)

    assert before == []
    assert sorted(home.closed) == sorted(home.rows)
    assert len({round(instant) for instant in home.times}) == len(NAMES)


def test_a_row_that_fails_leaves_the_times_of_the_others_alone(tmp_path: Path) -> None:
    """Read from the state, before and after."""
    home = Home(tmp_path)
    home.send()
    home.forget()
    state = home.device.worker.state
    before = {(each.series, each.pseudonym): each.due for each in state.row_closes(2e12, 100)}
    first = min(before, key=lambda row: before[row])
    home.wire.offline()
    pass_time(home.clock, before[first] + 0.01, home.device)
    after = {(each.series, each.pseudonym): each.due for each in state.row_closes(2e12, 100)}

    assert after.pop(first) > before.pop(first)
    assert after == before


def test_a_flush_does_not_hurry_the_closing(tmp_path: Path) -> None:
    """Nor does the end of the process: together the requests would tell whose rows they are."""
    home = Home(tmp_path)
    home.send()
    home.forget()
    for _ in range(3):
        home.device.client.flush()
    home.device.stop()

    assert home.closed == []


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
        home = Home(folder / str(seed), seed, two)
        home.send()
        home.device.client.forget()
        home.until(1)
        set_clock(home.clock, at(0, 16))
        home.until(DAY)
        times.append({series: instant for instant, series, _ in home.wire.closed})
        home.device.stop()
    return sum(
        abs(mine[one] - mine[other]) < abs(mine[one] - theirs[other])
        for mine, theirs in zip(times[::2], times[1::2], strict=True)
    )


def by_chance(wins: int) -> float:
    """Return how probable it is that so many of the pairs, or more, are closer by chance."""
    tails: int = sum(comb(PAIRS, k) for k in range(wins, PAIRS + 1))
    return tails / float(1 << PAIRS)


def test_rows_of_one_device_are_closed_no_closer_than_those_of_two(memory: Path) -> None:
    """A sign test at alpha = 1e-6 on either side: of independent times, either pair may be closer.

    Planted: one time for all rows of a device, as before when it was woken hours later.
    """
    found = close_pairs(memory / "independent")
    with one_time_for_all():
        planted = close_pairs(memory / "together")

    assert by_chance(found) > ALPHA
    assert by_chance(PAIRS - found) > ALPHA
    assert by_chance(planted) < ALPHA


# -- forgetting and consenting again ---------------------------------------------------------------

PAIRED: dict[str, dict[str, object]] = {
    "local": {"unit": "month", "twin": "central", "linkage": "collection"},
    "central": {"unit": "month", "model": "central", "budget": 1, "adjacency": "substitute"},
    "cohort": {"cohort": {"draw": "spring", "of": 3, "number": 0}},
    "few": {"answers": 4},
}


def close_requests(home: Home) -> dict[str, list[int]]:
    """Return in which periods of which collections the person answers."""
    person = home.device.worker.state.person(home.device.client._session.key(""))
    return {
        name: [period for period in range(each.periods) if is_answering(person.root, each, period)]
        for name, each in home.collections.items()
    }


def again_and_again(home: Home, times: int) -> set[str]:
    """Be forgotten and consent, again and again; return what the person was asked each time."""
    seen = set()
    for _ in range(times):
        seen.add(str(close_requests(home)))
        home.device.client.forget()
        home.device.client.consent(True)
    return seen


def test_a_new_consent_redraws_neither_cohort_nor_pair_nor_periods(tmp_path: Path) -> None:
    """Planted: they hang on the secret that `forget` renews, as before."""
    person = sqlite_module.SqliteState.person

    def renewed(state: sqlite_module.SqliteState, key: bytes) -> PersonState:
        found = person(state, key)
        return PersonState(
            found.key, found.secret, found.secret, found.consented, found.covered, found.since
        )

    home = Home(tmp_path / "root", collections=file(**PAIRED), trust_curator=True)
    seen = again_and_again(home, 8)
    with patch.object(sqlite_module.SqliteState, "person", renewed):
        other = Home(tmp_path / "secret", collections=file(**PAIRED), trust_curator=True)
        planted = again_and_again(other, 8)

    assert len(seen) == 1
    assert len(planted) > 1


@pytest.mark.parametrize("moved", [False, True])
def test_what_is_spent_never_exceeds_the_cap(tmp_path: Path, moved: bool) -> None:  # noqa: FBT001
    """Forgotten or copied every day, a person of three answers of epsilon 1 gives three."""
    home = Home(tmp_path / "0", collections=one_collection("it", answers=3, linkage="collection"))
    for day in range(1, 30):
        home.send()
        pass_time(home.clock, at(day, 9), home.device)
        if moved:
            home.device.stop()
            shutil.copytree(home.device.place, tmp_path / str(day))
            home.device.place = tmp_path / str(day)
            home.device.start()
        else:
            home.device.client.forget()
        home.device.client.consent(True)
    home.send()
    receipt = home.device.client.receipt()

    assert len(home.wire.counted) == 3
    assert [(entry.spent, entry.life) for entry in receipt.entries] == [(3.0, "3")]
    assert receipt.charged <= receipt.ceiling == 3.0


def test_nothing_that_leaves_hangs_on_the_root(tmp_path: Path) -> None:
    """Two persons of one root and other secrets share no pseudonym; nor is it in any body.

    A pseudonym of the root would join a person's lives before and after being forgotten.
    """
    home = Home(
        tmp_path, collections=file(one={"linkage": "collection"}, two={"linkage": "period"})
    )
    root = home.device.worker.state.person(home.device.client._session.key("")).root
    lives = []
    for _ in range(2):
        home.send()
        lives.append(home.rows)
        home.forget()
        home.until(DAY)
        home.device.client.consent(True)
    first, both = lives
    derived = {
        hmac.digest(root, _spell("pseudonym", series, epoch), hashlib.sha256)[:16]
        for series, _ in both
        for epoch in range(3)
    }

    assert len(both) == 2 * len(first)
    assert not derived & {pseudonym for _, pseudonym in both}
    assert not any(root in each.body or root[:8] in each.body for each in home.wire.attempts)


def _spell(*fields: object) -> bytes:
    parts = [str(field).encode() for field in ("veilcount", 1, *fields)]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def test_the_derivation_that_is_searched_for_is_the_real_one(tmp_path: Path) -> None:
    """The planted variant: of the secret, the same derivation does give the pseudonym."""
    home = Home(tmp_path, collections=one_collection("it", linkage="collection"))
    secret = home.device.worker.state.person(home.device.client._session.key("")).secret
    home.send()
    ((series, pseudonym),) = home.rows

    assert hmac.digest(secret, _spell("pseudonym", series, 0), hashlib.sha256)[:16] == pseudonym
