"""Load on a server that is there already: definitions are fetched from it, bodies are drawn."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from loadtests.questions import definitions

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.records.definitions import load_catalog
from veilcount_aggregator.store import open_store

from ..client.device_fixtures import definitions_text
from .server import Server, free_port

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(180)
def test_every_collection_is_loaded_and_a_missing_key_is_named(tmp_path: Path) -> None:
    url, now = f"sqlite:///{tmp_path}/store.db", datetime.now(UTC)
    with closing(open_store(url, make=True)) as store:
        keys = {
            f"VEILCOUNT_{name}": create_key(store, role, "load", now)[1]
            for name, role in (("KEY", Role.ANALYST), ("DEVICE_KEY", Role.DEVICE))
        }
    file = tmp_path / "collections.toml"
    dates = {"from": now.date(), "until": "2099-01-01"}
    central = definitions_text("", dates, crash={"model": "central", "budget": 1})
    text = definitions(now.date()) + central.partition("\n")[2]  # without the app
    file.write_text(text, encoding="utf-8")
    with Server(url, tmp_path, "--collections", str(file)) as server:
        away = load(f"http://127.0.0.1:{free_port()}", {})
        unkeyed = load(server.url, {})
        strange = load(server.url, {"VEILCOUNT_KEY": keys["VEILCOUNT_KEY"]})
        loaded = load(server.url, keys)

    assert away.returncode != 0
    assert "no answer: check the address and the network" in away.stderr
    assert unkeyed.returncode != 0
    assert "give an analyst's key as VEILCOUNT_KEY" in unkeyed.stderr
    assert strange.returncode == 1
    assert "give it as VEILCOUNT_DEVICE_KEY" in strange.stdout + strange.stderr
    assert loaded.returncode == 0, loaded.stdout + loaded.stderr
    with closing(open_store(url)) as store:
        counted = {
            name: sum(store.report_counts(series[0]).values())
            for name, series in load_catalog(store).by_name.items()
        }
    assert counted.keys() == {"autosave", "theme", "plugin", "minutes", "crash"}
    assert all(counted.values())


def load(url: str, keys: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "loadtests" / "run.py"), "--against", url, "--seconds", "4"],
        cwd=ROOT,
        env={name: v for name, v in os.environ.items() if not name.startswith("VEILCOUNT_")} | keys,
        capture_output=True,
        text=True,
        check=False,
    )
