"""When a host's clock is in doubt: compared with a real Redis's, and with itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from veilcount_aggregator.errors import ClockUntrusted
from veilcount_aggregator.store import Store, open_store
from veilcount_aggregator.store.retention.clock_guard import (
    SETTLING_SECONDS,
    TOLERANCE,
    ClockGuard,
    ClockState,
    clock_skew,
)

from ....redis_server import RedisServer
from ....system.server import wait_until

AGREES, SKEWED = ClockState.AGREES, ClockState.SKEWED
JUMPED, UNKNOWN = ClockState.JUMPED, ClockState.UNKNOWN
AHEAD = timedelta(days=40)
A_LOOK = 10.0


@dataclass
class Host:
    """A host's two clocks: the machine's wall clock, shifted, and one that a test advances."""

    shift: timedelta = timedelta(0)
    stands: datetime | None = None
    seconds: float = 1_000.0

    def now(self) -> datetime:
        return (self.stands or datetime.now(UTC)) + self.shift

    def pass_on(self, seconds: float) -> None:
        assert self.stands is not None
        self.stands += timedelta(seconds=seconds)
        self.seconds += seconds

    def guard(self, store: Store) -> ClockGuard:
        return ClockGuard(store, self.now, lambda: self.seconds)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    started = RedisServer(tmp_path_factory.mktemp("redis"))
    yield started
    started.kill()


@pytest.fixture
def redis(server: RedisServer) -> Iterator[Store]:
    """A store that has a clock of its own."""
    opened = open_store(server.url, make=True)
    yield opened
    opened.close()


# -- against the store's ---------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_host_whose_clock_differs_from_the_stores_is_skewed(redis: Store, sign: int) -> None:
    inside, outside = (
        Host(sign * (TOLERANCE + timedelta(seconds=margin))).guard(redis).look()
        for margin in (-60, 60)
    )

    assert (inside.state, outside.state) == (AGREES, SKEWED)
    assert abs(outside.off - sign * TOLERANCE).total_seconds() == pytest.approx(60, abs=30)
    assert str(outside).startswith("this host's clock is 3")
    assert ("ahead of" in str(outside)) == (sign > 0)


def test_a_skewed_host_judges_nothing_until_it_is_mended(redis: Store) -> None:
    """At once then: the store's clock says that it is right."""
    host = Host(AHEAD)
    guard = host.guard(redis)
    guard.refuse_if_doubted()
    guard.look()
    with pytest.raises(ClockUntrusted, match="3,456,000 s ahead of the store's"):
        guard.refuse_if_doubted()
    host.shift, host.seconds = timedelta(0), host.seconds + A_LOOK

    assert guard.look().state is AGREES
    guard.refuse_if_doubted()
    assert guard.sound_seconds == 0


def test_a_store_that_is_away_proves_no_clock_right(server: RedisServer, redis: Store) -> None:
    """Of a sound clock nothing is known then, of a skewed one what was known before."""
    sound, ahead = Host().guard(redis), Host(AHEAD).guard(redis)
    for guard in (sound, ahead):
        guard.look()
    server.kill()

    assert (sound.look().state, ahead.look().state) == (UNKNOWN, SKEWED)
    assert sound.sound_seconds == 0
    sound.refuse_if_doubted()
    server.start()
    wait_until(lambda: sound.look().state is AGREES)  # once the breaker has probed
    assert ahead.look().state is SKEWED


@pytest.mark.parametrize(
    ("servers", "found"),
    [([], 0), ([40], -40), ([0, 40], 0), ([0, 40, 40], -40), ([-40, 0, 40], 0)],
)
def test_the_median_of_the_servers_counts(servers: list[int], found: int) -> None:
    """Days by which each is ahead: one that is wrong convicts no honest host."""
    now = datetime(2026, 12, 3, tzinfo=UTC)
    times = [now + timedelta(days=each) for each in servers]

    assert clock_skew(times, now, now) == timedelta(days=found)


def test_where_the_stores_clocks_differ_an_honest_host_agrees_and_nothing_is_dropped(
    store: Store, host: Host
) -> None:
    """Two of three are right; which rows are dropped by the third is not to be risked."""

    class Differing:
        """A store of three servers, of which one is ahead: no real ones differ on one machine."""

        def server_times(self) -> list[datetime]:
            return [host.now(), host.now(), host.now() + AHEAD]

    guard = host.guard(Differing())  # type: ignore[arg-type] # asked for the time alone
    guard.look()
    host.pass_on(SETTLING_SECONDS)
    found = guard.look()

    assert (found.state, found.off, found.spread) == (AGREES, timedelta(0), AHEAD)
    assert guard.sound_seconds == 0
    alone = host.guard(store)
    alone.look()
    host.pass_on(SETTLING_SECONDS)
    assert alone.sound_seconds == SETTLING_SECONDS


def test_a_slow_answer_is_no_skew() -> None:
    """Only what lies outside the two looks at one's own clock counts."""
    now = datetime(2026, 12, 3, tzinfo=UTC)
    late = now + timedelta(minutes=9)

    assert clock_skew([now + timedelta(minutes=4)], now, late) == timedelta(0)
    assert clock_skew([late + timedelta(seconds=1)], now, late) == timedelta(seconds=-1)


# -- against itself --------------------------------------------------------------------------------


@pytest.fixture
def host() -> Host:
    return Host(stands=datetime(2026, 12, 3, tzinfo=UTC))


@pytest.mark.parametrize("shift", [AHEAD, -AHEAD, timedelta(hours=1)])
def test_a_clock_that_jumps_is_in_doubt_until_it_is_back(
    store: Store, host: Host, shift: timedelta
) -> None:
    guard = host.guard(store)
    before = guard.look().state
    host.shift = shift
    host.pass_on(A_LOOK)
    during = guard.look()
    host.shift = timedelta(0)
    host.pass_on(A_LOOK)

    assert (before, during.state, guard.look().state) == (AGREES, JUMPED, AGREES)
    assert during.off == shift


def test_a_clock_that_stays_where_it_jumped_is_taken_after_a_while(
    store: Store, host: Host
) -> None:
    """A machine that slept is no worse than one that was started anew."""
    guard = host.guard(store)
    guard.look()
    host.shift = timedelta(hours=1)
    states = []
    for _ in range(4):
        host.pass_on(SETTLING_SECONDS / 2)
        states.append(guard.look().state)

    assert states == [JUMPED, JUMPED, AGREES, AGREES]
    assert guard.sound_seconds == SETTLING_SECONDS / 2

    host.shift += timedelta(hours=1)
    host.pass_on(A_LOOK)
    guard.look()
    host.pass_on(SETTLING_SECONDS - A_LOOK)
    host.shift += timedelta(hours=1)  # and again: the wait begins anew
    guard.look()
    host.pass_on(SETTLING_SECONDS - 1)
    assert guard.look().state is JUMPED


def test_a_clock_that_ntp_slews_has_not_jumped(store: Store, host: Host) -> None:
    guard = host.guard(store)
    found = set()
    for _ in range(10 * 24):
        host.pass_on(3600)
        host.shift += timedelta(seconds=3600 * 500e-6)
        found.add(guard.look().state)

    assert host.shift > TOLERANCE
    assert found == {AGREES}


def test_a_host_and_its_redis_that_jump_together_are_in_doubt(redis: Store) -> None:
    """Both are on one machine: only the monotonic clock knows."""
    host = Host()
    guard = host.guard(redis)
    guard.look()
    host.seconds -= AHEAD.total_seconds()  # as if both wall clocks had gained as much
    found = guard.look()

    assert (found.state, round(found.off / AHEAD, 3)) == (JUMPED, 1)
