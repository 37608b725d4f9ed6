"""The page of whoever keeps it running: figures that exist, and none that must not be told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import FILE, Deployment, deployment
from tests.aggregator.dashboard.page_fixtures import Visitor
from tests.aggregator.queries.simulated_reports import counted, send
from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from veilcount_aggregator.api.request_metrics import ANSWERED, MICROSECONDS, REFUSED
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.dashboard.operations import request_panel, view
from veilcount_aggregator.ingest.group_commit import GROUP
from veilcount_aggregator.retention.retention_guard import confirm_day
from veilcount_aggregator.store import VERDICT, ServiceCounter
from veilcount_aggregator.store.redis.identity import RECORDS_BASE
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_aggregator.store.restore_lock import lock_releases
from veilcount_shared.verdict import Verdict

HERE = "/operations"


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment whose counts may all be told."""
    with deployment(tmp_path, FILE) as made:
        yield made


def _look(made: Deployment, role: Role = Role.ANALYST, query: str = "") -> str:
    visitor = Visitor(made)
    visitor.enter(role)
    return visitor.get(HERE + query).text


# -- what became of reports ------------------------------------------------------------------------


def test_every_verdict_that_was_given_is_counted(public: Deployment) -> None:
    counted(send(public, "theme", [100, 50, 7]))
    report = public.report("theme")
    public.verdicts(report)
    public.verdicts(report)
    public.verdicts(public.report("opened", slot=9))
    page = _look(public)

    assert "Collection counted duplicate over budget" in page
    assert "theme 158 1 0 opened 0 0 1" in page


def test_a_report_of_a_definition_that_nobody_knows_has_a_line(public: Deployment) -> None:
    public.verdicts(public.report("theme", fingerprint="0" * 64))

    assert "(unknown definitions) 0 1" in _look(public)


def test_verdicts_are_told_by_period_of_the_chosen_collection(public: Deployment) -> None:
    counted(send(public, "theme", [5, 0, 0]))
    counted(send(public, "opened", [1, 2], period=1))
    note = ServiceCounter(VERDICT, public.series("opened").fingerprint, 2, Verdict.STALE)
    public.aggregator.store.commit([], {note: 4})

    assert "Reports for theme by verdict; each bar one month" in _look(public)
    chosen = _look(public, query="?collection=opened")
    assert "Reports for opened by verdict; each bar one day" in chosen
    assert "2026-12-02 3 0 2026-12-03 0 4" in chosen
    assert "Reports for theme by verdict" in _look(public, query="?collection=nothing")


def test_no_count_is_told_that_tells_who_took_part(deployed: Deployment) -> None:
    counted(send(deployed, "visits", [111, 222], period=2))
    counted(send(deployed, "theme", [5, 0, 0]))
    page = _look(deployed, Role.ADMIN, "?collection=visits")

    assert "Not listed, since exact counts would reveal who took part: visits." in page
    assert "Requests per commit are withheld" in page
    assert "The reports endpoint is left out." in page
    assert "333" not in page
    assert "Reports for visits" not in page


# -- the service -----------------------------------------------------------------------------------


def test_times_are_told_as_the_ends_of_buckets() -> None:
    noted = {
        ServiceCounter(ANSWERED, "", -1, "reports:2xx:0.005"): 50,
        ServiceCounter(ANSWERED, "", -1, "reports:2xx:0.01"): 45,
        ServiceCounter(ANSWERED, "", -1, "reports:5xx:+Inf"): 5,
        ServiceCounter(MICROSECONDS, "", -1, "reports"): 1_000_000,
    }

    assert request_panel.latencies(noted, intake=True) == [
        request_panel.EndpointLatency("reports", 100, 5, "10.0 ms", ("5 ms", "10 ms", "over 10 s"))
    ]
    assert request_panel.latencies(noted, intake=False) == []


def test_commits_are_told_by_the_requests_that_shared_them() -> None:
    sizes = {"1": 9, "4": 2}
    noted = {ServiceCounter(GROUP, "", -1, size): number for size, number in sizes.items()}

    chart = request_panel.commit_chart(noted)

    assert chart is not None
    assert chart.rows == [("1", "9"), ("2", "0"), ("3 to 4", "2")]
    assert request_panel.commit_chart({}) is None


def test_bodies_that_were_refused_whole_are_told_by_reason(public: Deployment) -> None:
    public.aggregator.store.commit([], {ServiceCounter(REFUSED, "", -1, "too-large"): 1234})

    assert "Body too large: 1,234" in _look(public)


def test_the_page_of_an_empty_store_says_so(tmp_path: Path) -> None:
    with deployment(tmp_path) as empty:
        page = _look(empty)

        assert "No reports yet" in page
        assert "Nothing was committed yet." in page
        assert "No open period has new pseudonyms yet." in page


# -- rooms -----------------------------------------------------------------------------------------


def test_a_period_that_is_nearly_full_is_told(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE, max_new_pseudonyms=100) as made:
        counted(send(made, "theme", [79, 0, 0]))

        assert "nearly full" not in _look(made)
        counted(send(made, "theme", [1, 0, 0]))
        assert "theme 2026-12-01 80 100 nearly full" in _look(made)


def test_new_pseudonyms_of_a_curators_collection_are_told_by_no_line(deployed: Deployment) -> None:
    counted(send(deployed, "visits", [1, 2], period=2))
    counted(send(deployed, "theme", [5, 0, 0]))
    series = deployed.aggregator.known().catalog.series.values()
    told = view.pseudonym_quotas(
        deployed.aggregator.store, series, 100, deployed.aggregator.today()
    )

    assert [each.name for each in told] == ["theme"]


# -- the store -------------------------------------------------------------------------------------


def test_what_is_acknowledged_is_told_as_it_is(public: Deployment) -> None:
    page = _look(public)

    assert "Store sqlite" in page
    assert "Acknowledged reports lost in a power failure durability=relaxed" in page
    assert "1 check failed." in page
    assert "remove durability=relaxed from" in page


def test_read_only_mode_is_shown_first(public: Deployment) -> None:
    visitor = Visitor(public)
    visitor.enter(Role.ANALYST)
    public.aggregator.store.set_read_only(on=True)

    assert "No report is accepted: the store is read-only." in visitor.get(HERE).text


def test_a_lock_of_releases_is_told(deployed: Deployment) -> None:
    lock_releases(deployed.aggregator.store, "restored from a backup")

    assert "Releases locked" in _look(deployed)
    assert "locked: restored from a backup" in _look(deployed, Role.ADMIN)


# -- for admins ------------------------------------------------------------------------------------


def test_who_changed_what_is_for_admins(deployed: Deployment) -> None:
    deployed.key(Role.DEVICE, "the app")
    analyst, admin = _look(deployed), _look(deployed, Role.ADMIN)

    assert "Audit log" not in analyst
    assert "cli keys create device" in admin
    assert "cli collections push theme, opened, alone" in admin


def test_places_of_the_machine_are_for_admins(deployed: Deployment, tmp_path: Path) -> None:
    place = str(tmp_path)

    assert place not in _look(deployed)
    assert place in _look(deployed, Role.ADMIN)


# -- the clock -------------------------------------------------------------------------------------


def test_a_clock_in_doubt_is_the_sentence_on_top(public: Deployment) -> None:
    public.aggregator.look_at_clock()
    before = _look(public)
    public.clocks.now += timedelta(days=40)
    public.aggregator.look_at_clock()
    during = _look(public)

    assert "Clock agrees" in before
    assert "No report is accepted: the clock of this host is not trusted." in during
    assert "this host's clock jumped 3,456,000 s forward" in during


def test_a_day_that_waits_for_confirmation_is_found(public: Deployment) -> None:
    """By analysts too: rows are kept for longer than was promised."""
    confirm_day(public.aggregator.store, public.clocks.now - timedelta(days=9), "test")

    assert "9 days before this machine" in _look(public)


# -- shards ----------------------------------------------------------------------------------------


def test_a_store_of_one_part_has_no_table_of_shards(public: Deployment) -> None:
    assert "Append-only file" not in _look(public)


def test_each_shard_is_shown_and_one_that_is_away_takes_no_page_along(tmp_path: Path) -> None:
    cluster = RedisCluster(tmp_path)
    with deployment(tmp_path, FILE, url=cluster.url) as made:
        visitor = Visitor(made)
        visitor.enter(Role.ANALYST)
        whole = visitor.get(HERE)
        store = made.aggregator.store
        assert isinstance(store, RedisStore)
        masters = {cluster.master_of(base) for base in store.identity.bases}
        next(iter(masters - {cluster.master_of(RECORDS_BASE)})).kill()
        parts = visitor.get(HERE)
    cluster.close()

    assert (whole.status, parts.status) == (200, 200)
    assert "12 of 12" in whole.text
    assert "8 of 12" in parts.text
    assert (whole.html.count(">unreachable<"), parts.html.count(">unreachable<")) == (0, 4)
    assert "cover the others" in parts.text


# -- durability ------------------------------------------------------------------------------------


def test_a_redis_that_was_made_unsafe_is_on_top_without_its_address(tmp_path: Path) -> None:
    """The page is read by who was logged in before: a log-in is a record, and not kept safely."""
    redis = RedisServer(tmp_path)
    try:
        with deployment(tmp_path, FILE, url=redis.url) as made:
            visitor = Visitor(made)
            visitor.enter(Role.ANALYST)
            redis.ask("CONFIG", "SET", "appendfsync", "everysec")
            page = visitor.get(HERE).text
    finally:
        redis.kill()

    assert "No report is accepted: it could be lost." in page
    assert "appendfsync everysec: a power cut takes acknowledged reports" in page
    assert "veilcount store check" in page
    assert str(redis.port) not in page
