"""Errors of the reader, as one tree.

ReaderError
  x Unreachable       no aggregator answered at the address
  x KeyRefused        no key, an unknown one, or one of another role (401, 403)
  x NotFound          no collection of this name (404)
  x AnswerRefused     the query cannot be answered: `field` is the parameter, the text names the fix
"""

from __future__ import annotations


class ReaderError(Exception):
    """The base of all errors of the reader."""


class Unreachable(ReaderError):
    """No aggregator answered at this address."""


class KeyRefused(ReaderError):
    """The key is missing, unknown, or of another role."""


class NotFound(ReaderError):
    """There is no such collection."""


class AnswerRefused(ReaderError):
    """The query cannot be answered."""

    def __init__(self, status: int, why: str, field: str = "") -> None:
        """State the reason and the parameter."""
        super().__init__(why)
        self.status = status
        self.field = field
