"""A crowd that has as many reports as a batch can have: it takes no more, and says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from veilcount_serving.findings import Severity
from veilcount_shared.shuffling.part import MAX_PARTS, PART_REPORTS, part_count
from veilcount_shuffler import crowd_limit
from veilcount_shuffler.crowd_limit import MEASURED_AFTER, RESERVE, CrowdFull, CrowdLimit
from veilcount_shuffler.crowd_store import CrowdStore
from veilcount_shuffler.held_file import CHECK_BYTES
from veilcount_shuffler.holding import EnvelopeAnswer, Holding
from veilcount_shuffler.serve import ShufflerSettings
from veilcount_shuffler.shuffler_checks import examine_shuffler
from veilcount_shuffler.status import crowd_statuses

from .parties import HandClock, ShufflerStore, messages

MOST = MAX_PARTS * PART_REPORTS - RESERVE - 142


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ShufflerStore]:
    """A store whose first crowd has 150 reports."""
    opened = ShufflerStore(tmp_path / "store", HandClock())
    opened.worker().hold(messages(opened.crowd, 150))
    yield opened
    opened.close()


def fill(store: ShufflerStore, reports: int) -> None:
    """Have another worker's file of so many reports, all of it a hole."""
    path = store.settings.crowds / store.crowd.crowd_id.hex() / "held.9"
    path.touch()
    os.truncate(path, reports * (CHECK_BYTES + store.crowd.size))


def test_a_full_crowd_keeps_its_devices_waiting(store: ShufflerStore) -> None:
    """The last place is taken, and one more report has to come back; so has a group too large."""
    errors: list[Exception] = []
    store_of_worker: CrowdStore = store.store()
    worker = Holding(store_of_worker, errors.append)
    first, second, third, *rest = messages(store.crowd, 7, first=150)
    fill(store, MOST - 152)

    assert worker.hold([first]) == [EnvelopeAnswer.HELD]
    assert worker.hold(rest) == [EnvelopeAnswer.UNAVAILABLE] * 4
    assert worker.hold([second]) == [EnvelopeAnswer.HELD]
    assert worker.hold([third]) == [EnvelopeAnswer.UNAVAILABLE]
    assert [type(error) for error in errors] == [CrowdFull, CrowdFull]
    assert worker.crowd_ids == [store.crowd.crowd_id], "its file stays open"
    worker.close()


def test_planted_without_the_limit_a_crowd_outgrows_its_batch(store: ShufflerStore) -> None:
    fill(store, MOST + RESERVE)
    assert part_count(MOST + RESERVE + 150 + 142) > MAX_PARTS
    with patch.object(CrowdLimit, "takes", lambda *_: True):
        answers = store.worker().hold(messages(store.crowd, 1, first=150))

    assert answers == [EnvelopeAnswer.HELD]
    assert store.worker().hold(messages(store.crowd, 1, first=151)) == [EnvelopeAnswer.UNAVAILABLE]


def test_workers_that_count_by_themselves_stay_within_a_batch(
    store: ShufflerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each looks again after some reports; what all append meanwhile is in the reserve."""
    monkeypatch.setattr(crowd_limit, "MEASURED_AFTER", 8)
    monkeypatch.setattr(crowd_limit, "RESERVE", 3 * 8)
    monkeypatch.setattr(crowd_limit, "MOST_SEALED", 142 + 150 + 3 * 8 + 50)
    envelopes = iter(messages(store.crowd, 300, first=150))
    workers = [store.worker() for _ in range(3)]
    full: set[Holding] = set()
    number = 0
    while len(full) < len(workers):
        for worker in workers:
            (answer,) = worker.hold([next(envelopes)])
            number += answer is EnvelopeAnswer.HELD
            full |= {worker} if answer is EnvelopeAnswer.UNAVAILABLE else set()

    assert 50 <= number <= 50 + 3 * 8


def test_a_lone_report_does_not_look_at_the_files(store: ShufflerStore) -> None:
    folder = store.settings.crowds / store.crowd.crowd_id.hex()
    limit = CrowdLimit(store.crowd, folder)
    with patch.object(crowd_limit, "free_places", side_effect=[10**6]) as measured:
        assert all(limit.takes(1) for _ in range(MEASURED_AFTER))

    assert measured.call_count == 1


@pytest.mark.parametrize(("reports", "state"), [(MOST - 151, "open"), (MOST - 150, "full")])
def test_status_and_doctor_name_a_full_crowd(
    store: ShufflerStore, reports: int, state: str
) -> None:
    fill(store, reports)
    statuses = crowd_statuses(store.settings, store.states(), store.clock())
    settings = ShufflerSettings(store.settings.store)
    findings = {f.check: f for f in examine_shuffler(settings, store.clock())}
    is_full = state == "full"

    assert [status.state for status in statuses] == [state]
    assert (findings["crowds"].state is Severity.WRONG) is is_full
    assert ("theme, period 0: full" in findings["crowds"].what) is is_full


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o701])
@pytest.mark.parametrize("which", ["store", "witness"])
def test_others_may_enter_neither_store_nor_witness(
    store: ShufflerStore, tmp_path: Path, which: str, mode: int
) -> None:
    witness = tmp_path / "witness"
    witness.mkdir(mode=0o700)
    folder = {"store": store.settings.store, "witness": witness}[which]
    folder.chmod(mode)
    settings = ShufflerSettings(store.settings.store, witness)
    (finding,) = (f for f in examine_shuffler(settings, store.clock()) if f.check == "permissions")

    assert (finding.state is Severity.OK) is (mode == 0o700)
    assert (str(folder) in finding.what) is (mode != 0o700)
