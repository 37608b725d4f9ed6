"""`veilcount doctor`: a sound deployment passes, and each thing that can be wrong is found."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest

from tests.aggregator.api.deployment_fixtures import CENTRAL, FILE, NOW, Deployment, deployment
from tests.aggregator.cli.server_fixtures import listening
from tests.aggregator.store.series_fixtures import drop_and_delete
from tests.redis_cluster import RedisCluster
from tests.redis_server import HOST, RedisServer
from tests.system.server import Server, free_port, wait_until
from veilcount_aggregator.api.request_metrics import ANSWERED, REFUSED
from veilcount_aggregator.auth.api_keys import (
    Role,
    create_key,
    load_api_keys,
    record_key_use,
    revoke_key,
)
from veilcount_aggregator.catalog.definitions import DefinitionSource, add_definitions
from veilcount_aggregator.central.budget_ledger import StoredRelease
from veilcount_aggregator.central.release_journal import ReleaseJournal
from veilcount_aggregator.cli.main import run
from veilcount_aggregator.doctor import (
    Finding,
    Severity,
    examine_backups,
    examine_server,
    examine_store,
    worst,
)
from veilcount_aggregator.doctor.tls import http_redirect
from veilcount_aggregator.doctor.verdict_checks import read_metrics, verdict_problems
from veilcount_aggregator.errors import SettingsError, StoreUnfit
from veilcount_aggregator.ingest.pipeline import LOSS
from veilcount_aggregator.retention.retention_guard import confirm_day
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import VERDICT, ServiceCounter, Store, open_store
from veilcount_aggregator.store.backup import backup
from veilcount_aggregator.store.records import update_records
from veilcount_aggregator.store.restore_lock import lock_releases
from veilcount_aggregator.store.transfer_format import content_digest
from veilcount_shared.verdict import Verdict

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Place:
    """A SQLite store in a folder, sound in every way."""

    folder: Path

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / "sound.db"

    @property
    def url(self) -> str:
        """The store."""
        return f"sqlite:///{self.path}"

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """Open it."""
        with closing(open_store(self.url)) as store:
            yield store

    def looked_at(
        self, now: datetime = NOW, *, deep: bool = False, **settings: Any
    ) -> dict[str, Finding]:
        """Return what is found, by check: the worst of each."""
        found = examine_store(Settings(self.url, **settings), lambda: now, deep=deep)
        return by_check(found)


def by_check(found: Iterator[Finding]) -> dict[str, Finding]:
    """Return the worst finding of each check."""
    kept: dict[str, Finding] = {}
    for each in found:
        known = kept.setdefault(each.check, each)
        if worst([known, each]) is not known.state:
            kept[each.check] = each
    return kept


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A store with definitions and an admin's key."""
    made = Place(tmp_path)
    with closing(open_store(made.url, make=True)) as store:
        add_definitions(store, DefinitionSource(FILE), NOW, "test")
        create_key(store, Role.ADMIN, "init", NOW)
    return made


# -- a store ---------------------------------------------------------------------------------------


def test_in_a_sound_store_nothing_is_complained_about_but_what_a_definition_says(
    place: Place,
) -> None:
    found = place.looked_at(deep=True)
    complaints = {check for check, each in found.items() if each.state is not Severity.OK}

    assert complaints == {"remarks"}
    assert "theme, epsilon" in found["remarks"].what
    assert len(found) >= 12


@pytest.mark.parametrize(
    ("days", "state", "said"),
    [
        (0, Severity.OK, "2026-12-03 is confirmed"),
        (2, Severity.OK, "2026-12-03 is confirmed"),
        (3, Severity.WARN, "3 days seem to have passed"),
        (-1, Severity.WARN, "2026-12-03 is confirmed, and to come"),
    ],
)
def test_rows_that_are_not_dropped_since_a_day_waits_for_confirmation_are_told(
    place: Place, days: int, state: Severity, said: str
) -> None:
    """With the command that confirms it."""
    with place.opened() as store:
        confirm_day(store, NOW, "test")
    found = place.looked_at(NOW + timedelta(days=days))["retention"]

    assert (found.state, said in found.what) == (state, True)
    assert ("store confirm-clock" in found.fix) == (days > 2)


def test_looking_changes_nothing(place: Place) -> None:
    def content() -> str:
        with place.opened() as store:
            return content_digest(store.export_pieces())

    before = content()
    place.looked_at(deep=True)

    assert content() == before


def read_only(place: Place) -> None:
    with place.opened() as store:
        store.set_read_only(on=True)


def locked(place: Place) -> None:
    with place.opened() as store:
        lock_releases(store, "restored from a backup")


def readable_by_others(place: Place) -> None:
    place.path.chmod(0o644)


def flooded_log(place: Place) -> None:
    with place.path.with_name("sound.db-wal").open("wb") as file:
        file.truncate(200 << 20)  # sparse: no disk is filled


def without_admin(place: Place) -> None:
    with place.opened() as store:
        (key,) = load_api_keys(store).keys.values()
        revoke_key(store, key.id, NOW)


def without_device_keys(place: Place) -> None:
    with place.opened() as store:
        key, _ = create_key(store, Role.DEVICE, "app", NOW)
        revoke_key(store, key.id, NOW)


def never_used(place: Place) -> None:
    with place.opened() as store:
        create_key(store, Role.ANALYST, "ann", NOW - 40 * DAY)


def admin_every_day(place: Place) -> None:
    with place.opened() as store:
        key, _ = create_key(store, Role.ADMIN, "bob", NOW - 20 * DAY)
        record_key_use(store, key, NOW)


def central_without_journal_line(place: Place) -> None:
    with place.opened() as store:
        add_definitions(store, DefinitionSource(CENTRAL), NOW, "test")
    journal = ReleaseJournal.from_settings(Settings(place.url))
    assert journal is not None
    kept = {"fingerprint": "f", "canonical": "q", "charges": {}, "answer": {}, "day": "", "who": ""}
    journal.keep([kept])


def damaged_journal(place: Place) -> None:
    central_without_journal_line(place)
    file = place.folder / "sound.db.releases.jsonl"
    file.write_text(file.read_text().replace('"q"', '"p"'))


@pytest.mark.parametrize(
    ("plant", "check", "state", "says"),
    [
        (read_only, "taking reports", Severity.WRONG, ("read-only", "store allow-writes")),
        (locked, "releases", Severity.WRONG, ("restored", "store unlock")),
        (readable_by_others, "permissions", Severity.WARN, ("sound.db", "chmod 600")),
        (flooded_log, "log", Severity.WARN, ("200 MiB", "end it")),
        (without_admin, "keys", Severity.WARN, ("no admin key", "init --key")),
        (without_device_keys, "keys", Severity.WARN, ("device keys are revoked", "--role device")),
        (never_used, "keys", Severity.WARN, ("(ann) was made on 2026-10-24", "keys revoke")),
        (
            admin_every_day,
            "keys",
            Severity.WARN,
            ("(bob) was used on 2026-12-03", "--role analyst"),
        ),
        (central_without_journal_line, "journal", Severity.WRONG, ("forgotten", "store unlock")),
        (damaged_journal, "journal", Severity.WRONG, ("line 1: damaged", "run it again")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_wrong_is_found_with_what_to_do(
    place: Place, plant: Callable[[Place], None], check: str, state: Severity, says: tuple[str, str]
) -> None:
    before = place.looked_at()[check]
    plant(place)
    found = place.looked_at()[check]

    assert before.state is Severity.OK
    assert found.state is state
    assert says[0] in found.what
    assert says[1] in found.fix


def test_releases_that_no_journal_remembers_are_wrong(place: Place) -> None:
    kept = StoredRelease("f", "q", {}, {}, "2026-12-03", "ann")
    with place.opened() as store:
        add_definitions(store, DefinitionSource(CENTRAL), NOW, "test")
        update_records(store, lambda: ([kept.record(0)], None))
    lost = place.looked_at()["journal"]
    elsewhere = place.folder / "elsewhere.jsonl"
    ReleaseJournal(elsewhere).keep([kept.line()])
    found = place.looked_at(journal=elsewhere)["journal"]

    assert (lost.state, found.state) == (Severity.WRONG, Severity.OK)
    assert "--journal" in lost.fix


def test_what_a_power_cut_would_take_is_wrong(place: Place) -> None:
    settings = Settings(f"{place.url}?durability=relaxed")
    found = by_check(examine_store(settings, lambda: NOW, deep=False))

    assert found["durable"].state is Severity.WRONG


def test_definitions_are_followed_to_their_end(place: Place, tmp_path: Path) -> None:
    """`theme` ends a year after its start, the others in December."""
    ends_soon = place.looked_at(NOW + 20 * DAY)["definitions"]
    over = place.looked_at(NOW + 600 * DAY)["definitions"]
    empty = f"sqlite:///{tmp_path}/empty.db"
    open_store(empty, make=True).close()
    nothing = by_check(examine_store(Settings(empty), lambda: NOW, deep=False))["definitions"]

    assert "opened ends on 2026-12-31" in ends_soon.what
    assert "no report is counted" in over.what
    assert "collections push" in nothing.fix


def test_a_period_that_is_full_is_wrong_and_one_that_will_be_is_told(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as made:
        for _ in range(5):
            made.verdicts(made.report("theme"))
        states = [
            by_check(
                examine_store(
                    Settings(made.aggregator.settings.store, max_new_pseudonyms=room),
                    soon,
                    deep=False,
                )
            )["new pseudonyms"].state
            for room in (5, 6, 100)
        ]

    assert states == [Severity.WRONG, Severity.WARN, Severity.OK]


def soon() -> datetime:
    """Return the instant of the tests."""
    return NOW


# -- what became of reports ------------------------------------------------------------------------


def noted(made: Deployment, *, verdict: Verdict, times: int, fingerprint: str = "") -> None:
    """Have a verdict counted so often."""
    made.aggregator.store.commit([], {ServiceCounter(VERDICT, fingerprint, -1, verdict): times})


@pytest.mark.parametrize(
    "verdict",
    [Verdict.OVER_BUDGET, Verdict.MALFORMED, Verdict.EARLY, Verdict.STALE, Verdict.FULL],
)
def test_verdicts_that_honest_devices_do_not_get_stand_out(
    tmp_path: Path, verdict: Verdict
) -> None:
    with deployment(tmp_path, FILE) as made:
        fingerprint = made.series("theme").fingerprint
        noted(made, verdict=Verdict.DUPLICATE, times=90, fingerprint=fingerprint)
        before = looked(made)["verdicts"]
        noted(made, verdict=verdict, times=10, fingerprint=fingerprint)
        after = looked(made)["verdicts"]

    assert before.state is Severity.OK
    assert after.state is Severity.WARN
    assert f"10.00% of theme's reports were {verdict}" in after.what


def test_reports_of_a_definition_that_was_never_pushed_stand_out(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as made:
        noted(made, verdict=Verdict.UNKNOWN_COLLECTION, times=100)
        found = looked(made)["verdicts"]

    assert "collections push" in found.fix


def test_requests_without_a_key_stand_out_and_a_server_says_what_its_store_says(
    tmp_path: Path,
) -> None:
    notes = {
        ServiceCounter(ANSWERED, "", -1, "reports:2xx:0.001"): 60,
        ServiceCounter(ANSWERED, "", -1, "reports:4xx:0.001"): 40,
        ServiceCounter(ANSWERED, "", -1, "health:2xx:0.001"): 900,
        ServiceCounter(REFUSED, "", -1, "no-key"): 40,
        ServiceCounter(LOSS, "x", -1, "aged:1"): 7,
    }
    with deployment(tmp_path, FILE) as made:
        made.aggregator.store.commit([], notes)
        analyst = made.key(Role.ANALYST)
        found = looked(made)["verdicts"]
        told = list(
            verdict_problems(read_metrics(made.ask("GET", "/metrics", key=analyst).body.decode()))
        )

    assert found.what == "40.00% of requests were without a key"
    assert [each.what for each in told] == [found.what]


def test_where_a_count_may_not_leave_no_share_of_it_does(tmp_path: Path) -> None:
    with deployment(tmp_path, CENTRAL) as made:
        fingerprint = made.series("visits").fingerprint
        noted(made, verdict=Verdict.MALFORMED, times=1_000, fingerprint=fingerprint)
        made.aggregator.store.commit([], {ServiceCounter(REFUSED, "", -1, "no-key"): 1_000})
        made.aggregator.store.commit(
            [], {ServiceCounter(ANSWERED, "", -1, "reports:4xx:0.1"): 1_000}
        )
        found = looked(made, max_new_pseudonyms=1)

    assert found["verdicts"].state is Severity.OK
    assert found["new pseudonyms"].state is Severity.OK


def test_counters_that_fill_their_memory_are_reported(tmp_path: Path) -> None:
    """What is taken and what may be: of a series, and of the store where it has a limit."""
    with deployment(tmp_path, FILE) as made:
        made.verdicts(made.report("theme"))
        check = "memory of counters"
        well = looked(made)[check]
        near = looked(made, max_series_memory=400)[check]
        at_most = looked(made, max_series_memory=4000)[check]
        together = looked(made, max_store_memory=400)[check]

    assert well.state is Severity.OK
    assert "each is held to 256 MB" in well.what
    assert near.state is Severity.WRONG
    assert "counters take 344 bytes of 400 bytes" in near.what
    assert at_most.state is Severity.WARN
    assert "beyond 3.91 KB reports are full" in at_most.what
    assert together.state is Severity.WRONG
    assert "all counters take 344 bytes of 400 bytes" in together.what


def looked(made: Deployment, **settings: Any) -> dict[str, Finding]:
    """Return what is found in a deployment's store."""
    given = Settings(made.aggregator.settings.store, **settings)
    return by_check(examine_store(given, lambda: made.clocks.now, deep=False))


# -- the books -------------------------------------------------------------------------------------


def spoiled(path: Path, statement: str) -> None:
    """Change a store behind its back."""
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute(statement).rowcount


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("update tally set n = n + 1", "differ by 1"),
        ("update new_rows set rows = rows + 2", "rows of the ledger differ by 2"),
        ("update spent_rows set rows = zeroblob(8)", "histogram differ by 3"),
    ],
    ids=lambda value: value.split()[1] if value.startswith("update") else "",
)
def test_books_that_disagree_are_wrong(tmp_path: Path, statement: str, says: str) -> None:
    with deployment(tmp_path, FILE) as made:
        for _ in range(3):
            made.verdicts(made.report("alone"))
        url = made.aggregator.settings.store
        sound = deep(url)["consistency"]
        spoiled(tmp_path / "store.db", statement)
        found = deep(url)["consistency"]

    assert sound.state is Severity.OK
    assert found.state is Severity.WRONG
    assert says in found.what


def test_books_agree_while_reports_come_in(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as made:
        url = made.aggregator.settings.store
        coming = threading.Thread(
            target=lambda: [made.verdicts(made.report("theme")) for _ in range(60)]
        )
        coming.start()
        states = {deep(url)["consistency"].state}
        while coming.is_alive():
            states.add(deep(url)["consistency"].state)
        coming.join()

    assert states == {Severity.OK}


def deep(url: str) -> dict[str, Finding]:
    """Return what a deep look finds."""
    return by_check(examine_store(Settings(url), lambda: NOW, deep=True))


def test_books_agree_where_somebody_was_forgotten_and_an_epoch_dropped(tmp_path: Path) -> None:
    """A closed row has all its slots spent, and a dropped epoch has no rows."""
    with deployment(tmp_path, FILE) as made:
        report = made.report("theme")
        made.verdicts(report)
        made.verdicts(made.report("opened"))
        made.aggregator.store.close_row(made.series("theme"), [0], report.pseudonym[:12])
        drop_and_delete(made.aggregator.store, made.series("opened"), 20)

        assert deep(made.aggregator.settings.store)["consistency"].state is Severity.OK


def test_a_damaged_page_is_found(place: Place) -> None:
    with place.path.open("r+b") as file:
        file.seek(-4096 * 2, os.SEEK_END)
        file.write(os.urandom(4096))

    found = place.looked_at(deep=True)

    assert worst(found.values()) is Severity.WRONG


# -- backups ---------------------------------------------------------------------------------------


def test_the_newest_backup_is_read_through(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    (folder / "notes.txt").write_text("none of these")
    empty = list(examine_backups(folder, NOW))
    backup(place.url, folder / "monday.db")
    now = datetime.now(UTC)
    fresh, whole = examine_backups(folder, now)
    late, _ = examine_backups(folder, now + 3 * DAY)
    too_late, _ = examine_backups(folder, now + 8 * DAY)
    (folder / "tuesday.db").write_bytes((folder / "monday.db").read_bytes()[:-4096])
    os.utime(folder / "tuesday.db", (now.timestamp() + 9, now.timestamp() + 9))
    *_, cut = examine_backups(folder, now)

    assert [each.state for each in empty] == [Severity.WRONG]
    assert [each.state for each in (fresh, whole)] == [Severity.OK, Severity.OK]
    assert [late.state, too_late.state] == [Severity.WARN, Severity.WRONG]
    assert cut.state is Severity.WRONG
    assert "tuesday.db" in cut.what


def test_where_there_is_no_folder_no_backup_is_believed_in(tmp_path: Path) -> None:
    (found,) = examine_backups(tmp_path / "none", NOW)

    assert found.state is Severity.WRONG


# -- Redis -----------------------------------------------------------------------------------------


@contextmanager
def redis(folder: Path, **settings: str) -> Iterator[RedisServer]:
    """Run a Redis of its own."""
    folder.mkdir(exist_ok=True)
    server = RedisServer(folder, port=free_port(), **settings)
    try:
        yield server
    finally:
        server.kill()


def wall_clock() -> datetime:
    """Return the instant that Redis tells too."""
    return datetime.now(UTC)


def looked_at(url: str, now: Callable[[], datetime] = wall_clock) -> dict[str, Finding]:
    """Return what is found of a Redis."""
    return by_check(examine_store(Settings(url), now, deep=False))


def test_a_redis_as_it_should_be_is_sound(tmp_path: Path) -> None:
    with redis(tmp_path) as server, deployment(tmp_path, FILE, url=server.url) as made:
        made.verdicts(made.report("theme"))
        found = by_check(examine_store(Settings(server.url), wall_clock, deep=True))

    for check in (
        "version",
        "settings",
        "memory",
        "disk",
        "role",
        "clock",
        "opened",
        "consistency",
    ):
        assert found[check].state is Severity.OK, found[check]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("appendonly", "no"),
        ("appendfsync", "everysec"),
        ("no-appendfsync-on-rewrite", "yes"),
        ("maxmemory-policy", "volatile-lru"),
        ("hash-max-listpack-entries", "16"),
        ("hash-max-listpack-value", "16"),
    ],
)
def test_each_setting_that_a_store_refuses_is_wrong_with_the_command_that_mends_it(
    tmp_path: Path, name: str, value: str
) -> None:
    with redis(tmp_path) as server:
        open_store(server.url, make=True).close()
        server.ask("CONFIG", "SET", name, value)
        found = looked_at(server.url)
        with pytest.raises(StoreUnfit, match=name):
            open_store(server.url)

    assert found["settings"].state is Severity.WRONG
    assert f"{name} {value}" in found["settings"].what
    assert f"CONFIG SET {name}" in found["settings"].fix


def test_all_weak_settings_are_told_at_once(tmp_path: Path) -> None:
    weak = {"appendonly": "no", "appendfsync": "no", "maxmemory-policy": "allkeys-lru"}
    with redis(tmp_path, **weak) as server:
        found = list(examine_store(Settings(server.url), soon, deep=False))

    assert sum(each.check == "settings" and each.state is Severity.WRONG for each in found) == 3


def test_a_redis_that_is_full_or_tells_another_time_is_wrong(tmp_path: Path) -> None:
    with redis(tmp_path) as server:
        open_store(server.url, make=True).close()
        used = int(dict(server.connection().info("memory"))["used_memory"])
        server.ask("CONFIG", "SET", "maxmemory", str(round(used * 1.05)))
        found = looked_at(server.url, lambda: datetime.now(UTC) + timedelta(hours=1))

    assert found["memory"].state is Severity.WRONG
    assert "of maxmemory is used" in found["memory"].what
    assert found["clock"].state is Severity.WRONG


def test_a_replica_takes_no_writes(tmp_path: Path) -> None:
    with (
        redis(tmp_path / "master") as master,
        redis(tmp_path / "replica", replicaof=f"{HOST} {master.port}") as replica,
    ):
        found = looked_at(replica.url)

    assert found["role"].state is Severity.WRONG
    assert "master" in found["role"].fix


@pytest.mark.full
def test_replicas_that_are_away_or_weaker_are_found(tmp_path: Path) -> None:
    with redis(tmp_path / "master") as master, redis(tmp_path / "replica") as replica:
        open_store(master.url, make=True).close()
        alone = looked_at(f"{master.url}?replicas=1")
        replica.follow(master)
        well = looked_at(f"{master.url}?replicas=1")
        replica.ask("CONFIG", "SET", "appendonly", "no")
        weaker = looked_at(master.url)

    assert alone["replicas"].state is Severity.WRONG
    assert "0 of 1 replicas are connected" in alone["replicas"].what
    assert well["replicas"].state is Severity.OK
    assert weaker["replicas"].state is Severity.WARN
    assert f"-p {replica.port} CONFIG SET appendonly yes" in weaker["replicas"].fix


def test_a_redis_that_is_away_is_one_finding() -> None:
    (found,) = examine_store(Settings(f"redis://{HOST}:{free_port()}/0"), soon, deep=False)

    assert found.state is Severity.WRONG
    assert "runs" in found.fix


@pytest.mark.full
def test_a_cluster_that_has_lost_a_master_is_wrong(tmp_path: Path) -> None:
    cluster = RedisCluster(tmp_path, cluster_require_full_coverage="yes")
    try:
        open_store(cluster.url, make=True).close()
        whole = looked_at(cluster.url)
        cluster.nodes[2].kill()
        wait_until(lambda: b"cluster_state:fail" in asked(cluster.nodes[0]))
        found = list(examine_store(Settings(cluster.url), soon, deep=False))
    finally:
        for node in cluster.nodes:
            node.kill()

    assert whole["cluster"].state is Severity.OK
    assert whole["coverage"].state is Severity.WARN
    assert worst(found) is Severity.WRONG


def asked(node: RedisServer) -> bytes:
    """Return what a node says of its cluster."""
    told = node.ask("CLUSTER", "INFO")
    assert isinstance(told, bytes)
    return told


# -- a server --------------------------------------------------------------------------------------


def test_a_real_server_is_sound_and_a_stopped_one_is_not(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with place.opened() as store:
        _, analyst = create_key(store, Role.ANALYST, "ann", NOW)
    with Server(place.url, tmp_path) as server:
        words = ["doctor", "--url", server.url, "--key", analyst, "--json"]
        served, document = run(words), json.loads(capsys.readouterr().out)
    stopped, after = run(words), json.loads(capsys.readouterr().out)

    assert (served, document["state"]) == (0, "ok")
    assert {each["check"] for each in document["findings"]} >= {"ready", "clock", "bodies", "key"}
    assert (stopped, after["state"]) == (1, "wrong")
    assert "Connection refused" in after["findings"][0]["what"]


def found_at(url: str, key: str = "", off: timedelta = timedelta(0)) -> dict[str, Finding]:
    """Return what is found at an address."""
    return by_check(examine_server(url, key, lambda: datetime.now(UTC) + off))


Proxy = Callable[[WSGIApplication], WSGIApplication]


def with_headers(**headers: str) -> Proxy:
    """Put headers on each answer; an empty one is removed."""
    changed = {name.replace("_", "-"): value for name, value in headers.items()}

    def proxy(app: WSGIApplication) -> WSGIApplication:
        def serve(environ: WSGIEnvironment, start: StartResponse) -> Any:
            def begin(status: str, given: list[tuple[str, str]], *_: Any) -> Any:
                kept = [pair for pair in given if pair[0] not in changed]
                return start(status, kept + [pair for pair in changed.items() if pair[1]])

            return app(environ, begin)

        return serve

    return proxy


def answering(path: str, status: str, most: int = 0, **headers: str) -> Proxy:
    """Answer one path in the aggregator's place, where a body is longer than so many bytes."""

    def proxy(app: WSGIApplication) -> WSGIApplication:
        def serve(environ: WSGIEnvironment, start: StartResponse) -> Any:
            size = int(environ.get("CONTENT_LENGTH") or 0)
            if environ["PATH_INFO"] != path or size < most:
                return app(environ, start)
            environ["wsgi.input"].read(size)
            start(status, [("Content-Type", "text/html"), *headers.items()])
            return [b"<h1>proxy</h1>"]

        return serve

    return proxy


@pytest.mark.parametrize(
    ("proxy", "check", "says"),
    [
        (with_headers(Set_Cookie="lb=1"), "headers", "cookie"),
        (with_headers(Cache_Control=""), "headers", "cached"),
        (with_headers(Age="7"), "headers", "out of a cache"),
        (answering("/v1/reports", "413 Too Large", 1 << 20), "bodies", "2,097,152 bytes"),
        (answering("/v1/reports", "301 Moved", Location="/x"), "bodies", "redirect"),
        (answering("/v1/reports", "502 Bad Gateway"), "bodies", "not by the aggregator"),
        (answering("/metrics", "200 OK"), "closed doors", "/metrics is answered without a key"),
        (answering("/healthz", "200 OK"), "answers", "no aggregator"),
        (answering("/healthz", "302 Found", Location="/login"), "answers", "HTTP 302"),
        (answering("/readyz", "200 OK"), "ready", "the check failed"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_what_a_proxy_spoils_is_found(tmp_path: Path, proxy: Proxy, check: str, says: str) -> None:
    with deployment(tmp_path, FILE) as made, listening(proxy(made.app.wsgi_app)) as url:
        found = found_at(url)

    assert found[check].state is Severity.WRONG
    assert says in found[check].what


def test_a_clock_that_is_off_and_a_server_that_names_its_version_are_told(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as made, listening(made.app.wsgi_app) as url:
        found = found_at(url, off=timedelta(minutes=5))
        right = found_at(url)

    assert (right["clock"].state, found["clock"].state) == (Severity.OK, Severity.WARN)
    assert "CPython" in found["headers"].what


def test_a_key_that_opens_nothing_is_wrong(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as made, listening(made.app.wsgi_app) as url:
        device = made.key(Role.DEVICE)
        found = found_at(url, device)

    assert found["key"].state is Severity.WRONG
    assert found["bodies"].state is Severity.OK  # refused for want of a key, and so arrived


def test_a_read_only_store_is_seen_from_outside(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as made, listening(made.app.wsgi_app) as url:
        made.aggregator.store.set_read_only(on=True)
        found = found_at(url)
        made.aggregator.store.set_read_only(on=False)

    assert "read-only" in found["ready"].what


def test_behind_tls_certificate_and_hsts_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = certificate(tmp_path)
    strict = with_headers(Strict_Transport_Security="max-age=31536000")
    with deployment(tmp_path, FILE) as made, listening(strict(made.app.wsgi_app), both) as url:
        stranger = found_at(url)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "certificate.pem"))
        friend = found_at(url)
        earlier = found_at(url, off=-20 * DAY)

    assert list(stranger) == ["answers"]
    assert stranger["answers"].what == "its certificate is not trusted: self-signed certificate"
    assert friend["transport"].state is Severity.OK
    assert friend["HSTS"].state is Severity.OK
    assert "its certificate holds until 20" in friend["certificate"].what
    assert friend["certificate"].state is Severity.WARN  # for two days
    assert earlier["certificate"].state is Severity.OK


def certificate(folder: Path) -> Path:
    """Make a certificate for the loopback; return it and its key in one file."""
    both = folder / "both.pem"
    order = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    name = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=IP:{HOST}"]
    files = ["-keyout", str(both), "-out", str(folder / "certificate.pem")]
    subprocess.run([*order, *name, *files], check=True, capture_output=True)
    both.write_text(both.read_text() + (folder / "certificate.pem").read_text())
    return both


def test_what_answers_in_clear_beside_tls_is_wrong_but_a_redirect(tmp_path: Path) -> None:
    onward = answering("/healthz", "308 Permanent Redirect", Location="https://stats.example.org/")
    with deployment(tmp_path, FILE) as made:
        with listening(made.app.wsgi_app) as url:
            (clear,) = http_redirect(url)
        with listening(onward(made.app.wsgi_app)) as url:
            (redirected,) = http_redirect(url)
        (nobody,) = http_redirect(f"http://{HOST}:{free_port()}")

    assert [clear.state, redirected.state, nobody.state] == [
        Severity.WRONG,
        Severity.OK,
        Severity.OK,
    ]


@pytest.mark.parametrize("url", ["stats.example.org", "ftp://x", "http://", "http://x:99999"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="https://"):
        list(examine_server(url, "", soon))


def test_no_key_is_sent_in_clear() -> None:
    with pytest.raises(SettingsError, match="in clear"):
        list(examine_server("http://stats.example.org", "secret", soon))


# -- the command -----------------------------------------------------------------------------------


def test_the_command_says_what_to_do_and_exits_with_1_if_something_is_wrong(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    well = run(["doctor", "--store", place.url])
    fine = capsys.readouterr()
    read_only(place)
    ill = run(["doctor", "--store", place.url])
    told = capsys.readouterr()

    assert (well, ill) == (0, 1)
    assert "no backup directory is given" in fine.out
    assert "read-only" in told.out
    assert "-> " in told.out
    assert told.err == ""


def test_nothing_to_look_at_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VEILCOUNT_STORE", raising=False)

    assert run(["doctor"]) == 2
    assert "VEILCOUNT_STORE" in capsys.readouterr().err
