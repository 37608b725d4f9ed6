"""What is written for Docker, without it: rules of ours, and whatever in there can be run."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import closing
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.operate.cli import serve, shuffler
from veilcount_aggregator.store import open_store
from veilcount_shuffler.network_limit import sender

from ...redis_server import REDIS
from ..server import free_port, wait_until
from .files import DEPLOY, IMAGE, containers, documents, text
from .recording_upstream import recording_upstream
from .redises import Secrets, answers, server_of

(COMPOSE,) = documents("compose.yml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
(SHUFFLER_COMPOSE,) = documents("shuffler-compose.yml")
SHUFFLER: dict[str, Any] = SHUFFLER_COMPOSE["services"]["shuffler"]
OUR_OWN = {"veilcount"}  # built here, and so without a number


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions, each on one line."""
    whole = re.sub(r"^#.*\n", "", text("Dockerfile"), flags=re.MULTILINE).replace("\\\n", " ")
    parts = (line.partition(" ") for line in whole.split("\n"))
    return [(word, rest.strip()) for word, _, rest in parts if word]


# -- the image -------------------------------------------------------------------------------------


def test_the_image_is_built_of_what_is_here() -> None:
    """Each file that it copies exists; all packages are those of the lock."""
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY"]
    sources = [source for each in copied if not each[0].startswith("--") for source in each]
    (built,) = [rest for word, rest in instructions() if word == "RUN" and "uv pip install" in rest]

    assert [each for each in sources if not (DEPLOY.parent / each).exists()] == []
    assert '--constraint requirements.lock ".[$EXTRAS]"' in built


def test_the_image_is_small_pinned_and_nobodys() -> None:
    """No build tools in what is run, a user without a name to log in with, no program to fetch."""
    words = [word for word, _ in instructions()]
    bases = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    last = instructions()[len(words) - words[::-1].index("FROM") :]
    (user,) = [rest for word, rest in last if word == "USER"]

    assert all(IMAGE.fullmatch(each) for each in bases), bases
    assert int(user) > 0
    assert not re.search(r"\b(curl|wget|apt-get|pip)\b", " ".join(rest for _, rest in last))
    assert dict(last)["STOPSIGNAL"] == "SIGTERM"


def healthy(server: ThreadingHTTPServer) -> int:
    """Run the image's health check as it is written, at another port."""
    (check,) = [rest for word, rest in instructions() if word == "HEALTHCHECK"]
    command = json.loads(check.partition("CMD ")[2])
    requested = [word.replace(":8420", f":{server.server_address[1]}") for word in command]
    return subprocess.run(requested, capture_output=True, check=False).returncode


def test_the_health_check_fails_without_a_server() -> None:
    with recording_upstream() as server:
        well = healthy(server)
    gone = healthy(server)

    assert (well, gone) == (0, 1)


@pytest.mark.parametrize(
    "command",
    [
        json.loads(dict(instructions())["CMD"]),
        SERVICES["aggregator"]["command"],
        next(each["args"] for each, _ in containers() if each["name"] == "aggregator"),
    ],
    ids=["Dockerfile", "compose.yml", "kubernetes.yml"],
)
def test_the_server_accepts_the_flags_of_the_file(command: list[str]) -> None:
    name, *flags = command

    assert name == serve.command.name
    understood = serve.command.make_context(name, [*flags, "--store", "x"]).params
    assert understood["bind"].endswith(":8420")


# -- compose ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*SERVICES, "shuffler"])
def test_each_service_may_do_little(name: str) -> None:
    service = {**SERVICES, "shuffler": SHUFFLER}[name]

    assert int(service["user"]) > 0
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"mem_limit", "pids_limit", "restart", "stop_grace_period"} <= service.keys()
    assert IMAGE.fullmatch(service["image"]) or service["image"] in OUR_OWN


def test_the_store_is_reached_from_within_alone_and_the_aggregator_by_a_proxy() -> None:
    (inside,) = SERVICES["valkey"]["networks"]

    assert "ports" not in SERVICES["valkey"]
    assert COMPOSE["networks"][inside] == {"internal": True}
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["aggregator"]["ports"])


def test_all_that_is_kept_is_on_a_volume() -> None:
    """The store, and the journal of releases that a Redis needs."""
    journal = Path(SERVICES["aggregator"]["environment"]["VEILCOUNT_JOURNAL"])

    for name, folder in (("aggregator", str(journal.parent)), ("valkey", "/data")):
        (volume,) = SERVICES[name]["volumes"]
        kept, _, where = volume.partition(":")
        assert kept in COMPOSE["volumes"]
        assert where == folder


def test_each_service_has_its_own_secrets_where_it_looks_for_them() -> None:
    """The aggregator has no key of the server's; no password is in a variable or a command."""
    secrets = {
        name: {secret["target"]: secret["source"] for secret in service["secrets"]}
        for name, service in SERVICES.items()
    }
    variables = SERVICES["aggregator"]["environment"]
    (settings,) = SERVICES["valkey"]["configs"]
    read = set(re.findall(r"/run/secrets/\S+", text("valkey.conf")))

    assert set(secrets["aggregator"].values()) == {"url", "ca.crt"}
    assert secrets["aggregator"][variables["VEILCOUNT_STORE_FILE"]] == "url"
    assert "VEILCOUNT_STORE" not in variables
    assert secrets["valkey"].keys() - read == {"/run/secrets/valkey/password"}  # the health check's
    assert read <= secrets["valkey"].keys()
    assert settings["target"] in SERVICES["valkey"]["command"]
    assert COMPOSE["configs"] == {settings["source"]: {"file": "valkey.conf"}}


def test_a_store_is_content_with_the_server_of_compose(tmp_path: Path) -> None:
    port = free_port()
    secrets = Secrets.make(tmp_path / "secrets", f"localhost:{port}")
    with server_of(REDIS, text("valkey.conf"), tmp_path / "store", secrets, port):
        wait_until(lambda: answers(port, secrets))
        with closing(open_store(secrets.url, make=True)) as store:
            health = store.health()

    assert health.durable == "yes", health


# -- compose of a shuffler -------------------------------------------------------------------------


def test_a_shuffler_accepts_the_flags_of_the_file() -> None:
    """On the loopback of the host: only there it takes an address that a proxy names."""
    assert SHUFFLER["entrypoint"] == ["veilcount", shuffler.command.name]
    name, *flags = SHUFFLER["command"]
    understood = shuffler.command.commands[name].make_context(name, flags).params
    peer = f"{understood['bind'].rpartition(':')[0]}:9"

    assert SHUFFLER["network_mode"] == "host"
    assert "ports" not in SHUFFLER
    assert sender(peer, "198.51.100.7") == "198.51.100.7"
    assert sender("172.17.0.1:9", "198.51.100.7") == "172.17.0.1", "planted: Docker's bridge"
    assert not understood["dev_only"]


def test_nothing_that_a_shuffler_erases_is_left_by_docker() -> None:
    """No core file, no swap, no file but those of its store; the witness is on another disk."""
    store, witness, definitions = SHUFFLER["volumes"]
    folder = SHUFFLER["command"][SHUFFLER["command"].index("--store") + 1]

    assert SHUFFLER["ulimits"] == {"core": 0}
    assert SHUFFLER["memswap_limit"] == SHUFFLER["mem_limit"]
    assert store.partition(":")[0] in SHUFFLER_COMPOSE["volumes"]
    assert Path(folder).parent == Path(store.partition(":")[2])
    assert witness["target"] == SHUFFLER["environment"]["VEILCOUNT_SHUFFLER_WITNESS"]
    assert (witness["type"], witness["bind"]) == ("bind", {"create_host_path": False})
    assert definitions["read_only"]


def test_the_health_check_of_a_shuffler_asks_whether_it_takes_envelopes() -> None:
    (address,) = re.findall(
        r"http://([\w.:]+)/health/ready", " ".join(SHUFFLER["healthcheck"]["test"])
    )

    assert address in SHUFFLER["command"]
