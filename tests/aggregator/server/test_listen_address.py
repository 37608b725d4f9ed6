"""Where a server may listen."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from veilcount_serving.errors import SettingsError
from veilcount_serving.listen_address import ListenAddress

from ...processes import HOST, free_port


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("127.0.0.1:8420", "http://127.0.0.1:8420"),
        ("localhost:8420", "http://127.0.0.1:8420"),
        ("[::1]:8420", "http://[::1]:8420"),
        ("0.0.0.0:80", "http://0.0.0.0:80"),
        ("unix:/run/veilcount.sock", "unix:/run/veilcount.sock"),
    ],
)
def test_a_place_is_read(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if text.startswith("localhost"):
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (HOST, 0))])

    assert str(ListenAddress.parse(text)) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":8420",
        "127.0.0.1",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:\u0664",
        "[127.0.0.1]:8420",
        "[::1:8420",
        "::1]:8420",
        "unix:x.sock",
    ],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="give"):
        ListenAddress.parse(text)


def test_a_host_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SettingsError, match="no such host"):
        ListenAddress.parse("nowhere.invalid:8420")


def test_a_port_that_somebody_listens_on_is_refused() -> None:
    with socket.create_server((HOST, 0)) as taken:
        bind = ListenAddress.parse(f"{HOST}:{taken.getsockname()[1]}")

        with pytest.raises(SettingsError, match="give another"):
            bind.check()
        assert bind.is_listening()


def test_a_port_that_is_shared_is_refused_too() -> None:
    """Sockets that share a port do not notice each other: two servers would split the devices."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind((HOST, 0))
        taken.listen()

        with pytest.raises(SettingsError, match="give another"):
            ListenAddress.parse(f"{HOST}:{taken.getsockname()[1]}").check()


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(SettingsError, match="cannot listen there"):
        ListenAddress.parse("192.0.2.1:8420").check()


def test_a_free_port_is_checked_and_nobody_answers_there_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bind = ListenAddress.parse(f"{HOST}:{free_port()}")
    monkeypatch.setattr(socket.socket, "listen", None)  # who listens, raises

    bind.check()

    assert not bind.is_listening()


def test_a_socket_that_a_killed_server_left_is_cleared_away(tmp_path: Path) -> None:
    path = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))

    ListenAddress.parse(f"unix:{path}").check()

    assert not path.exists()


def test_a_socket_that_somebody_listens_on_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "taken.sock"
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(str(path))
        taken.listen()

        with pytest.raises(SettingsError, match="in use by another server"):
            ListenAddress.parse(f"unix:{path}").check()


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")

    with pytest.raises(SettingsError, match="no socket"):
        ListenAddress.parse(f"unix:{path}").check()
    assert path.read_text() == "mine"
