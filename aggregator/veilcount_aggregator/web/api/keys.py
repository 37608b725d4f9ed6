"""Endpoints of API keys: list, create, revoke."""

from __future__ import annotations

from veilcount_serving.errors import SettingsError

from ...records import api_keys
from ...records.api_keys import ApiKey, Role
from .endpoint import Api, endpoint
from .problems import refusal
from .schemas import CreatedKey, KeyInfo, KeyList, KeyRequest


@endpoint("GET", "/v1/keys", Role.ADMIN, returns=KeyList)
def list_keys(api: Api) -> KeyList:
    """All keys that were ever created, the oldest first; never the secrets."""
    keys = api_keys.load_api_keys(api.aggregator.store).keys.values()
    return KeyList([_info(key) for key in sorted(keys, key=lambda key: (key.created, key.id))])


@endpoint("POST", "/v1/keys", Role.ADMIN, takes=KeyRequest, returns=CreatedKey, statuses=(201,))
def create_key(api: Api, body: KeyRequest) -> CreatedKey:
    """Create a key. The secret is in this response only."""
    aggregator = api.aggregator
    key, secret = api_keys.create_key(
        aggregator.store, body.role, body.label, aggregator.clock(), api.key.id, apps=body.apps
    )
    aggregator.catalog_cache.refresh()
    return CreatedKey(key.id, key.role, key.label, secret)


@endpoint("DELETE", "/v1/keys/{identity}", Role.ADMIN, returns=KeyInfo)
def revoke_key(api: Api, identity: str) -> KeyInfo:
    """Revoke a key. Every worker refuses it within a second."""
    aggregator = api.aggregator
    try:
        key = api_keys.revoke_key(aggregator.store, identity, aggregator.clock(), api.key.id)
    except SettingsError as error:
        raise refusal("not-found", "no such key: GET /v1/keys lists them") from error
    aggregator.catalog_cache.refresh()
    return _info(key)


def _info(key: ApiKey) -> KeyInfo:
    return KeyInfo(key.id, key.role, key.label, key.created, key.used, key.revoked, list(key.apps))
