"""Each fault that is planted in a healthy deployment is found, with its fix, by the command."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions
from veilcount_aggregator.releases.release_journal import ReleaseJournal
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import Record, open_store
from veilcount_aggregator.store.sqlite.connection import SqliteUrl

from ....issuer.issuer_fixtures import FILE as TOKEN_FILE
from ....redis_server import RedisServer
from ...web.api.deployment_fixtures import FILE, NOW
from .test_redis_checks import redis

PASSWORD = "a-password-of-this-test"
OWNER, ALL = 0o700, 0o777
TEXTS = ("fingerprint", "canonical", "day", "actor")
LINE: dict[str, object] = {**dict.fromkeys(TEXTS, ""), "charges": {}, "answer": {}}


@dataclass
class Site:
    """A deployment, and what lasts as long as it does."""

    folder: Path
    store: str
    stack: ExitStack
    options: list[str] = field(default_factory=list)
    server: RedisServer | None = None

    @property
    def path(self) -> Path:
        return SqliteUrl.parse(self.store).path

    @property
    def backups(self) -> Path:
        return self.folder / "backups"

    def ask(self, *command: str) -> None:
        assert self.server is not None
        self.server.ask(*command)

    def command(self) -> list[str]:
        return ["doctor", "--deep", "--json", "--store", self.store, *self.options]


Plant = Callable[[Site], object]


def make_store(url: str) -> None:
    with closing(open_store(url, make=True)) as store:
        add_definitions(store, DefinitionSource(FILE), NOW, "test")


def sqlite_site(folder: Path, stack: ExitStack) -> Site:
    """A SQLite store with its journal of releases, and a backup elsewhere."""
    for name in ("store", "backups"):
        (folder / name).mkdir(mode=OWNER)
    site = Site(folder, f"sqlite:///{folder}/store/store.db", stack)
    make_store(site.store)
    journal = ReleaseJournal.from_settings(Settings(site.store))
    assert journal is not None
    journal.keep([LINE])
    assert run(["store", "backup", str(site.backups / "today.db"), "--store", site.store]) == 0
    site.options = ["--backups", str(site.backups)]
    return site


def redis_site(folder: Path, stack: ExitStack) -> Site:
    settings = {"requirepass": PASSWORD, "masterauth": PASSWORD, "maxmemory": "256mb"}
    server = stack.enter_context(redis(folder / "redis", **settings))
    make_store(server.url)
    return Site(folder, server.url, stack, server=server)


def issuer_site(folder: Path, stack: ExitStack) -> Site:
    for name in ("store", "definitions", "keys"):
        (folder / name).mkdir(mode=OWNER)
    site = Site(folder, f"sqlite:///{folder}/store/issuer.db", stack)
    definitions = folder / "definitions" / "collections.toml"
    definitions.write_text(TOKEN_FILE)
    open_store(site.store, make=True).close()
    site.options = ["--issuer", str(definitions), "--keys", str(folder / "keys")]
    return site


SITES = {"SQLite": sqlite_site, "Redis": redis_site, "issuer": issuer_site}


# -- faults ----------------------------------------------------------------------------------------


def reader_that_stays(site: Site) -> None:
    """It reads an older state, while more is written than a checkpoint waits for."""
    reader = site.stack.enter_context(closing(sqlite3.connect(site.path, isolation_level=None)))
    reader.execute("begin")
    reader.execute("select count(*) from sqlite_schema").fetchone()
    previous = None
    store = site.stack.enter_context(closing(open_store(site.store)))
    for number in range(18):
        content = bytes([number]) * (1 << 20)
        store.change_record(Record("note", "large", content), previous)
        previous = content


def damaged_page(site: Site) -> None:
    with site.path.open("r+b") as file:
        file.seek(-2 * 4096, os.SEEK_END)
        file.write(bytes(range(256)) * 16)


def journal_among_backups(site: Site) -> None:
    site.options += ["--journal", str(site.backups / "releases")]
    (site.backups / "releases").touch(0o600)


def replica_that_no_write_waits_for(site: Site) -> None:
    assert site.server is not None
    settings = {"requirepass": PASSWORD, "masterauth": PASSWORD}
    replica = site.stack.enter_context(redis(site.folder / "replica", **settings))
    replica.follow(site.server)


def no_password(site: Site) -> None:
    """The port that the store's URL names answers everybody."""
    site.ask("ACL", "SETUSER", "aggregator", "on", f">{PASSWORD}", "~*", "&*", "+@all")
    site.store = site.store.replace(f":{PASSWORD}", f"aggregator:{PASSWORD}")
    site.ask("ACL", "SETUSER", "default", "nopass")


def foreign_database(site: Site) -> None:
    assert site.server is not None
    with site.server.connection() as connection:
        connection.select(3)
        connection.set("session:5", "another's")


def mode(path: str, bits: int) -> Plant:
    """Give a file or a folder of the deployment the mode."""
    return lambda site: (site.folder / path).chmod(bits)


def config(setting: str, value: str) -> Plant:
    return lambda site: site.ask("CONFIG", "SET", setting, value)


JOURNAL = "store/store.db.releases.jsonl"
#: engine, fault, how it is planted, the check that finds it, and its fix
PLANTS: list[tuple[str, str, Plant, str, str]] = [
    ("SQLite", "store file 0644", mode("store/store.db", 0o644), "store permissions", "chmod 600 "),
    ("SQLite", "journal 0644", mode(JOURNAL, 0o644), "store permissions", "chmod 600 "),
    ("SQLite", "store directory 0777", mode("store", ALL), "store permissions", "chmod go-w "),
    ("SQLite", "a reader holds the log", reader_that_stays, "store log", "fuser -v "),
    ("SQLite", "a damaged page", damaged_page, "store pages", "restore the newest intact backup"),
    ("SQLite", "backup 0644", mode("backups/today.db", 0o644), "backups permissions", "chmod 600 "),
    ("SQLite", "backups 0777", mode("backups", ALL), "backups permissions", "chmod go-w "),
    ("SQLite", "journal with backups", journal_among_backups, "backups journal", "as --journal"),
    ("SQLite", "a copied journal with backups",
     lambda site: (site.backups / "old.releases.jsonl").touch(0o600),
     "backups journal", "to another disk"),
    ("Redis", "a replica, and no ?replicas", replica_that_no_write_waits_for,
     "store replicas", "end the store's URL in ?replicas=1"),
    ("Redis", "no password", no_password, "Redis password", "requirepass"),
    ("Redis", "no maxmemory", config("maxmemory", "0"), "Redis memory", "CONFIG SET maxmemory "),
    ("Redis", "a timeout", config("timeout", "300"), "Redis settings", "CONFIG SET timeout 0"),
    ("Redis", "few connections", config("maxclients", "200"),
     "Redis settings", "CONFIG SET maxclients 10000"),
    ("Redis", "no rewrites", config("auto-aof-rewrite-percentage", "0"),
     "Redis settings", "CONFIG SET auto-aof-rewrite-percentage 100"),
    ("Redis", "a foreign key", lambda site: site.ask("SET", "session:5", "another's"),
     "Redis other keys", "its own Redis"),
    ("Redis", "a foreign database", foreign_database, "Redis other keys", "its own Redis"),
    ("issuer", "store directory 0777", mode("store", ALL), "issuer permissions", "go-w "),
    ("issuer", "definitions 0777", mode("definitions", ALL), "issuer directories", "go-w "),
    ("issuer", "keys 0777", mode("keys", ALL), "issuer directories", "go-w "),
]  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "plant", "check", "fix"),
    [pytest.param(engine, *found, id=f"{engine}: {fault}") for engine, fault, *found in PLANTS],
)
def test_a_fault_is_found_with_its_fix_and_a_healthy_deployment_is_ok(
    engine: str,
    plant: Plant,
    check: str,
    fix: str,
    *,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def results(site: Site) -> list[tuple[str, str]]:
        """Return state and fix of each finding of the plant's check."""
        capsys.readouterr()
        run(site.command())
        findings = json.loads(capsys.readouterr().out)["findings"]
        return [
            (finding["state"], finding["fix"])
            for finding in findings
            if f"{finding['target'].split()[0]} {finding['check']}" == check
        ]

    with ExitStack() as stack:
        site = SITES[engine](tmp_path, stack)
        before = results(site)
        plant(site)
        after = results(site)

    assert {state for state, _ in before} == {"ok"}
    assert [fix in text for state, text in after if state != "ok"] == [True]
