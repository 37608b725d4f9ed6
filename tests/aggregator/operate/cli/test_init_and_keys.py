"""`veilcount init` and `veilcount keys`, typed for real."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from veilcount_aggregator.records.api_keys import ApiKeys, Role, load_api_keys
from veilcount_aggregator.store import open_store

from .conftest import Type, typed_by_hand


def keys_of(url: str) -> ApiKeys:
    with closing(open_store(url)) as store:
        return load_api_keys(store)


def test_init_makes_the_store_and_shows_its_first_admin_key_once(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The URL may come from the environment; a store in use is changed only with --key."""
    url = f"sqlite:///{tmp_path}/new.db"
    monkeypatch.setenv("VEILCOUNT_STORE", url)
    made, again, another = typed("init", "--json"), typed("init"), typed("init", "--key", "--json")
    first = keys_of(url).find(made.json["key"])

    assert (made.code, again.code) == (0, 0)
    assert first is not None
    assert first.role is Role.ADMIN
    assert made.json["key"] not in (tmp_path / "new.db").read_bytes().decode("latin-1")
    assert "existing store" in again.out
    assert "veilcount_admin_" not in again.out
    assert another.json["new"] is False
    assert another.json["key"].startswith("veilcount_admin_")
    assert len(keys_of(url).keys) == 2


def test_init_refuses_definitions_whose_counters_do_not_fit(
    typed: Type, tmp_path: Path, definitions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a server would at its start; no key is made, and the next call makes it."""
    monkeypatch.setenv("VEILCOUNT_COLLECTIONS", str(definitions))
    monkeypatch.setenv("VEILCOUNT_MAX_COUNTER_MEMORY", "1KB")
    init = ("init", "--store", f"sqlite:///{tmp_path}/small.db", "--json")
    refused = typed(*init)
    monkeypatch.setenv("VEILCOUNT_MAX_COUNTER_MEMORY", "10KB")
    made = typed(*init)

    assert (refused.code, made.code) == (2, 0)
    assert "theme: its counters can need 4.03 KB" in refused.err
    assert made.json["role"] == "admin"


def test_all_that_is_wrong_is_named_at_once_and_nothing_is_made(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("VEILCOUNT_WORKERS", "many")
    monkeypatch.setenv("VEILCOUNT_RATE_LIMIT", "-1")
    monkeypatch.setenv("VEILCOUNT_COLLECTIONS", f"{tmp_path}/none.toml")
    refused = typed("init", "--store", f"sqlite:///{tmp_path}/file/new/store.db")

    assert refused.code == 2
    assert refused.err.replace(str(tmp_path), "HERE").splitlines() == [
        'veilcount: VEILCOUNT_RATE_LIMIT = "-1": give 1 or more, or 0 for no limit',
        'veilcount: VEILCOUNT_WORKERS = "many": give a whole number',
        (
            'veilcount: file = "none.toml": cannot be read (No such file or directory):'
            " check the path and its permissions"
        ),
        "veilcount: HERE/file: not a directory: give a store in another",
    ]


def test_a_missing_directory_is_made_by_consent(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a" / "b"
    words = ("init", "--store", f"sqlite:///{folder}/store.db")
    unasked = typed(*words)
    declined = typed_by_hand(typed, monkeypatch, "n\n", *words)
    before = folder.exists()
    agreed = typed_by_hand(typed, monkeypatch, "y\n", *words)

    assert (unasked.code, declined.code, agreed.code) == (2, 1, 0)
    assert f"{folder}: no such directory" in unasked.err
    assert "create it, or give --yes" in unasked.err
    assert not before
    assert typed("init", "--yes", "--store", f"sqlite:///{tmp_path}/c/store.db").code == 0


def test_the_first_device_key_is_created_by_consent(
    typed: Type, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes the intake to apps without one, for good."""
    words = ("keys", "create", "--role", "device", "--store", store)
    unasked = typed(*words)
    declined = typed_by_hand(typed, monkeypatch, "n\n", *words)
    still_open = keys_of(store).intake_is_open
    agreed = typed_by_hand(typed, monkeypatch, "y\n", *words)

    assert (unasked.code, declined.code, agreed.code) == (2, 1, 0)
    assert "refused with 401" in unasked.err
    assert "no terminal to confirm on: give --yes" in unasked.err
    assert (still_open, keys_of(store).intake_is_open) == (True, False)


@pytest.mark.parametrize("role", [role.value for role in Role])
def test_a_key_opens_its_role_until_it_is_revoked(typed: Type, store: str, role: str) -> None:
    place = ("--store", store)
    words = ("keys", "create", "--role", role, "--label", "[red]x", "--yes")
    made = typed(*words, *place, "--json").json
    found = keys_of(store).find(made["key"])
    table, before = typed("keys", "list", *place), typed("keys", "list", *place, "--json")
    gone = typed("keys", "revoke", made["id"], *place)
    after = typed("keys", "list", *place, "--json").json

    assert found is not None
    assert (found.role, found.label, found.id) == (role, "[red]x", made["id"])
    assert {each["label"]: each["role"] for each in before.json} == {
        "init": "admin",
        "[red]x": role,
    }
    assert made["id"] in table.out
    assert "[red]x" in table.out
    assert made["key"] not in table.out + before.out
    assert gone.code == 0
    assert keys_of(store).find(made["key"]) is None
    assert [each["id"] for each in after if each["revoked"]] == [made["id"]]
