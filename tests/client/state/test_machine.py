"""The ids of machines on Windows and macOS, whose calls are simulated here."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Self

import pytest

from veilcount_client.state.losses import Loss
from veilcount_client.state.machine import machine_id

from .conftest import SqliteEngine
from .state_fixtures import ANN, agree

MOVED = {(Loss.MOVED, ""): 1}
READ, OF_64_BITS = 0x20019, 0x0100  # of winreg
Become = Callable[[str], None]


class Registry(SimpleNamespace):
    """The module winreg, with one key; `OpenKey` refuses the view of 32-bit programs."""

    def __init__(self, guid: str) -> None:
        super().__init__(HKEY_LOCAL_MACHINE=2, KEY_READ=READ, KEY_WOW64_64KEY=OF_64_BITS)
        self.guid = guid

    def OpenKey(self, *key: object) -> Registry:
        if key != (2, r"SOFTWARE\Microsoft\Cryptography", 0, READ | OF_64_BITS):
            raise FileNotFoundError(2, "no such key")
        return self

    def QueryValueEx(self, _: object, name: str) -> tuple[str, int]:
        return (self.guid, 1) if name == "MachineGuid" else ("", 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""


def libc(number: int, code: int = 0) -> Any:
    """Return a C library whose host has a UUID of this byte."""

    def gethostuuid(uuid: Any, wait: Any) -> int:
        assert wait[0] > 0
        uuid[:] = [number] * len(uuid)
        return code

    return SimpleNamespace(gethostuuid=gethostuuid)


@pytest.fixture
def on_windows(monkeypatch: pytest.MonkeyPatch) -> Become:
    def become(number: str) -> None:
        monkeypatch.setattr(sys, "platform", "win32")
        monkeypatch.setitem(sys.modules, "winreg", Registry(number))

    return become


@pytest.fixture
def on_macos(monkeypatch: pytest.MonkeyPatch) -> Become:
    def become(number: str) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setattr(ctypes, "CDLL", lambda _: libc(int(number)))

    return become


@pytest.fixture
def without_ids(monkeypatch: pytest.MonkeyPatch) -> Become:
    """Planted: a platform of which the client reads no id."""

    def become(_: str) -> None:
        monkeypatch.setattr(sys, "platform", "win32")
        monkeypatch.setitem(sys.modules, "winreg", None)

    return become


def losses_of_a_moved_state(sqlite: SqliteEngine, become: Become) -> dict[tuple[Loss, str], int]:
    """Open a state on one machine and on another, in a file with the same inode number."""
    for number in ("1", "1", "2"):
        become(number)
        state = sqlite.open()
        agree(state)
        state.person(ANN)
        losses = dict(state.losses())
        state.close()
        assert number == "2" or not losses
    return losses


@pytest.mark.parametrize("platform", ["on_windows", "on_macos"])
def test_the_state_of_another_machine_is_another_person(
    platform: str, sqlite: SqliteEngine, request: pytest.FixtureRequest
) -> None:
    assert losses_of_a_moved_state(sqlite, request.getfixturevalue(platform)) == MOVED


def test_without_ids_it_is_not_noticed(sqlite: SqliteEngine, without_ids: Become) -> None:
    assert losses_of_a_moved_state(sqlite, without_ids) == {}


def test_an_id_is_the_one_that_the_system_gave(on_windows: Become, on_macos: Become) -> None:
    on_windows("guid")
    of_windows = machine_id()
    on_macos("3")

    assert (of_windows, machine_id()) == ("guid", "03" * 16)


def test_a_machine_that_does_not_say_has_no_id(
    on_macos: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_macos("3")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: libc(3, -1))

    assert machine_id() == ""
