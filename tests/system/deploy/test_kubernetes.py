"""What is written for Kubernetes, without it: rules of ours, and its Redis Cluster, run."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.server.serve import prepare
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import open_store
from veilcount_serving.listen_address import ListenAddress

from ...processes import free_port
from ...redis_server import REDIS
from ..server import wait_until
from .files import IMAGE, containers, documents, text
from .redises import Secrets, command_lines, redis_of

CLUSTER = documents("kubernetes.yml")
AGREED = {"cluster_state": "ok", "cluster_slots_ok": "16384", "cluster_known_nodes": "3"}


def named(kind: str, name: str) -> dict[str, Any]:
    (found,) = [d for d in CLUSTER if (d["kind"], d["metadata"]["name"]) == (kind, name)]
    return found


@pytest.mark.parametrize("container", [each for each, _ in containers()], ids=lambda c: c["name"])
def test_each_container_may_do_little(container: dict[str, Any]) -> None:
    (pod,) = [pod for each, pod in containers() if each["name"] == container["name"]]
    allowed, whole = container["securityContext"], pod["securityContext"]

    assert (whole["runAsNonRoot"], whole["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert whole["runAsUser"] > 0
    assert allowed["allowPrivilegeEscalation"] is False
    assert allowed["readOnlyRootFilesystem"] is True
    assert allowed["capabilities"] == {"drop": ["ALL"]}
    assert pod["automountServiceAccountToken"] is False
    assert IMAGE.fullmatch(container["image"])
    assert {"cpu", "memory"} == {*container["resources"]["requests"]}
    assert {"cpu", "memory"} == {*container["resources"]["limits"]}
    if pod.get("restartPolicy") != "OnFailure":  # of a job, whose end is its answer
        assert {"livenessProbe", "readinessProbe"} <= container.keys()


def test_the_aggregator_ends_in_time_and_probes_use_its_endpoints() -> None:
    ((aggregator, pod),) = [pair for pair in containers() if pair[0]["name"] == "aggregator"]
    sleeps = int(aggregator["lifecycle"]["preStop"]["exec"]["command"][1])

    assert aggregator["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert aggregator["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert pod["terminationGracePeriodSeconds"] >= sleeps + 10
    assert pod["enableServiceLinks"] is False  # VEILCOUNT_PORT would be one of theirs


def test_what_selects_pods_finds_them_and_what_is_mounted_is_there() -> None:
    sets = [document["spec"] for document in CLUSTER if document["kind"] == "StatefulSet"]
    pods = [document["spec"] for document in CLUSTER if "template" in document.get("spec", {})]
    labels = [spec["template"]["metadata"]["labels"] for spec in pods]
    for document in CLUSTER:
        spec = document.get("spec", {})
        if chosen := spec.get("selector") or spec.get("podSelector"):
            assert chosen.get("matchLabels", chosen) in labels, document
    for spec in sets:
        pod = spec["template"]["spec"]
        volumes = {each["name"] for each in pod["volumes"]}
        volumes |= {each["metadata"]["name"] for each in spec["volumeClaimTemplates"]}
        (container,) = pod["containers"]
        assert {each["name"] for each in container["volumeMounts"]} == volumes


def test_each_pod_has_its_own_secrets_as_the_commands_make_them() -> None:
    """An aggregator and the job have the URL and the CA, and no key of the server's."""
    written = re.sub(r"\\\n# +", "", text("kubernetes.yml"))
    commands = re.findall(r"create secret generic (\S+) (.*)", written)
    made = {name: set(re.findall(r"--from-file=secrets/(\S+)", rest)) for name, rest in commands}
    mounted = {
        container["name"]: (volume["secret"]["secretName"], mount["mountPath"])
        for container, pod in containers()
        for volume in pod["volumes"]
        for mount in container["volumeMounts"]
        if "secret" in volume and mount["name"] == volume["name"]
    }
    read = set(re.findall(r"/run/secrets/valkey/([\w.]+)", str(named("ConfigMap", "valkey"))))

    assert mounted == {
        "aggregator": ("veilcount-store", "/run/secrets/veilcount"),
        "init": ("veilcount-store", "/run/secrets/veilcount"),
        "valkey": ("valkey", "/run/secrets/valkey"),
    }
    assert made == {"veilcount-store": {"url", "ca.crt"}, "valkey": read}


def test_nothing_speaks_to_the_store_but_aggregators_and_other_nodes() -> None:
    (rule,) = named("NetworkPolicy", "valkey")["spec"]["ingress"]
    nothing = named("NetworkPolicy", "nothing")["spec"]

    allowed = [each["podSelector"]["matchLabels"]["app"] for each in rule["from"]]
    assert allowed == ["veilcount", "veilcount-init", "valkey"]
    assert nothing == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name in ("veilcount", "valkey"):
        assert named("PodDisruptionBudget", name)["spec"]["maxUnavailable"] == 1


def test_the_steps_of_the_file_lead_to_a_server_and_a_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers refuse an empty store; the job makes it, as often as it runs, and prints no key."""
    commands = {each["name"]: each["args"] for each, _ in containers() if "args" in each}
    (step,) = re.findall(r"exec veilcount-0 -- veilcount (.*)", text("kubernetes.yml"))
    stores = {
        variable["value"]
        for each, _ in containers()
        for variable in each.get("env", ())
        if variable["name"] == "VEILCOUNT_STORE_FILE"
    }
    url = f"sqlite:///{tmp_path}/store.db"
    monkeypatch.setenv("VEILCOUNT_STORE", url)
    bind = ListenAddress.parse(f"127.0.0.1:{free_port()}")

    with pytest.raises(StoreUnfit, match="no store there"):
        prepare(Settings(url), bind)
    assert [run(commands["init"]) for _ in range(2)] == [0, 0]
    assert "veilcount_admin_" not in capsys.readouterr().out
    assert prepare(Settings(url), bind).durable.startswith("durable")
    assert run(step.split()) == 0
    assert "veilcount_admin_" in capsys.readouterr().out
    assert len(stores) == 1


class Nodes:
    """The three nodes of the cluster as they are written, at addresses of the loopback."""

    def __init__(self, folder: Path) -> None:
        """Run the documented command, and write the files of the ConfigMap and a name service."""
        self.folder, self.port = folder, free_port()
        (self._node,) = [each for each, _ in containers() if each["name"] == "valkey"]
        hosts = self.variables()["PEERS"].split()
        self.secrets = Secrets.make(folder / "secrets", *(f"{h}:{self.port}" for h in hosts))
        for name, written in named("ConfigMap", "valkey")["data"].items():
            (folder / name).write_text(self.moved(written).replace("6379", str(self.port)))
        self.names = folder / "names"
        (folder / "getent").write_text(f'#!/bin/sh\ngrep " $2$" {self.names}\n')
        (folder / "valkey-cli").write_text('#!/bin/sh\nexec redis-cli "$@"\n')
        for program in ("getent", "valkey-cli"):
            (folder / program).chmod(0o755)

    def variables(self) -> dict[str, str]:
        return {each["name"]: each["value"] for each in self._node["env"] if "value" in each}

    def moved(self, text_: str) -> str:
        return self.secrets.moved(text_).replace("/etc/valkey", str(self.folder))

    @contextmanager
    def running(self, first: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Start them at 127.0.0.first and the two behind it, and have them join."""
        hosts = {f"valkey-{number}.valkey": f"127.0.0.{first + number}" for number in range(3)}
        self.names.write_text("".join(f"{host} {name}\n" for name, host in hosts.items()))
        monkeypatch.setattr(socket, "getaddrinfo", resolver(hosts))
        with ExitStack() as nodes, ThreadPoolExecutor() as joining:
            for number, host in enumerate(hosts.values()):
                nodes.enter_context(self._running(number, host))
            list(joining.map(self._join, range(3), hosts.values()))
            wait_until(lambda: all(self._agrees(name) for name in hosts), 30)
            yield

    def _running(self, number: int, host: str) -> AbstractContextManager[None]:
        place = self.folder / str(number)
        here = {"/data": str(place), "$(ADDRESS)": host, "$(NAME)": f"valkey-{number}"}
        command = self.moved("\n".join(self._node["command"]))
        for there, words in here.items():
            command = command.replace(there, words)
        _, *arguments = command.split("\n")
        return redis_of(place, REDIS, *arguments, "--bind", host)  # a Valkey with TLS is not here

    def _join(self, number: int, host: str) -> None:
        environment = {
            **self.variables(),
            "NAME": f"valkey-{number}",
            "ADDRESS": host,
            "PORT": str(self.port),
            "PATH": f"{self.folder}:/usr/bin:/bin",
        }
        script = self.folder / "join.sh"
        subprocess.run(["sh", str(script)], env=environment, capture_output=True, check=True)

    def _agrees(self, name: str) -> bool:
        ca = str(self.secrets.file("ca.crt"))
        password = self.secrets.password
        with redis.Redis(name, self.port, password=password, ssl=True, ssl_ca_certs=ca) as node:
            result = node.execute_command("CLUSTER INFO")
        return {name: result[name] for name in AGREED} == AGREED


def resolver(hosts: dict[str, str]) -> Callable[..., Any]:
    """Return a name service that also knows these hosts."""
    system = socket.getaddrinfo

    def resolve(host: str, *rest: Any, **named_: Any) -> Any:
        return system(hosts.get(host, host), *rest, **named_)

    return resolve


@pytest.mark.full
def test_nodes_become_a_cluster_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As all pods do when a cluster starts again; what was kept is found. Each is reached by the
    name in its certificate, and no command line has the password.
    """
    nodes = Nodes(tmp_path)
    for first in (2, 12):
        with monkeypatch.context() as patch, nodes.running(first, patch):
            with closing(open_store(nodes.secrets.url, make=first == 2)) as store:
                assert store.health().durable == "yes"
            assert not any(nodes.secrets.password in line for line in command_lines().values())
