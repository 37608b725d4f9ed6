"""What is written for Kubernetes, without it: rules of ours, and its Redis Cluster, run."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.redis_cluster import free_port
from tests.system.deploy.files import IMAGE, containers, documents, text
from tests.system.deploy.redises import redis_of
from tests.system.server import wait_until
from veilcount_aggregator.cli.main import run
from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.server.listen_address import ListenAddress
from veilcount_aggregator.server.serve import prepare
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import open_store

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


def test_nothing_speaks_to_redis_but_aggregators_and_other_nodes() -> None:
    (rule,) = named("NetworkPolicy", "redis")["spec"]["ingress"]
    nothing = named("NetworkPolicy", "nothing")["spec"]

    allowed = [each["podSelector"]["matchLabels"]["app"] for each in rule["from"]]
    assert allowed == ["veilcount", "veilcount-init", "redis"]
    assert nothing == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name in ("veilcount", "redis"):
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
        if variable["name"] == "VEILCOUNT_STORE"
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
    """The three Redis of the cluster as they are written, at addresses of the loopback."""

    def __init__(self, folder: Path) -> None:
        """Write the files of the ConfigMap, and a name service that knows them."""
        self.folder, self.port = folder, free_port()
        self._nodes = [each for each, _ in containers() if each["name"] == "redis"]
        for name, written in named("ConfigMap", "redis")["data"].items():
            (folder / name).write_text(written.replace("6379", str(self.port)))
        self.names = folder / "names"
        (folder / "getent").write_text(f'#!/bin/sh\ngrep " $2$" {self.names}\n')
        (folder / "getent").chmod(0o755)

    @contextmanager
    def running(self, first: int) -> Iterator[None]:
        """Start them at 127.0.0.first and the two behind it, and have them join."""
        hosts = [f"127.0.0.{first + number}" for number in range(3)]
        lines = [f"{host} redis-{number}.redis\n" for number, host in enumerate(hosts)]
        self.names.write_text("".join(lines))
        with ExitStack() as nodes, ThreadPoolExecutor() as joining:
            for number, host in enumerate(hosts):
                nodes.enter_context(self._node(number, host))
            list(joining.map(self._join, range(3), hosts))
            wait_until(lambda: all(self._agrees(host) for host in hosts), 30)
            yield

    def url(self, first: int) -> str:
        return f"redis-cluster://127.0.0.{first}:{self.port}"

    def _node(self, number: int, host: str) -> AbstractContextManager[None]:
        (node,) = self._nodes
        place = self.folder / str(number)
        here = {"/etc/redis": str(self.folder), "/data": str(place), "$(ADDRESS)": host}
        command = "\n".join(node["command"])
        for there, words in here.items():
            command = command.replace(there, words)
        return redis_of(place, *command.split("\n"), "--bind", host)

    def _join(self, number: int, host: str) -> None:
        environment = {
            "NAME": f"redis-{number}",
            "ADDRESS": host,
            "PORT": str(self.port),
            "PEERS": "redis-0.redis redis-1.redis redis-2.redis",
            "PATH": f"{self.folder}:/usr/bin:/bin",
        }
        script = self.folder / "join.sh"
        subprocess.run(["sh", str(script)], env=environment, capture_output=True, check=True)

    def _agrees(self, host: str) -> bool:
        with redis.Redis(host, self.port) as node:
            result = node.execute_command("CLUSTER INFO")
        return {name: result[name] for name in AGREED} == AGREED


@pytest.mark.full
def test_three_nodes_become_a_cluster_and_again_under_other_addresses(tmp_path: Path) -> None:
    """As all pods do when a cluster starts again; what was kept is found."""
    nodes = Nodes(tmp_path)
    for first in (2, 12):
        with nodes.running(first), closing(open_store(nodes.url(first), make=first == 2)) as store:
            assert store.health().durable == "yes"
