"""Ids of requests, UUIDs, by which an operator finds the log line of a problem document.

An id is random, and only a request that was refused or failed has one: nothing of an accepted
report could be found by it, and none is ever stored. The shipped proxy names requests too. Its ids
are taken only where the operator says that nobody can bypass it: a device could else choose the id
that its own request is logged under.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import uuid4

HEADER = "X-Veilcount-Request-Id"
ENVIRON_NAME = "HTTP_X_VEILCOUNT_REQUEST_ID"  # of the header, in WSGI
UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@dataclass(frozen=True, slots=True)
class RequestIds:
    """Chooses ids; with `from_proxy` the proxy's, where it gives one."""

    from_proxy: bool = False

    def choose(self, header: str | None) -> str:
        """Return the id of a request with this header."""
        if header and self.from_proxy and re.fullmatch(UUID, header):
            return header
        return str(uuid4())


OWN_IDS = RequestIds()
