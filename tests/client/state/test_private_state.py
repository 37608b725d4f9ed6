"""A state that others could change, or lead elsewhere, is refused, and nothing is touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from veilcount_client.state import StateError
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.state.sqlite_database import FILE

CONTENT = b"what somebody else keeps\n"
COMPANIONS = [FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal"]


IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    found = tmp_path / "state"
    found.mkdir(mode=0o700)
    return found


def refusal(place: Path) -> str:
    with pytest.raises(StateError) as raised:
        SqliteState(place)
    return str(raised.value)


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
def test_what_others_may_write_to_is_refused(place: Path, mode: int) -> None:
    """With what to do about it: a new directory, and then the file."""
    place.chmod(mode)
    assert f"{place} may be written to by other users: `chmod go-w {place}`" in refusal(place)
    assert list(place.iterdir()) == []

    place.chmod(mode & ~0o022)
    SqliteState(place).close()
    (place / FILE).chmod(mode & 0o666)
    assert f"`chmod go-w {place / FILE}`" in refusal(place)


def test_a_directory_that_is_a_link_is_refused(place: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(place)

    assert "is a symbolic link" in refusal(link)
    assert list(place.iterdir()) == []


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a file away")
@pytest.mark.parametrize("of_directory", [True, False])
def test_what_belongs_to_another_user_is_refused(place: Path, of_directory: bool) -> None:  # noqa: FBT001 - as pytest gives it
    SqliteState(place).close()
    foreign = place if of_directory else place / FILE
    os.chown(foreign, 12_345, -1)

    assert refusal(place).startswith(f"{foreign} belongs to another user: run as that user")


@pytest.mark.parametrize("name", COMPANIONS)
@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["link", "hard link"])
def test_a_file_that_leads_elsewhere_is_refused(
    place: Path, tmp_path: Path, name: str, link: Callable[[Path, Path], None]
) -> None:
    """Whatever SQLite would have written, it writes to nobody's file."""
    victim = tmp_path / "victim"
    victim.write_bytes(CONTENT)
    SqliteState(place).close()
    (place / name).unlink(missing_ok=True)
    link(victim, place / name)

    assert str(place / name) in refusal(place)
    assert victim.read_bytes() == CONTENT


def test_a_link_to_nothing_makes_no_file(place: Path, tmp_path: Path) -> None:
    (place / FILE).symlink_to(tmp_path / "made")

    assert "is a symbolic link" in refusal(place)
    assert not (tmp_path / "made").exists()
