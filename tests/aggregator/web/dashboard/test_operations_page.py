"""The operations page: the figures of the service, and no secret ones."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from veilcount_aggregator.intake.group_intake import GROUP
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.clock_confirmation import confirm_day
from veilcount_aggregator.records.service_counters import ANSWERED, REFUSED
from veilcount_aggregator.store import VERDICT, ServiceCounter
from veilcount_aggregator.store.redis.identity import RECORDS_BASE
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_aggregator.store.restore_lock import lock_releases
from veilcount_aggregator.web.api.request_metrics import MICROSECONDS
from veilcount_aggregator.web.dashboard.operations.counter_panels import commit_chart, latencies
from veilcount_aggregator.web.dashboard.operations.page import pseudonym_quotas
from veilcount_shared.verdict import Verdict

from ....redis_cluster import RedisCluster
from ....redis_server import RedisServer
from ...queries.simulated_reports import counted, send
from ..api.deployment_fixtures import FILE, Deployment, deployment
from .page_fixtures import logged_in

HERE = "/operations"


def page_text(made: Deployment, role: Role = Role.ANALYST, query: str = "") -> str:
    return logged_in(made, role).get(HERE + query).text


# -- verdicts --------------------------------------------------------------------------------------


def test_verdicts_are_counted_by_collection_and_drawn_by_period(public: Deployment) -> None:
    counted(send(public, "theme", [100, 50, 7]))
    counted(send(public, "opened", [1, 2], period=1))
    report = public.report("theme")
    public.verdicts(report)
    public.verdicts(report)
    public.verdicts(public.report("opened", slot=9))
    public.verdicts(public.report("theme", fingerprint="0" * 64))
    stale = ServiceCounter(VERDICT, public.series("opened").fingerprint, 2, Verdict.STALE)
    counters = {ServiceCounter(REFUSED, "", -1, "too-large"): 1234, stale: 4}
    public.aggregator.store.commit([], counters)
    public.aggregator.flush()
    text, chosen = page_text(public), page_text(public, query="?collection=opened")

    assert "Collection counted duplicate over budget too late of unknown definitions" in text
    assert "theme 158 1 0 0 0 opened 3 0 1 4 0 (unknown definitions) 0 0 0 0 1" in text
    assert "Body too large: 1,234" in text
    assert "Devices connect directly" in text
    assert "Reports for opened by verdict; each bar one day" in chosen
    assert "no period 0 1 0 2026-12-02 3 0 0 2026-12-03 0 0 4" in chosen
    for shown in (text, page_text(public, query="?collection=nothing")):
        assert "Reports for theme by verdict; each bar one month" in shown


def test_secret_counts_are_on_no_page(deployed: Deployment) -> None:
    counted(send(deployed, "visits", [111, 222], period=2))
    counted(send(deployed, "theme", [5, 0, 0]))
    page_text(deployed, Role.ADMIN)
    deployed.aggregator.flush()
    text = page_text(deployed, Role.ADMIN, "?collection=visits")
    series, today = deployed.aggregator.known().catalog.series, deployed.aggregator.today()
    quotas = pseudonym_quotas(deployed.aggregator.store, series.values(), 100, today)

    assert "Not listed, since exact counts would reveal who took part: visits." in text
    assert "Requests per commit are withheld" in text
    assert "Route" not in text
    assert "The reports endpoint is left out." in text
    assert "333" not in text
    assert "Reports for visits" not in text
    assert [quota.name for quota in quotas] == ["theme"]


# -- the service -----------------------------------------------------------------------------------


def test_latencies_are_upper_bounds_and_commits_are_counted_by_their_requests() -> None:
    counters = {
        ServiceCounter(kind, "", -1, label): number
        for kind, label, number in (
            (ANSWERED, "reports:2xx:0.005", 50), (ANSWERED, "reports:2xx:0.01", 45),
            (ANSWERED, "reports:5xx:+Inf", 5), (MICROSECONDS, "reports", 1_000_000),
            (GROUP, "1", 9), (GROUP, "4", 2),
        )
    }  # fmt: skip
    chart = commit_chart(counters)

    assert latencies(counters, intake=True) == [
        ("reports", 100, 5, "10.0 ms", ("5 ms", "10 ms", "over 10 s"))
    ]
    assert latencies(counters, intake=False) == []
    assert chart is not None
    assert chart.rows == [("1", "9"), ("2", "0"), ("3 to 4", "2")]
    assert commit_chart({}) is None


def test_a_period_near_its_pseudonym_limit_is_marked(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE, max_new_pseudonyms=100) as made:
        counted(send(made, "theme", [79, 0, 0]))

        assert "nearly full" not in page_text(made)
        counted(send(made, "theme", [1, 0, 0]))
        assert "theme 2026-12-01 80 100 nearly full" in page_text(made)


# -- the store and the clock -----------------------------------------------------------------------


def test_what_is_wrong_with_store_and_clock_is_the_conclusion(public: Deployment) -> None:
    """Analysts learn of an unconfirmed day, too: rows are kept for longer than promised."""
    store, visitor = public.aggregator.store, logged_in(public)
    public.aggregator.look_at_clock()
    sound = visitor.get(HERE).text
    confirm_day(store, public.clocks.now - timedelta(days=9), "test")
    unconfirmed = visitor.get(HERE).text
    store.set_read_only(on=True)
    read_only = visitor.get(HERE).text
    store.set_read_only(on=False)
    public.clocks.now += timedelta(days=40)
    public.aggregator.look_at_clock()
    jumped = page_text(public)

    assert "Store sqlite" in sound
    assert "Acknowledged reports lost in a power failure durability=relaxed" in sound
    assert "1 check failed." in sound
    assert "remove durability=relaxed from" in sound
    assert "Clock agrees" in sound
    assert "Append-only file" not in sound  # the table of shards
    assert "9 days before this machine" in unconfirmed
    assert "No report is accepted: the store is read-only." in read_only
    assert "No report is accepted: the clock of this host is not trusted." in jumped
    assert "this host's clock jumped 3,456,000 s forward" in jumped


def test_audit_log_paths_and_reasons_of_a_lock_are_for_admins(
    deployed: Deployment, tmp_path: Path
) -> None:
    deployed.key(Role.DEVICE, "the app")
    lock_releases(deployed.aggregator.store, "restored from a backup")
    analyst, admin = page_text(deployed), page_text(deployed, Role.ADMIN)
    for_admins = (
        *("Audit log", "cli keys create device", "cli collections push theme, opened, alone"),
        *(str(tmp_path), "locked: restored from a backup"),
    )

    assert "Releases locked" in analyst
    assert [for_admin for for_admin in for_admins if for_admin in analyst] == []
    assert [for_admin for for_admin in for_admins if for_admin not in admin] == []


def test_shards_are_listed_and_an_unreachable_one_does_not_fail_the_page(tmp_path: Path) -> None:
    cluster = RedisCluster(tmp_path)
    with deployment(tmp_path, FILE, url=cluster.url) as made:
        visitor = logged_in(made)
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


def test_a_redis_that_became_unsafe_is_the_conclusion_without_its_address(tmp_path: Path) -> None:
    """Only who was logged in before reads it: a new session could not be stored durably."""
    redis = RedisServer(tmp_path)
    try:
        with deployment(tmp_path, FILE, url=redis.url) as made:
            visitor = logged_in(made)
            redis.ask("CONFIG", "SET", "appendfsync", "everysec")
            text = visitor.get(HERE).text
    finally:
        redis.kill()

    assert "No report is accepted: it could be lost." in text
    assert "appendfsync everysec: a power cut takes acknowledged reports" in text
    assert "veilcount store check" in text
    assert str(redis.port) not in text
