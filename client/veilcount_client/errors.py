"""The exceptions of a strict client, and the log: without `strict` a problem is logged once.

VeilcountError (shared)
  + ClientError
    x UnknownCollection   the definitions have no collection of this name
    x UnknownValue        the definition does not have the value
    x NotUsable           the client cannot record; the message says why
    x NotAnAnswer         a decision was neither True nor False, or about no question
    x NotAPerson          what was given as a person's id names nobody
StateError                the state cannot be used now: a client logs it, and tries again
"""

from __future__ import annotations

import logging

from veilcount_shared.errors import VeilcountError

log = logging.getLogger("veilcount")


class ClientError(VeilcountError):
    """The base class of the client's own exceptions."""


class UnknownCollection(ClientError, LookupError):
    """The definitions have no collection of this name, or it did not fit under the ceilings."""


class UnknownValue(ClientError, ValueError):
    """The definition does not have the value, which the message does not show."""


class NotUsable(ClientError, RuntimeError):
    """The client cannot record: no definitions, no state, or a kill switch."""


class NotAnAnswer(ClientError, TypeError):
    """A decision is `True` or `False`, on everything, on what is new, or on named collections."""


class NotAPerson(ClientError, ValueError):
    """What was given as a person's id names nobody: the message shows its type, never the id."""


class StateError(Exception):
    """The state cannot be used now: no disk, no server, no right. Nothing was half done.

    Where the way to a server broke twice, all of it may have been done.
    """


class ProblemLog:
    """Logs the first problem of each kind as a warning, and remembers the latest message."""

    def __init__(self) -> None:
        """Start without problems."""
        self.messages: dict[str, str] = {}  # the latest of each kind
        self._logged: set[str] = set()

    def add(self, kind: str, message: str) -> None:
        """Log a problem if it is the first of its kind. The message must hold no value."""
        self.messages[kind] = message
        self.warn_once(kind, message)

    def warn_once(self, kind: str, message: str, level: int = logging.WARNING) -> None:
        """Log a problem that is not remembered, since `explain` looks for it by itself."""
        if kind not in self._logged:
            self._logged.add(kind)
            log.log(level, "veilcount, %s: %s", kind, message)

    def of(self, name: str) -> dict[str, str]:
        """Return the latest problems that concern a collection, or all of them."""
        return {
            kind: message
            for kind, message in self.messages.items()
            if kind.partition(" ")[2] in {"", name}
        }

    def clear(self, kind: str) -> None:
        """Forget a problem that is solved; if it comes back, it is logged again."""
        self.messages.pop(kind, None)
        self._logged.discard(kind)


def log_to_stderr() -> None:
    """Show a developer every line, in a program that has not configured logging (yet)."""
    if log.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    handler.addFilter(lambda _: not logging.getLogger().handlers)  # or each would appear twice
    log.addHandler(handler)
    log.setLevel(logging.INFO)
