"""A store that came back from an old backup releases nothing before the journal was read again."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import requests

from tests.system.server import Server
from veilcount_aggregator.auth.api_keys import Role, create_key
from veilcount_aggregator.central.privacy_filter import PrivacyFilter
from veilcount_aggregator.central.release_journal import ReleaseJournal
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.backup import backup, restore

NOW = datetime.now(UTC)
FILE = f"""
app = "acme-editor"

[visits]
question = "Was it visited?"
boolean = true
unit = "day"
model = "central"
budget = 1
late = 1
from = {NOW.date() - timedelta(10)}
until = {NOW.date() + timedelta(10)}
"""
DAY = str(NOW.date() - timedelta(9))
LAST = {"from": DAY, "to": DAY}


def serve(url: str, folder: Path) -> Server:
    """Serve the collection from a store."""
    file = folder / "collections.toml"
    file.write_text(FILE, encoding="utf-8")
    journal = folder / "journal"
    return Server(url, folder, "--collections", str(file), "--dev", "--journal", str(journal))


def release(server: Server, key: str, epsilon: str) -> requests.Response:
    """Ask for a count of one day."""
    query = {"query": "count", "epsilon": epsilon} | LAST
    headers = {"Authorization": f"Bearer {key}"}
    return server.ask("POST", "/v1/collections/visits/releases", json=query, headers=headers)


def test_what_was_released_after_a_backup_is_entered_again_before_anything_is(
    tmp_path: Path,
) -> None:
    """The budget of a day is one: 0.7 was spent after the backup, so 0.4 is never paid for."""
    url, kept = f"sqlite:///{tmp_path}/store.db", tmp_path / "backup"
    with closing(open_store(url, make=True)) as store:
        _, key = create_key(store, Role.ANALYST, "test", NOW)
    with serve(url, tmp_path) as server:
        backup(url, kept)
        made = release(server, key, "0.7")
    back = f"sqlite:///{tmp_path}/back.db"
    restore(kept, back)
    with serve(back, tmp_path) as server:
        locked = release(server, key, "0.4")
        with closing(open_store(back)) as store:
            entered = PrivacyFilter(store, ReleaseJournal(tmp_path / "journal")).restore_missing(
                NOW, "test"
            )
        too_much, same = release(server, key, "0.4"), release(server, key, "0.7")

    assert made.status_code == 200, made.text
    assert (locked.status_code, locked.json()["type"].rsplit(":")[-1]) == (409, "releases-locked")
    assert len(entered) == 1
    assert too_much.status_code == 409
    assert same.json()["figures"] == made.json()["figures"]
