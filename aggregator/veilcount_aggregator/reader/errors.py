"""What can go wrong on the way to an answer, as one tree.

ReaderError
  x Unreachable       no aggregator answered there
  x KeyRefused        no key, an unknown one, or one that opens other doors (401, 403)
  x NotFound          no collection of this name (404)
  x AnswerRefused     the question cannot be answered: `field` says which part of it, the text how
                      to ask instead
"""

from __future__ import annotations


class ReaderError(Exception):
    """The base of all that goes wrong here."""


class Unreachable(ReaderError):
    """No aggregator answered at this address."""


class KeyRefused(ReaderError):
    """The key does not open this door."""


class NotFound(ReaderError):
    """There is no such collection."""


class AnswerRefused(ReaderError):
    """The question cannot be answered as it was asked."""

    def __init__(self, status: int, why: str, field: str = "") -> None:
        """Say why, and which parameter it is about."""
        super().__init__(why)
        self.status = status
        self.field = field
