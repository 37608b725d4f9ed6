"""The exceptions of a strict client, and the log: without `strict` a problem is logged once.

VeilcountError (shared)
  + ClientError
    x UnknownCollection   the definitions have no collection of this name
    x NotUsable           the client cannot record; the message says why
"""

from __future__ import annotations

import logging

from veilcount_shared.errors import VeilcountError

log = logging.getLogger("veilcount")


class ClientError(VeilcountError):
    """The base class of the client's own exceptions."""


class UnknownCollection(ClientError, LookupError):
    """The definitions have no collection of this name, or it did not fit under the ceilings."""


class NotUsable(ClientError, RuntimeError):
    """The client cannot record: no definitions, no state, or a kill switch."""


class ProblemLog:
    """Logs the first problem of each kind as a warning, and remembers the latest message."""

    def __init__(self) -> None:
        """Start without problems."""
        self.messages: dict[str, str] = {}  # the latest of each kind

    def add(self, kind: str, message: str) -> None:
        """Log a problem if it is the first of its kind. The message must hold no value."""
        if kind not in self.messages:
            log.warning("veilcount, %s: %s", kind, message)
        self.messages[kind] = message

    def clear(self, kind: str) -> None:
        """Forget a problem that is solved; if it comes back, it is logged again."""
        self.messages.pop(kind, None)
