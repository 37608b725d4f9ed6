"""`veilcount init` and `veilcount keys`, typed for real."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilcount_aggregator.auth.api_keys import Role, load_api_keys
from veilcount_aggregator.store import open_store

from .conftest import Type


def secrets_of(url: str) -> int:
    store = open_store(url)
    try:
        return len(load_api_keys(store).keys)
    finally:
        store.close()


def test_init_makes_the_store_and_shows_its_first_admin_key_once(
    typed: Type, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/new.db"

    made = typed("init", "--store", url, "--json")
    store = open_store(url)
    found = load_api_keys(store).find(made.json["key"])
    store.close()

    assert made.code == 0
    assert found is not None
    assert found.role is Role.ADMIN
    assert made.json["key"] not in (tmp_path / "new.db").read_bytes().decode("latin-1")


def test_init_on_a_store_in_use_changes_nothing_and_says_so(typed: Type, store: str) -> None:
    again = typed("init", "--store", store)

    assert again.code == 0
    assert "existing store" in again.out
    assert "veilcount_admin_" not in again.out
    assert secrets_of(store) == 1


def test_init_makes_another_admin_key_with_key(typed: Type, store: str) -> None:
    again = typed("init", "--store", store, "--key", "--json")

    assert again.json["new"] is False
    assert again.json["key"].startswith("veilcount_admin_")
    assert secrets_of(store) == 2


def test_the_store_may_come_from_the_environment(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEILCOUNT_STORE", f"sqlite:///{tmp_path}/other.db")

    assert typed("init").code == 0
    assert (tmp_path / "other.db").exists()


@pytest.mark.parametrize("role", [role.value for role in Role])
def test_a_key_that_is_made_opens_its_role(typed: Type, store: str, role: str) -> None:
    made = typed("keys", "create", "--role", role, "--label", "mine", "--store", store, "--json")
    opened = open_store(store)
    found = load_api_keys(opened).find(made.json["key"])
    opened.close()

    assert found is not None
    assert (found.role, found.label, found.id) == (role, "mine", made.json["id"])


def test_the_first_device_key_closes_the_intake_with_a_message(typed: Type, store: str) -> None:
    first = typed("keys", "create", "--role", "device", "--store", store)
    second = typed("keys", "create", "--role", "device", "--store", store)

    assert "reports require a device key" in first.out
    assert "require" not in second.out


def test_a_list_of_keys_shows_everything_but_the_keys(typed: Type, store: str) -> None:
    key = typed("keys", "create", "--role", "analyst", "--label", "ann", "--store", store, "--json")

    listed = typed("keys", "list", "--store", store, "--json")
    table = typed("keys", "list", "--store", store)

    assert {each["role"]: each["label"] for each in listed.json} == {
        "admin": "init",
        "analyst": "ann",
    }
    assert key.json["id"] in table.out
    assert key.json["key"] not in table.out + listed.out


def test_a_label_is_shown_as_it_is(typed: Type, store: str) -> None:
    typed("keys", "create", "--role", "analyst", "--label", "[red]x[/red]", "--store", store)

    assert "[red]x[/red]" in typed("keys", "list", "--store", store).out


def test_a_revoked_key_opens_nothing_and_stays_listed(typed: Type, store: str) -> None:
    made = typed("keys", "create", "--role", "analyst", "--store", store, "--json").json

    gone = typed("keys", "revoke", made["id"], "--store", store)
    listed = typed("keys", "list", "--store", store, "--json").json
    opened = open_store(store)
    found = load_api_keys(opened).find(made["key"])
    opened.close()

    assert gone.code == 0
    assert found is None
    assert [each["id"] for each in listed if each["revoked"]] == [made["id"]]
