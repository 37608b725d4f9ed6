"""`veilcount store`, typed for real."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

from veilcount_aggregator.auth.api_keys import load_api_keys
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.factory import redact_url
from veilcount_aggregator.store.restore_lock import release_lock_reason

from .conftest import Type, Typed


def test_a_store_is_healthy_if_it_keeps_reports_over_a_power_cut(typed: Type, store: str) -> None:
    durable = typed("store", "check", "--store", store, "--json")
    relaxed = typed("store", "check", "--store", f"{store}?durability=relaxed", "--json")

    assert (durable.code, relaxed.code) == (0, 1)
    assert (durable.json["durable"], durable.json["read_only"]) == ("yes", False)
    assert relaxed.json["durable"] == "no"


def test_a_copy_has_everything_and_its_source_is_closed(
    typed: Type, store: str, tmp_path: Path, definitions: Path
) -> None:
    typed("collections", "push", str(definitions), "--store", store)
    target = f"sqlite:///{tmp_path}/target.db"

    copied = typed("store", "copy", store, target, "--json")
    source, there = (typed("store", "check", "--store", url, "--json") for url in (store, target))
    listed = typed("collections", "list", "--store", target, "--json").json
    refused = typed("keys", "create", "--role", "analyst", "--store", store)

    assert copied.code == 0
    assert copied.json["pieces"] >= 3
    assert (source.code, source.json["read_only"], source.json["copied_to"]) == (1, True, target)
    assert (there.code, there.json["read_only"]) == (0, False)
    assert [each["name"] for each in listed] == ["theme"]
    assert refused.code == 3


def test_a_store_stays_read_only_until_somebody_says_that_the_copy_is_gone(
    typed: Type, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = f"sqlite:///{tmp_path}/served.db"
    typed("store", "copy", store, copy)

    unasked = typed("store", "allow-writes", "--store", store)
    refused = typed_by_hand(typed, monkeypatch, "yes\n", "store", "allow-writes", "--store", store)
    still = typed("store", "check", "--store", store, "--json").json
    agreed = typed_by_hand(
        typed, monkeypatch, "destroyed\n", "store", "allow-writes", "--store", store
    )

    assert (unasked.code, refused.code, agreed.code) == (2, 1, 0)
    assert "--yes" in unasked.err
    assert f"copied to {copy}" in unasked.err
    assert "budgets can be spent in both" in refused.err
    assert still["read_only"]
    assert agreed.out == "the store accepts reports again\n"
    assert typed("store", "allow-writes", "--store", store).out == "the store was not read-only\n"
    assert typed("keys", "create", "--role", "analyst", "--store", store).code == 0
    typed("store", "copy", store, f"sqlite:///{tmp_path}/again.db")
    assert typed("store", "allow-writes", "--store", store, "--yes").code == 0


def typed_by_hand(typed: Type, monkeypatch: pytest.MonkeyPatch, answer: str, *words: str) -> Typed:
    mine, its = pty.openpty()
    with os.fdopen(its, encoding="utf-8") as terminal:
        os.write(mine, answer.encode())
        monkeypatch.setattr(sys, "stdin", terminal)
        result = typed(*words)
    os.close(mine)
    return result


def test_a_backup_comes_back_with_its_releases_locked(
    typed: Type, store: str, tmp_path: Path
) -> None:
    file, url = tmp_path / "backup.db", f"sqlite:///{tmp_path}/back.db"

    saved = typed("store", "backup", str(file), "--store", store, "--json")
    restored = typed("store", "restore", str(file), "--store", url)
    opened = open_store(url)
    keys, lock = load_api_keys(opened).keys, release_lock_reason(opened)
    opened.close()

    assert saved.json == {"file": str(file), "bytes": file.stat().st_size}
    assert restored.code == 0
    assert "locked" in restored.out
    assert len(keys) == 1
    assert lock is not None


def test_no_password_is_shown() -> None:
    assert redact_url("redis://me:secret@host:1/0") == "redis://me:***@host:1/0"
    assert redact_url("redis://:s%40e@host:1/0") == "redis://:***@host:1/0"
    assert redact_url("redis://host/0?password=secret&db=1") == "redis://host/0?password=***&db=1"
    assert redact_url("sqlite:////var/lib/x.db") == "sqlite:////var/lib/x.db"
