"""A store writes to no file but its own, whatever others put into its directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilcount_aggregator.central.release_journal import ReleaseJournal
from veilcount_aggregator.errors import StoreFull, StoreUnfit
from veilcount_aggregator.store import open_store

CONTENT = b"what somebody else keeps\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    found = tmp_path / "store"
    found.mkdir(mode=0o700)
    return found


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    found = tmp_path / "victim"
    found.write_bytes(CONTENT)
    return found


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal", "-lock"])
def test_a_file_of_a_store_that_leads_elsewhere_is_refused(
    place: Path, victim: Path, end: str
) -> None:
    url, file = f"sqlite:///{place}/store.db", place / f"store.db{end}"
    open_store(url, make=True).close()
    file.unlink(missing_ok=True)
    file.symlink_to(victim)
    with pytest.raises(StoreUnfit, match="is a link"):
        open_store(url)

    assert victim.read_bytes() == CONTENT


def test_a_journal_that_leads_elsewhere_is_not_written(place: Path, victim: Path) -> None:
    """What stands behind its last whole line would be cut off."""
    victim.write_bytes(CONTENT + b"no end")
    journal = ReleaseJournal(place / "releases.jsonl")
    journal.path.symlink_to(victim)
    with pytest.raises(StoreFull, match="cannot be written"):
        journal.keep([{"a": 1}])

    assert victim.read_bytes() == CONTENT + b"no end"
