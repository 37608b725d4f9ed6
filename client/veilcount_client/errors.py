"""What `strict=True` raises; without it the same is logged once and counted.

VeilcountError (shared)
  + ClientError
    x UnknownCollection   the definitions have no collection of this name
    x NotUsable           the client cannot record at all: it says why
"""

from __future__ import annotations

from veilcount_shared.errors import VeilcountError


class ClientError(VeilcountError):
    """The base of what a strict client raises of its own."""


class UnknownCollection(ClientError, LookupError):
    """The definitions have no collection of this name, or it did not fit under the ceilings."""


class NotUsable(ClientError, RuntimeError):
    """The client cannot record: no definitions, no state, or a kill switch."""
