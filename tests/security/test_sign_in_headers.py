"""Headers of a proxy at a real server: what a client adds to them changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from veilcount_aggregator.sign_in import GROUPS, PROXY_SECRET, USER
from veilcount_aggregator.store import open_store

from ..system.server import Server, listens, wait_until, worker_killed
from .test_limits import head, say

SECRET = "a secret of more than sixteen characters"
FILE = """
[roles]
admin = ["platform"]
analyst = ["data"]

[proxy]
secret_file = "secret"
"""
BY_PROXY = (f"{USER}: bob", f"{GROUPS}: data", f"{PROXY_SECRET}: {SECRET}")


def served(folder: Path) -> Server:
    url = f"sqlite:///{folder}/store.db?durability=relaxed"
    return Server(url, folder, "--sign-in", str(folder / "sign-in.toml"))


def written(folder: Path) -> Path:
    (folder / "secret").write_text(SECRET)
    (folder / "secret").chmod(0o600)
    (folder / "sign-in.toml").write_text(FILE)
    open_store(f"sqlite:///{folder}/store.db", make=True).close()
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(written(tmp_path_factory.mktemp("signed-in"))) as server:
        yield server


def statuses(server: Server, *lines: str, path: str = "/keys") -> list[int]:
    return say(server.port, head("GET", path, "Connection: close", *lines)).statuses


def test_a_file_that_is_being_changed_stops_no_worker(tmp_path: Path) -> None:
    """A worker that died is replaced by one with the file of the server's start."""
    with served(written(tmp_path)) as server:
        (tmp_path / "sign-in.toml").write_text("[roles")
        with worker_killed(server):
            pass
        wait_until(lambda: listens(server.port))
        server.wait_until_open()

        assert statuses(server, *BY_PROXY) == [403]
        assert statuses(server, *BY_PROXY, path="/operations") == [200]
        assert server.stop() == 0
    with pytest.raises(RuntimeError, match=r"sign-in\.toml"):
        served(tmp_path)


def test_an_analyst_of_the_proxy_is_none_of_the_admins(server: Server) -> None:
    admin = [line.replace("data", "platform") for line in BY_PROXY]

    assert statuses(server, *admin) == [200]
    assert statuses(server, *BY_PROXY) == [403]


@pytest.mark.parametrize("name", [GROUPS, GROUPS.lower(), GROUPS.replace("-", "_")])
@pytest.mark.parametrize("place", [0, len(BY_PROXY)])
def test_a_client_that_adds_a_group_gets_no_role_of_it(
    server: Server, name: str, place: int
) -> None:
    """Before or after those of the proxy, and under any name that WSGI takes for theirs."""
    lines = [*BY_PROXY[:place], f"{name}: platform", *BY_PROXY[place:]]

    assert statuses(server, *lines) == [403]


def test_a_stranger_who_names_an_admin_opens_nothing(server: Server) -> None:
    named = {USER: "eve", GROUPS: "platform"}
    answers = [
        requests.get(f"{server.url}/keys", headers=named | extra, timeout=60, allow_redirects=False)
        for extra in ({}, {PROXY_SECRET: ""}, {PROXY_SECRET.replace("-", "_"): SECRET})
    ]

    assert [answer.status_code for answer in answers] == [403] * 3
