"""Who may open which door: `Authorization: Bearer` and a key, one role a door.

Doors for devices are open until the first device key is made. The others always need a key. Keys
fail closed: those that could not be read again for a while may be revoked by now.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from ..auth.api_keys import ApiKey, Role, record_key_use
from ..auth.rate_limit import RateLimits
from ..catalog.cache import DEVICE_KEYS_SECONDS, KEYS_SECONDS
from ..errors import StoreError
from ..service import Aggregator
from .problems import ProblemError, refusal

#: guesses a second that each worker answers in words; 32 random bytes are safe at any speed
GUESSES = 20.0
NOBODY = ""
_SCHEME = "bearer"
_REALM = 'Bearer realm="veilcount"'


class Authenticator:
    """Looks at keys, for all doors of one worker."""

    def __init__(
        self, aggregator: Aggregator, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """`seconds` is a clock that never goes back."""
        self._aggregator = aggregator
        share = aggregator.settings.rate_limit / aggregator.settings.workers
        self._devices = RateLimits(share, seconds)
        self._guesses = RateLimits(GUESSES, seconds)
        self._lock = threading.Lock()
        self._marked: dict[str, str] = {}  # by a key's id: the day on which it was last marked

    def admit_device(self, authorization: str) -> str:
        """Return the id of a device's key ("": the intake is open), or refuse: also at its rate."""
        who = NOBODY
        if not self._aggregator.known().api_keys.intake_is_open:
            who = self._key(authorization, Role.DEVICE, DEVICE_KEYS_SECONDS).id
        seconds = self._devices.wait(who)
        if seconds:
            raise refusal("too-many", Retry_After=str(seconds))
        return who

    def admit(self, authorization: str, door: Role) -> ApiKey:
        """Return the key that opens a door, or refuse."""
        return self._key(authorization, door, KEYS_SECONDS)

    def admit_with_stale_keys(self, authorization: str) -> ApiKey:
        """Return an analyst's key, for how the service is alone: also while keys are old."""
        return self._key(authorization, Role.ANALYST, DEVICE_KEYS_SECONDS)

    def _key(self, authorization: str, door: Role, most_seconds: float) -> ApiKey:
        self._aggregator.watch.require_fresh(most_seconds)
        scheme, _, secret = authorization.partition(" ")
        found = scheme.lower() == _SCHEME and self._aggregator.known().api_keys.find(secret.strip())
        if not found:
            raise self._unknown(given=bool(authorization))
        if not found.role.opens(door):
            raise refusal("wrong-role", f"this door opens to a key of role {door}")
        self._mark(found)
        return found

    def _unknown(self, *, given: bool) -> ProblemError:
        """Return the refusal of no key, or of one that is none. Nobody's address is kept."""
        seconds = self._guesses.wait(NOBODY) if given else 0
        if seconds:
            return refusal("too-many", Retry_After=str(seconds))
        why = ', error="invalid_token"' if given else ""
        return refusal("no-key", WWW_Authenticate=_REALM + why)

    def _mark(self, key: ApiKey) -> None:
        """Keep the day on which a key was used. That it cannot be written shuts no door."""
        day = self._aggregator.today().isoformat()
        if key.used >= day or self._marked.get(key.id) == day:
            return
        with self._lock:
            if self._marked.get(key.id) == day:
                return
            self._marked[key.id] = day
        with suppress(StoreError):
            record_key_use(self._aggregator.store, key, self._aggregator.clock())
