"""The doors to keys: list, make, take back."""

from __future__ import annotations

from flask import Blueprint, Response, g

from ..auth.api_keys import ApiKey, Role, create_key, load_api_keys, revoke_key
from ..errors import SettingsError
from ..service import Aggregator
from .auth import Authenticator
from .json_io import answer, asked
from .problems import refusal
from .schemas import KeyLine, KeyLines, NewKey, WantedKey


def doors(aggregator: Aggregator, authority: Authenticator) -> Blueprint:
    """Return the doors."""
    blueprint = Blueprint("keys", __name__)
    store = aggregator.store

    @blueprint.get("/v1/keys")
    @authority.opens_to(Role.ADMIN)
    def list_all() -> Response:
        """All keys that were ever made, the oldest first; never a key itself."""
        keys = sorted(load_api_keys(store).keys.values(), key=lambda key: (key.created, key.id))
        return answer(KeyLines([_line(key) for key in keys]))

    @blueprint.post("/v1/keys")
    @authority.opens_to(Role.ADMIN)
    def make() -> Response:
        """Make a key; it is shown in this answer and never again."""
        wanted = asked(WantedKey)
        key, secret = create_key(store, wanted.role, wanted.label, aggregator.clock(), g.key.id)
        aggregator.watch.refresh()
        return answer(NewKey(key.id, key.role, key.label, secret), 201)

    @blueprint.delete("/v1/keys/<identity>")
    @authority.opens_to(Role.ADMIN)
    def take_back(identity: str) -> Response:
        """Take a key back: within a second no worker takes it."""
        try:
            key = revoke_key(store, identity, aggregator.clock(), g.key.id)
        except SettingsError as error:
            raise refusal("not-found", "no such key: GET /v1/keys lists them") from error
        aggregator.watch.refresh()
        return answer(_line(key))

    return blueprint


def _line(key: ApiKey) -> KeyLine:
    return KeyLine(key.id, key.role, key.label, key.created, key.used, key.revoked)
