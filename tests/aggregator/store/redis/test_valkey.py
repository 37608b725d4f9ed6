"""Some of the battery on a real Valkey, and what it has that Redis 7.0 has not. With --full, all of
the battery and of the tests in this directory are run on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from veilcount_aggregator.operate.doctor import examine_store
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import DurabilityState, Store, open_store
from veilcount_aggregator.store.redis.store import open_redis

from ....redis_server import VALKEY
from ....system.server import wait_until
from ..engines import ENGINES, Empty
from ..series_fixtures import LINKED
from ..test_battery import (  # noqa: F401 - they run here
    test_a_change_of_another_generation_is_not_made,
    test_a_closed_row_spends_no_slot_and_stays_counted,
    test_a_dropped_epoch_is_stale_and_stays_counted,
    test_records_are_kept_by_kind_and_key,
    test_the_first_report_of_a_slot_counts_and_no_other,
    test_the_first_rule_that_holds_decides,
)
from ..test_battery_sharing import (  # noqa: F401
    test_8_threads_that_replay_one_batch_count_it_once,
    test_a_read_only_store_changes_no_more,
    test_opening_again_gives_the_same,
    test_pieces_hold_everything,
)
from .conftest import two_servers
from .simulated_rows import count, rows


@pytest.fixture(scope="module")
def empty(memory: Path) -> Iterator[Empty]:
    with TemporaryDirectory(dir=memory) as folder, ENGINES["valkey"](Path(folder)) as serving:
        yield serving


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url, make=True)
    yield opened
    opened.close()


def version_found(url: str) -> str:
    """Return what `veilcount doctor` finds out about the server's version."""
    findings = examine_store(Settings(url), lambda: datetime.now(UTC), deep=False)
    (version,) = [finding.what for finding in findings if finding.check == "version"]
    return version


def test_the_doctor_names_the_program_and_its_own_version(url: str, store: Store) -> None:
    """And not the release of Redis that it tells clients."""
    assert store.health().durable is DurabilityState.YES
    assert version_found(url).startswith("Valkey ")
    assert version_found(url) != "Valkey 7.2.4"


def test_disks_are_waited_for_by_a_real_waitaof(tmp_path: Path) -> None:
    """What was acknowledged is on the replica: promoted, it lacks nothing."""
    with two_servers(tmp_path, VALKEY) as (master, replica):
        replica.follow(master)
        wait_until(lambda: not replica.rewriting)
        with closing(open_redis(f"{master.url}?replicas=1", make=True)) as store:
            counted = count(store, rows(10, 1))
            waits = master.calls_of("waitaof")
        master.kill()
        replica.promote()
        with closing(open_redis(replica.url, make=False)) as store:
            reports = sum(store.report_counts(LINKED).values())

    assert (counted, reports) == (10, 10)
    assert waits > 0
