"""The exceptions of a strict client; without `strict` the same is logged once and counted.

VeilcountError (shared)
  + ClientError
    x UnknownCollection   the definitions have no collection of this name
    x NotUsable           the client cannot record; the message says why
"""

from __future__ import annotations

from veilcount_shared.errors import VeilcountError


class ClientError(VeilcountError):
    """The base class of the client's own exceptions."""


class UnknownCollection(ClientError, LookupError):
    """The definitions have no collection of this name, or it did not fit under the ceilings."""


class NotUsable(ClientError, RuntimeError):
    """The client cannot record: no definitions, no state, or a kill switch."""
