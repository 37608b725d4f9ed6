"""`veilcount init` and `veilcount keys`, typed for real."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from veilcount_aggregator.auth.api_keys import ApiKeys, Role, load_api_keys
from veilcount_aggregator.store import open_store

from .conftest import Type


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


@pytest.mark.parametrize("role", [role.value for role in Role])
def test_a_key_opens_its_role_until_it_is_revoked(typed: Type, store: str, role: str) -> None:
    place = ("--store", store)
    made = typed("keys", "create", "--role", role, "--label", "[red]x", *place, "--json").json
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


def test_the_first_device_key_closes_the_intake_with_a_message(typed: Type, store: str) -> None:
    first, second = (typed("keys", "create", "--role", "device", "--store", store) for _ in "ab")

    assert "reports require a device key" in first.out
    assert "require" not in second.out
