"""Authentication of API keys (`Authorization: Bearer`), one required role per endpoint.

Endpoints for devices need no key until a first device key is created; the others always do. Keys
fail closed: after a while without a refresh from the store they may have been revoked.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from veilcount_serving.rate_limit import RateLimits

from ...records.api_keys import ApiKey, ApiKeys, Role
from ...records.cache import DEVICE_KEYS_SECONDS, KEYS_SECONDS
from ...service import Aggregator
from .problems import refusal

#: invalid keys a second that each worker answers with 401, the rest with 429
GUESSES = 20.0
NOBODY = ""
_SCHEME = "bearer"
_REALM = 'Bearer realm="veilcount"'


class Authenticator:
    """Authenticates the requests of one worker."""

    def __init__(
        self, aggregator: Aggregator, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """`seconds` is a monotonic clock."""
        self._aggregator = aggregator
        share = aggregator.settings.rate_limit / aggregator.settings.workers
        self._devices = RateLimits(share, seconds)
        self._guesses = RateLimits(GUESSES, seconds)

    def admit_device(self, authorization: str) -> str:
        """Return the id of a device key ("": none is required), or refuse; enforces its rate.

        It never waits for the store: what was read last decides.
        """
        cache, key_id = self._aggregator.catalog_cache, NOBODY
        if not cache.current.api_keys.intake_is_open:
            cache.require_recent(DEVICE_KEYS_SECONDS)
            keys = cache.current.api_keys
            if authorization and _find(authorization, keys) is None:
                self._limit_guesses()
            key_id = self._key(authorization, Role.DEVICE, keys).id
        seconds = self._devices.wait(key_id)
        if seconds:
            raise refusal("too-many", Retry_After=str(seconds))
        return key_id

    def admit(self, authorization: str, role: Role) -> ApiKey:
        """Return the key of a request, or refuse one without this role."""
        return self._fresh_key(authorization, role, KEYS_SECONDS)

    def admit_with_stale_keys(self, authorization: str) -> ApiKey:
        """Return an analyst's key for status of the service only: accepted while keys are stale."""
        return self._fresh_key(authorization, Role.ANALYST, DEVICE_KEYS_SECONDS)

    def _fresh_key(self, authorization: str, role: Role, most_seconds: float) -> ApiKey:
        self._aggregator.catalog_cache.require_fresh(most_seconds)
        keys = self._aggregator.known().api_keys
        if authorization and _find(authorization, keys) is None:
            self._limit_guesses()
            self._aggregator.catalog_cache.refresh_if_possible()  # another process may have made it
            keys = self._aggregator.catalog_cache.current.api_keys
        return self._key(authorization, role, keys)

    def _key(self, authorization: str, role: Role, keys: ApiKeys) -> ApiKey:
        key = _find(authorization, keys)
        if key is None:
            why = ', error="invalid_token"' if authorization else ""
            raise refusal("no-key", WWW_Authenticate=_REALM + why)
        if not key.role.opens(role):
            raise refusal("wrong-role", f"this endpoint requires a key of role {role}")
        self._aggregator.key_uses.add(key, self._aggregator.today().isoformat())
        return key

    def _limit_guesses(self) -> None:
        """Refuse further invalid keys. No address is stored."""
        seconds = self._guesses.wait(NOBODY)
        if seconds:
            raise refusal("too-many", Retry_After=str(seconds))


def _find(authorization: str, keys: ApiKeys) -> ApiKey | None:
    scheme, _, secret = authorization.partition(" ")
    return keys.find(secret.strip()) if scheme.lower() == _SCHEME else None
