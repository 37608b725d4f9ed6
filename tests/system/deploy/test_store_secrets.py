"""A store's server and an aggregator with the secrets of `store-secrets.sh`: TLS by a private CA, a
password that is in files alone, and refusals that name what is wrong and never the password.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
import requests

from ...redis_server import REDIS, VALKEY
from ..server import HOST, Server, free_port, wait_until
from ..test_serving import COUNTED, KNOWN, body, collection, send
from .files import DEPLOY, documents, text
from .redises import Secrets, answers, command_lines, server_of

(COMPOSE,) = documents("compose.yml")
RUNS = pytest.mark.parametrize(  # what Valkey does otherwise is in test_valkey.py
    "store", [REDIS, pytest.param(VALKEY, marks=pytest.mark.full)], indirect=True
)


@dataclass(frozen=True)
class SecuredStore:
    """A server that runs with the settings of valkey.conf, and the secrets of both sides."""

    secrets: Secrets
    folder: Path
    port: int

    def veilcount(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a command with the file of the URL, or other variables."""
        variables = environ or {"VEILCOUNT_STORE_FILE": str(self.secrets.file("url"))}
        kept = {name: value for name, value in os.environ.items() if "VEILCOUNT" not in name}
        return subprocess.run(
            [sys.executable, "-m", "veilcount_aggregator", *arguments],
            env=kept | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredStore]:
    folder, port = tmp_path_factory.mktemp("store"), free_port()
    secrets = Secrets.make(folder / "secrets", f"localhost:{port}")
    with server_of(request.param, text("valkey.conf"), folder / "data", secrets, port):
        wait_until(lambda: answers(port, secrets))
        yield SecuredStore(secrets, folder / "data", port)


# -- what the command makes ------------------------------------------------------------------------


def test_the_command_makes_the_file_of_each_secret(tmp_path: Path) -> None:
    """The one at the top of compose.yml, in a folder that its owner alone can enter."""
    (command,) = re.findall(r"# +(sh deploy/store-secrets.sh .*)\n", text("compose.yml"))
    folder = tmp_path / "secrets"
    words = command.replace("deploy/secrets", str(folder)).split()
    subprocess.run(words, cwd=DEPLOY.parent, check=True, capture_output=True)
    paths = [Path(secret["file"]) for secret in COMPOSE["secrets"].values()]
    again = subprocess.run(words, cwd=DEPLOY.parent, check=False, capture_output=True)

    assert {str(path.parent) for path in paths} == {"secrets"}
    assert {path.name for path in folder.iterdir()} == {"ca.key", *(path.name for path in paths)}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert again.returncode != 0


def test_a_certificate_is_of_the_ca_and_names_each_host(tmp_path: Path) -> None:
    """Verified as strictly as newer releases of Python do."""
    secrets = Secrets.make(tmp_path / "secrets", "valkey-0.valkey", "valkey-1.valkey:7000")
    ca, certificate = (str(secrets.file(name)) for name in ("ca.crt", "server.crt"))
    verified = {
        host: subprocess.run(
            [
                *("openssl", "verify", "-x509_strict", "-purpose", purpose),
                *("-verify_hostname", host, "-CAfile", ca, certificate),
            ],
            capture_output=True,
            check=False,
        ).returncode
        for host, purpose in {
            "valkey-0.valkey": "sslserver",
            "valkey-1.valkey": "sslclient",
            "valkey-2.valkey": "sslserver",
        }.items()
    }

    assert verified == {"valkey-0.valkey": 0, "valkey-1.valkey": 0, "valkey-2.valkey": 2}
    assert secrets.url == (
        f"redis-cluster://:{secrets.password}@valkey-0.valkey,valkey-1.valkey:7000?tls=on&ca={ca}"
    )


# -- an aggregator on it ---------------------------------------------------------------------------


@RUNS
def test_an_aggregator_counts_on_it_and_no_command_line_nor_log_has_the_password(
    store: SecuredStore, tmp_path: Path
) -> None:
    definitions = tmp_path / "collections.toml"
    definitions.write_text(KNOWN, encoding="utf-8")
    ran = [store.veilcount("init"), store.veilcount("collections", "push", str(definitions))]
    flags = ["--workers", "2", "--journal", str(tmp_path / "releases.jsonl")]
    with Server(store.secrets.file("url"), tmp_path, *flags) as server:
        report, replies = body(collection()), list[requests.Response]()

        def is_taken() -> bool:
            replies.append(send(server.url, report))
            return replies[-1].ok

        wait_until(is_taken)  # each of the workers opens the store for itself
        lines = command_lines()
        ready = server.ready
    ran += [store.veilcount("estimate", "autosave", "--json"), store.veilcount("doctor", "--json")]

    estimate = json.loads(ran[2].stdout)
    assert [command.returncode for command in ran] == [0] * 4, ran
    assert replies[-1].json()["verdicts"] == COUNTED
    assert [row["n"] for row in estimate["series"][0]["ranges"]] == [1]
    assert ready["durable"].startswith("durable")
    assert server.pid in lines
    assert not any(store.secrets.password in line for line in lines.values())
    shown = [server.log_text(), store.log(), *(each.stdout + each.stderr for each in ran)]
    assert not any(store.secrets.password in text_ for text_ in [*shown, json.dumps(ready)])
    findings = {each["check"]: each for each in json.loads(ran[3].stdout)["findings"]}
    assert findings["password"]["state"] == "ok"
    assert findings["durable"]["state"] == "ok"


@pytest.mark.parametrize("store", [REDIS], indirect=True)
def test_planted_a_password_on_a_command_line_is_seen(store: SecuredStore, tmp_path: Path) -> None:
    """The same look at all processes has it; the log has the warning, and not the password."""
    assert store.veilcount("init", "--no-key").returncode == 0
    journal = ["--journal", str(tmp_path / "releases.jsonl")]
    with Server(store.secrets.url, tmp_path, *journal) as server:
        lines = command_lines()
    (warning, *_) = [json.loads(line) for line in server.log_text().splitlines()]

    assert store.secrets.password in lines[server.pid]
    assert (warning["event"], warning["level"]) == ("warning", "warning")
    assert "VEILCOUNT_STORE_FILE" in warning["reason"]
    assert store.secrets.password not in server.log_text()


# -- refusals --------------------------------------------------------------------------------------


@RUNS
def test_what_does_not_fit_is_refused_and_why(store: SecuredStore, tmp_path: Path) -> None:
    other = Secrets.make(tmp_path / "secrets", "localhost")
    url, password = store.secrets.url, store.secrets.password
    ca, wrong = str(store.secrets.file("ca.crt")), "hunter2"
    refusals = {
        url.replace(ca, str(other.file("ca.crt"))): r"is not trusted: its certificate: .*ca=FILE",
        url.partition("?")[0]: r"is not trusted: its certificate: .*ca=FILE",
        url.replace("@localhost", f"@{HOST}"): r"not valid for '127.0.0.1': .*as it is named there",
        url.replace(password, wrong): r"refuses this user: ",
        url.replace(f":{password}@", ""): r"refuses this user: ",
        url.replace("rediss", "redis").partition("?")[0]: r"does not answer: .*write rediss://",
        url.replace(ca, f"{ca}.gone"): r"store = .*ca: No such file or directory: give a file",
    }

    for address, sentence in refusals.items():
        refused = store.veilcount("init", "--no-key", VEILCOUNT_STORE=address)
        assert refused.returncode in {2, 3}, (address, refused)
        assert re.search(sentence, refused.stderr), (sentence, refused.stderr)
        assert len(refused.stderr.splitlines()) == 1
        assert password not in refused.stderr
        assert wrong not in refused.stderr


@pytest.mark.parametrize("store", [REDIS], indirect=True)
def test_nothing_is_answered_in_plain(store: SecuredStore) -> None:
    client = redis.Redis(HOST, store.port, password=store.secrets.password)
    with client, pytest.raises(redis.ConnectionError):
        client.ping()


@pytest.mark.parametrize("store", [REDIS], indirect=True)
def test_the_health_check_reads_the_password_file(store: SecuredStore, tmp_path: Path) -> None:
    """It reaches the program in a variable; without the password it fails."""
    arguments = tmp_path / "arguments"
    shim = tmp_path / "valkey-cli"
    shim.write_text(
        f'#!/bin/sh\necho "$@" >{arguments}\nexec redis-cli -h localhost -p {store.port} "$@"\n'
    )
    shim.chmod(0o755)
    kind, written = COMPOSE["services"]["valkey"]["healthcheck"]["test"]
    command = store.secrets.moved(written).replace("$$", "$")

    def healthy(check: str) -> bool:
        environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        return subprocess.run(["sh", "-c", check], env=environ, check=False).returncode == 0

    assert kind == "CMD-SHELL"
    assert healthy(command)
    assert store.secrets.password not in arguments.read_text()
    assert store.secrets.password not in command
    assert not healthy(command.replace(str(store.secrets.file("password")), "/dev/null"))
