"""Keys: random, hashed, labelled, several at once, taken back for good."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from veilcount_aggregator.records.api_keys import (
    KIND,
    ApiKey,
    ApiKeys,
    Role,
    create_key,
    load_api_keys,
    record_key_use,
    revoke_key,
)
from veilcount_aggregator.records.audit_log import load_audit_log
from veilcount_aggregator.store import Store

NOW = datetime(2026, 12, 3, 12, 34, 56, tzinfo=UTC)


def test_a_key_is_found_by_its_secret_alone(store: Store) -> None:
    made = [create_key(store, role, role, NOW) for role in Role]
    ring = load_api_keys(store)

    assert [ring.find(secret) for _, secret in made] == [key for key, _ in made]
    for _, secret in made:
        assert ring.find(secret[:-1] + ("A" if secret[-1] != "A" else "E")) is None
    assert ring.find("") is None
    assert ring.find("\udcff") is None


def test_a_secret_is_32_random_bytes_after_its_role(store: Store) -> None:
    secrets = [create_key(store, Role.DEVICE, "", NOW)[1] for _ in range(5)]

    assert len(set(secrets)) == 5
    for secret in secrets:
        mark, random = secret[:17], secret[17:]
        assert mark == "veilcount_device_"
        assert len(urlsafe_b64decode(random + "=")) == 32


def test_a_store_holds_no_secret(store: Store) -> None:
    _, secret = create_key(store, Role.ADMIN, "mine", NOW)
    kept = b"".join(store.records(KIND).values()) + repr(load_audit_log(store)).encode()

    assert secret.encode() not in kept
    assert secret[17:].encode() not in kept


def test_a_key_that_was_taken_back_opens_nothing(store: Store) -> None:
    """Nor does its use, recorded late, bring it back."""
    key, secret = create_key(store, Role.ANALYST, "", NOW)
    gone = revoke_key(store, key.id, NOW + timedelta(days=1))
    again = revoke_key(store, key.id, NOW + timedelta(days=2))
    record_key_use(store, key, NOW + timedelta(days=3))

    assert load_api_keys(store).find(secret) is None
    assert gone.revoked == again.revoked == "2026-12-04"
    assert len(load_api_keys(store).keys) == 1


def test_the_intake_is_open_until_the_first_device_key(store: Store) -> None:
    states = [load_api_keys(store).intake_is_open]
    create_key(store, Role.ADMIN, "", NOW)
    states.append(load_api_keys(store).intake_is_open)
    key, _ = create_key(store, Role.DEVICE, "", NOW)
    states.append(load_api_keys(store).intake_is_open)
    revoke_key(store, key.id, NOW)
    states.append(load_api_keys(store).intake_is_open)

    assert states == [True, True, False, False]


class ListedKeys(dict[str, ApiKey]):
    """Keys that count how often they are listed."""

    lists = 0

    def values(self) -> Any:
        self.lists += 1
        return super().values()


@pytest.mark.parametrize("device", [0, 9_999])
def test_no_request_lists_the_keys(device: int) -> None:
    roles = [Role.DEVICE if place == device else Role.ANALYST for place in range(10_000)]
    listed = ListedKeys(
        {
            str(place): ApiKey(f"{place:08}", role, "", str(place), "")
            for place, role in enumerate(roles)
        }
    )
    ring = ApiKeys(listed)
    states = {ring.intake_is_open for _ in range(100)}

    assert states == {False}
    assert listed.lists == 1


def test_the_last_day_is_kept_and_written_once_a_day(store: Store) -> None:
    key, _ = create_key(store, Role.DEVICE, "", NOW)
    record_key_use(store, key, NOW)
    generation = store.generation()
    record_key_use(store, key, NOW + timedelta(hours=2))
    same_day = store.generation()
    record_key_use(store, key, NOW + timedelta(days=1))
    (kept,) = load_api_keys(store).keys.values()

    assert same_day == generation
    assert kept.used == "2026-12-04"
    assert b"12:34" not in store.records(KIND)[key.id]
