"""Errors of Redis mapped to errors of the store."""

from __future__ import annotations

import ssl

import redis
from redis.exceptions import (
    AuthenticationError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ResponseError,
)

from veilcount_serving.errors import system_reason

from ...errors import (
    RetentionTooEarly,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnfit,
)

START_REDIS = "start it, or check the address, the network and what its log says"
EXPECT_TLS = "if it speaks TLS, write rediss://, or tls=on with redis-cluster://"
EXPECT_TLS_PORT = f"{START_REDIS}, and that this port speaks TLS"
MEND_TRUST = (
    "end the store's URL in ca=FILE of the CA that signed it, and write a host as it is named there"
)
_NO_FUNCTION = "Function not found"
_LOADED = "already exists"
#: by how the answer begins; the first three are errors of the library itself
_REFUSALS: dict[str, tuple[type[StoreError], str]] = {
    "CLOSED": (
        StoreReadOnly,
        "the store is read-only: it was copied, or is being copied, to another",
    ),
    "REPLACED": (
        StoreUnfit,
        "Redis at {place} is not the store that was opened: it was emptied or replaced",
    ),
    "LIFE": (
        StoreUnavailable,
        (
            "Redis at {place} was started, promoted or given this shard a moment ago: it is"
            " compared with what was acknowledged first; ask again"
        ),
    ),
    "TOOEARLY": (
        RetentionTooEarly,
        (
            "Redis at {place} drops nothing yet, since by its own clock it is too early: compare"
            " the clocks with `veilcount doctor`"
        ),
    ),
    "This instance has cluster support disabled": (
        StoreUnfit,
        "Redis at {place} is no cluster: write redis://{place}/0",
    ),
}


def is_moved(error: object) -> bool:
    """Whether the keys are at another server of the cluster."""
    return isinstance(error, MovedError)


def is_library_missing(error: object) -> bool:
    """Whether the server has no function library: it was emptied, or is new in the cluster."""
    return isinstance(error, ResponseError) and str(error).startswith(_NO_FUNCTION)


def is_life_new(error: object) -> bool:
    """Whether the server process is another than the one whose height was compared."""
    return isinstance(error, ResponseError) and str(error).startswith("LIFE ")


def is_repeatable(answer: object) -> bool:
    """Whether a write was not done: no such keys, no library yet, or a height not compared."""
    cause = answer.__cause__ if isinstance(answer, StoreError) else None
    return is_moved(cause) or is_library_missing(cause) or is_life_new(cause)


def is_library_loaded(error: ResponseError) -> bool:
    """Whether another process has just loaded the library."""
    return _LOADED in str(error)


def reply_error(place: str, error: Exception) -> StoreError:
    """Map an error reply: nothing was written."""
    text = str(error)
    if isinstance(error, OutOfMemoryError):
        return StoreFull(f"Redis at {place} has no memory left: raise maxmemory, or free some")
    for prefix, (kind, message) in _REFUSALS.items():
        if text.startswith(prefix):
            return kind(message.format(place=place))
    if isinstance(error, AuthenticationError | NoPermissionError):
        return StoreUnfit(f"Redis at {place} refuses this user: {text}")
    return StoreUnavailable(f"Redis at {place} refused the command: {text}")


def connection_error(place: str, error: BaseException, *, tls: bool) -> StoreError:
    """Map a connection error: whether anything was written is not known."""
    if isinstance(error, AuthenticationError):
        return StoreUnfit(f"Redis at {place} refuses this user: {error}")
    if isinstance(error.__context__, ssl.SSLCertVerificationError):
        return StoreUnfit(f"Redis at {place} is not trusted: {connection_reason(error, tls=tls)}")
    return StoreUnavailable(
        f"Redis at {place} does not answer: {connection_reason(error, tls=tls)}"
    )


def connection_reason(error: BaseException, *, tls: bool) -> str:
    """Return why a connection failed, and the fix; the library keeps the cause as the context."""
    cause = error.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate: {cause.verify_message.rstrip('.')}: {MEND_TRUST}"
    if isinstance(cause, ConnectionResetError) and not tls:
        return f"{system_reason(cause)}: {START_REDIS}; {EXPECT_TLS}"
    fix = EXPECT_TLS_PORT if tls and isinstance(cause, ssl.SSLError | TimeoutError) else START_REDIS
    return f"{system_reason(error)}: {fix}"


#: raised by a connection while it is opened, written or read; a ValueError where another thread has
#: closed it, and its buffer
BROKEN = (redis.ConnectionError, redis.TimeoutError, OSError, ValueError)
