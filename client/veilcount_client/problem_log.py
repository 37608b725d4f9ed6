"""Problems of the client: each is logged once, and its latest message kept for `explain`."""

from __future__ import annotations

import logging
from collections.abc import Mapping

log = logging.getLogger("veilcount")


class ProblemLog:
    """Logs the first problem of each kind as a warning, and remembers the latest message."""

    def __init__(self) -> None:
        """Start without problems."""
        self._messages: dict[str, str] = {}

    @property
    def messages(self) -> Mapping[str, str]:
        """The latest message of each kind."""
        return self._messages

    def add(self, kind: str, message: str) -> None:
        """Log a problem if it is the first of its kind. The message must hold no value."""
        if kind not in self._messages:
            log.warning("veilcount, %s: %s", kind, message)
        self._messages[kind] = message

    def clear(self, kind: str) -> None:
        """Forget a problem that is solved; if it comes back, it is logged again."""
        self._messages.pop(kind, None)
