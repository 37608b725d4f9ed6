"""Errors of Redis mapped to errors of the store."""

from __future__ import annotations

import redis
from redis.exceptions import (
    AuthenticationError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ResponseError,
)

from ...errors import (
    RetentionTooEarly,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnfit,
)

#: prefixes of the library's own errors
_READ_ONLY = "CLOSED"
_REPLACED = "REPLACED"
_TOO_EARLY = "TOOEARLY"
_NO_FUNCTION = "Function not found"
_LOADED = "already exists"
_NO_CLUSTER = "This instance has cluster support disabled"


def is_moved(error: object) -> bool:
    """Whether the keys are at another server of the cluster."""
    return isinstance(error, MovedError)


def is_library_missing(error: object) -> bool:
    """Whether the server has no function library: it was emptied, or is new in the cluster."""
    return isinstance(error, ResponseError) and str(error).startswith(_NO_FUNCTION)


def is_repeatable(answer: object) -> bool:
    """Whether a write was not done by a server that has no such keys, or no library yet."""
    cause = answer.__cause__ if isinstance(answer, StoreError) else None
    return is_moved(cause) or is_library_missing(cause)


def is_library_loaded(error: ResponseError) -> bool:
    """Whether another process has just loaded the library."""
    return _LOADED in str(error)


def reply_error(place: str, error: Exception) -> StoreError:
    """Map an error reply: nothing was written."""
    text = str(error)
    if isinstance(error, OutOfMemoryError):
        return StoreFull(f"Redis at {place} has no memory left: raise maxmemory, or free some")
    if refused := _refused(place, text):
        return refused
    if isinstance(error, AuthenticationError | NoPermissionError):
        return StoreUnfit(f"Redis at {place} refuses this user: {text}")
    if text.startswith(_NO_CLUSTER):
        return StoreUnfit(f"Redis at {place} is no cluster: write redis://{place}/0")
    return StoreUnavailable(f"Redis at {place}: {type(error).__name__}: {text}")


def _refused(place: str, text: str) -> StoreError | None:
    """Map an error of the library itself; None: it is not one."""
    if text.startswith(_READ_ONLY):
        return StoreReadOnly(
            "the store is read-only: it was copied, or is being copied, to another"
        )
    if text.startswith(_REPLACED):
        return StoreUnfit(
            f"Redis at {place} is not the store that was opened: it was emptied or replaced"
        )
    if text.startswith(_TOO_EARLY):
        return RetentionTooEarly(
            f"Redis at {place} drops nothing yet, since by its own clock it is too early: compare"
            " the clocks with `veilcount doctor`"
        )
    return None


def connection_error(error: BaseException) -> StoreError:
    """Map a connection error: whether anything was written is not known."""
    if isinstance(error, AuthenticationError):
        return StoreUnfit(f"Redis refuses this user: {error}")
    return StoreUnavailable(f"Redis does not answer: {error}")


#: raised by a connection while it is opened, written or read
BROKEN = (redis.ConnectionError, redis.TimeoutError, OSError)
