"""The units of systemd: what they say is run, as it is written, by hands that are not systemd's."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions
from veilcount_aggregator.store import open_store
from veilcount_serving.worker_supervisor import DRAIN_SECONDS

from ..server import HOST, free_port, listens, wait_until
from ..test_serving import COUNTED, KNOWN, body, collection, counted, send
from .files import DEPLOY, PROGRAM, moved, text, unit, variables, words

SERVICE, BACKUP = unit("veilcount.service"), unit("veilcount-backup.service")
ISSUER, SHUFFLER = unit("veilcount-issuer.service"), unit("veilcount-shuffler.service")
WITNESS = Path("/var/lib/veilcount-witness")  # where the unit has another disk mounted
BATCHED = """
presence = "hidden"
batch = {least = 50, grace = 3}
linkage = "none"
"""
MOST_EXPOSED = 2.0  # of ten: what systemd itself calls OK
AS_ROOT = {"fchown"}  # where a test runs as root, SQLite gives its files to the store's owner


@contextmanager
def started(command: list[str], environ: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start what a unit starts, in the environment that it gives and no other."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPYCACHEPREFIX")}
    environment = kept | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment | environ, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def analyzed(*words: str) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A folder that is a host's root: with a store, and a place for backups."""
    for each in ("var/lib/veilcount", "var/lib/veilcount-backup", "var/backups/veilcount"):
        (tmp_path / each).mkdir(parents=True)
    url = moved(variables(SERVICE)["VEILCOUNT_STORE"], tmp_path, 0)
    with closing(open_store(url, make=True)) as store:
        add_definitions(store, DefinitionSource(KNOWN), datetime.now(UTC), "test")
    return tmp_path


def environment(host: Path) -> dict[str, str]:
    """Return what the unit's variables are at this host."""
    return {name: moved(value, host, 0) for name, value in variables(SERVICE).items()}


def handles_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (caught,) = re.findall(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def test_the_issuer_starts_and_ends_as_it_is_written(tmp_path: Path) -> None:
    """Next to the aggregator's service it is as little exposed, and leaves no core file."""
    (tmp_path / "var/lib/veilcount").mkdir(parents=True)
    at_host = {name: moved(value, tmp_path, 0) for name, value in variables(ISSUER).items()}
    definitions, store = (at_host[f"VEILCOUNT_{name}"] for name in ("COLLECTIONS", "STORE"))
    Path(definitions).write_text(KNOWN + 'linkage = "token"\nanswers = 1\n', encoding="utf-8")
    assert run(["issuer", "keys", "--collections", definitions, "--store", store]) == 0
    assert run(["issuer", "account-key", at_host["VEILCOUNT_ACCOUNT_KEY"]]) == 0
    port = free_port()
    (command,) = ISSUER["ExecStart"]
    command = moved(command, tmp_path, port).replace("127.0.0.1:8430", f"{HOST}:{port}")
    with started(words(command), at_host) as process:
        wait_until(lambda: listens(port))
        wait_until(lambda: handles_sigterm(process.pid))
        process.send_signal(signal.SIGTERM)
        assert process.wait(float(ISSUER["TimeoutStopSec"][0])) == 0

    sandbox = [name for name in SERVICE if name.startswith(("Protect", "Restrict", "System", "IP"))]
    assert {name: ISSUER[name] for name in sandbox} == {name: SERVICE[name] for name in sandbox}
    assert ISSUER["LimitCORE"] == ["0"]


@pytest.fixture
def shuffler_host(tmp_path: Path) -> Path:
    """The root of a shuffler's host, set up by the commands of both operators."""
    stats, keys = tmp_path / "stats.db", str(tmp_path / "relay.keys")
    definitions, store = tmp_path / "batched.toml", tmp_path / "var/lib/veilcount/shuffler"
    for folder in (store.parent, tmp_path / "var/lib/veilcount-witness/shuffler"):
        folder.mkdir(parents=True, mode=0o700)
    definitions.write_text(KNOWN + BATCHED, encoding="utf-8")
    aggregator = ["--store", f"sqlite:///{stats}"]
    new = ["--store", str(store), "--collections", str(definitions), "--gateway-keys", keys]
    for command in (
        ["init", *aggregator],
        ["relay-keys", "create", "--from", "2020-01-01", "--out", keys, *aggregator],
        ["keys", "create", "--role", "shuffler", "--label", "s", "--yes", *aggregator],
        ["shuffler", "init", *new, "--to", "https://stats.example.org"],
        ["shuffler", "trust", str(store / "shuffler.pub"), *aggregator],
    ):
        assert run(command) == 0, command
    return tmp_path


def shuffler_at(host: Path) -> tuple[list[str], dict[str, str], int]:
    """Return the unit's command and variables at this host, and a free port in it."""
    port = free_port()
    (command,) = SHUFFLER["ExecStart"]
    command = moved(command, host, port).replace("127.0.0.1:8440", f"{HOST}:{port}")
    at_host = {name: moved(value, host, 0) for name, value in variables(SHUFFLER).items()}
    return words(command), at_host, port


def test_the_shuffler_starts_and_ends_as_it_is_written(shuffler_host: Path) -> None:
    """Next to the issuer's service: nothing of its memory comes to a disk, core file or swap."""
    command, at_host, port = shuffler_at(shuffler_host)
    with started(command, at_host) as process:
        wait_until(lambda: listens(port))
        wait_until(lambda: handles_sigterm(process.pid))
        process.send_signal(signal.SIGTERM)
        assert process.wait(float(SHUFFLER["TimeoutStopSec"][0])) == 0
    witness = Path(variables(SHUFFLER)["VEILCOUNT_SHUFFLER_WITNESS"])

    sandbox = [name for name in ISSUER if name.startswith(("Protect", "Restrict", "System", "IP"))]
    assert {n: SHUFFLER[n][:1] for n in sandbox} == {n: ISSUER[n][:1] for n in sandbox}
    assert (SHUFFLER["LimitCORE"], SHUFFLER["MemorySwapMax"]) == (["0"], ["0"])
    assert witness.parent == WITNESS
    assert (shuffler_host / "var/lib/veilcount-witness/shuffler/witness.id").exists()


def test_a_shuffler_without_the_disk_of_its_witness_is_not_started(shuffler_host: Path) -> None:
    """By systemd, where nothing is mounted; by the server, where the folder is empty."""
    for setting in ("RequiresMountsFor", "AssertPathIsMountPoint", "ReadWritePaths"):
        assert SHUFFLER[setting] == [str(WITNESS)], setting
    command, at_host, port = shuffler_at(shuffler_host)
    with started(command, at_host) as process:
        wait_until(lambda: listens(port))
        process.send_signal(signal.SIGTERM)
        process.wait(15)
    (Path(at_host["VEILCOUNT_SHUFFLER_WITNESS"]) / "witness.id").unlink()
    with started(command, at_host) as process:
        assert process.wait(30) == 2


def test_no_backup_has_a_shufflers_store() -> None:
    """Restored, it would hand over twice: the unit of backups names another store."""
    commands = " ".join([*BACKUP["ExecStart"], *BACKUP["ExecStartPost"]])

    assert "shuffler" not in commands
    assert "shuffler" not in variables(BACKUP)["VEILCOUNT_STORE"]


def test_the_service_starts_serves_and_ends_as_it_is_written(host: Path) -> None:
    """KillMode=mixed: SIGTERM comes to the first process alone. All is answered, in time."""
    port = free_port()
    (command,) = SERVICE["ExecStart"]
    with started(words(moved(command, host, port)), environment(host)) as process:
        wait_until(lambda: listens(port))
        answer = send(f"http://{HOST}:{port}", body(collection())).json()["verdicts"]
        wait_until(lambda: handles_sigterm(process.pid))  # workers may serve before
        process.send_signal(signal.SIGTERM)
        code = process.wait(float(SERVICE["TimeoutStopSec"][0]))

    assert (answer, code) == (COUNTED, 0)
    assert counted(environment(host)["VEILCOUNT_STORE"]) == 1
    assert not listens(port)
    assert SERVICE["KillMode"] == ["mixed"]
    assert float(SERVICE["TimeoutStopSec"][0]) > DRAIN_SECONDS


def test_a_backup_is_made_and_logged_and_old_ones_are_deleted(host: Path) -> None:
    folder = host / "var/backups/veilcount"
    old, theirs = folder / "old.db", folder / "notes.txt"
    for each in (old, theirs):
        each.touch()
        os.utime(each, (0, 0))
    before = datetime.now(UTC).timestamp()
    for command in [*BACKUP["ExecStart"], *BACKUP["ExecStartPost"]]:
        with started(words(moved(command, host, 0)), environment(host)) as process:
            assert process.wait(60) == 0, command
    (made,) = folder.glob("*.db")
    result = (host / "var/lib/veilcount-backup/veilcount.prom").read_text()
    name, _, stamp = result.partition(" ")

    # What comes after it is ExecStartPost: systemd runs that only if all went well.
    assert BACKUP["Type"] == ["oneshot"]
    assert not any(setting.startswith("ExecStop") for setting in BACKUP)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d{6}Z\.db", made.name)
    assert run(["store", "restore", str(made), "--store", f"sqlite:///{host}/again.db"]) == 0
    assert theirs.exists()
    assert name == "veilcount_backup_timestamp_seconds"
    assert float(stamp) >= int(before)


@pytest.mark.parametrize(
    "name", ["veilcount.service", "veilcount-backup.service", "veilcount-shuffler.service"]
)
def test_a_service_may_do_little(name: str, tmp_path: Path) -> None:
    """By systemd's own count; and each folder it writes to is named."""
    directives = unit(name)
    most = f"--threshold={10 * MOST_EXPOSED:g}"
    judged = analyzed("security", "--offline=true", most, str(DEPLOY / "systemd" / name))

    assert judged.returncode == 0, judged.stdout
    assert (directives["User"], directives["NoNewPrivileges"]) == (["veilcount"], ["yes"])
    assert directives["ProtectSystem"] == ["strict"]
    assert directives["CapabilityBoundingSet"] == [""]
    assert "MemoryMax" in directives


def test_systemd_understands_every_line(tmp_path: Path) -> None:
    """It complains of what it does not know, once programs stand where the units say."""
    for file in (DEPLOY / "systemd").glob("veilcount*.*r*"):
        if file.suffix in {".service", ".timer"}:
            (tmp_path / file.name).write_text(moved(file.read_text(), tmp_path, 0))
    names = sorted(each.name for each in tmp_path.iterdir())
    drop_in = tmp_path / "veilcount.service.d"
    drop_in.mkdir()
    (drop_in / "store.conf").write_text(text("systemd/veilcount-store.conf"))
    verified = analyzed("verify", "--man=no", *(str(tmp_path / name) for name in names))

    services = [f"veilcount{each}.service" for each in ("-backup", "-issuer", "-shuffler", "")]
    assert names == sorted([*services, "veilcount-backup.timer"])
    assert (verified.returncode, verified.stderr) == (0, "")


def test_a_store_elsewhere_is_named_by_a_file_that_the_service_alone_reads() -> None:
    """The drop-in takes the unit's own store away: two stores would be refused."""
    drop_in = unit("veilcount-store.conf")
    variables_ = variables(SERVICE) | variables(drop_in)
    name, _, path = drop_in["LoadCredential"][0].partition(":")

    assert variables_["VEILCOUNT_STORE"] == ""
    assert variables_["VEILCOUNT_STORE_FILE"] == f"%d/{name}"
    assert path.startswith("/etc/veilcount/")
    assert "VEILCOUNT_JOURNAL" in variables_
    assert drop_in["IPAddressAllow"] != SERVICE["IPAddressAllow"]


def test_the_program_is_the_one_that_is_installed() -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())

    assert Path(PROGRAM).name in project["project"]["scripts"]
    for name in ("veilcount.service", "veilcount-backup.service", "veilcount-shuffler.service"):
        assert PROGRAM in text(f"systemd/{name}")
    assert "u veilcount " in text("systemd/veilcount.sysusers")
    assert "d /var/backups/veilcount 0700 veilcount" in text("systemd/veilcount.tmpfiles")


@pytest.mark.full
def test_the_service_asks_the_kernel_for_nothing_that_it_may_not(host: Path) -> None:
    """Each system call of a start, a report and an end is among those that the unit allows."""
    port, trace = free_port(), host / "trace"
    (command,) = SERVICE["ExecStart"]
    traced = ["strace", "-f", "-qq", "-c", "-U", "name", "-o", str(trace)]
    with started(traced + words(moved(command, host, port)), environment(host)) as process:
        wait_until(lambda: listens(port), 60)
        assert send(f"http://{HOST}:{port}", body(collection())).json()["verdicts"] == COUNTED
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        os.kill(int(children.split()[0]), signal.SIGTERM)
        process.wait(30)
    used = {line.strip() for line in trace.read_text().splitlines()[2:-2]}

    assert {"fdatasync", "execve"} <= used
    assert used - allowed() == AS_ROOT & used


def allowed() -> set[str]:
    """Return the system calls that the unit's filters let through."""
    found: set[str] = set()
    for line in SERVICE["SystemCallFilter"]:
        calls = set().union(*(group(each) for each in line.lstrip("~").split()))
        found = found - calls if line.startswith("~") else found | calls
    return found


def group(name: str) -> set[str]:
    """Return the system calls of a group, with those of the groups that are in it."""
    found = [line.strip() for line in analyzed("syscall-filter", name).stdout.splitlines()[1:]]
    calls = {each for each in found if each and each[0] not in "@#"}
    return calls.union(*(group(each) for each in found if each.startswith("@")))
