"""Bodies of requests, read on the event loop: within their limit, their time and a shared budget.

A body that never comes costs its connection some 40 kilobytes until its deadline (`./dev bench
stalls`), and no thread; large ones share a budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from veilcount_serving.errors import Overloaded
from veilcount_serving.group_commit import RETRY_SECONDS
from veilcount_shared.wire import MAX_BODY

from ..intake.decode import too_large
from ..web.api.problems import refusal

BODY_SECONDS = 10.0  # until a body has come as a whole
SMALL_BODY = 16 << 10  # as devices send them: their number is that of connections
MOST_LARGE_BYTES = 24 << 20


T = TypeVar("T")


class RequestProtocol(Protocol):
    """A request's body and its response, as RSGI has them."""

    async def __call__(self) -> bytes:
        """Return the body."""

    def __aiter__(self) -> Any:
        """Return the pieces of the body."""

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Respond."""


class Waits(Generic[T]):
    """What waits, oldest first, and since when; what waits for too long is looked for now and then.

    A timer for each would cost a loop about as much as it does for a request otherwise.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[T, float] = {}

    def begin(self, waiting: T, now: float) -> None:
        """Add what waits from now on."""
        self._since[waiting] = now

    def end(self, waiting: T) -> bool:
        """Remove it; return whether it was still there."""
        return self._since.pop(waiting, None) is not None

    def overdue(self, now: float) -> Iterator[T]:
        """Remove and yield what has waited for too long."""
        while self._since:
            waiting, since = next(iter(self._since.items()))
            if since + self._seconds > now:
                return
            del self._since[waiting]
            yield waiting


class LargeBodies:
    """A budget of bytes for large bodies that are being read.

    A body takes of it what has come: one that is announced and does not come costs others nothing.
    """

    def __init__(self, most: int = MOST_LARGE_BYTES) -> None:
        self._left = most

    async def read(
        self, protocol: RequestProtocol, announced: int | None = None, limit: int = MAX_BODY
    ) -> bytes:
        """Return a body, as far as it is within the limit; Overloaded: others have the budget."""
        blocks, size = [bytearray()], 0  # one buffer for each body would grow by copies of itself
        try:
            async for piece in protocol:
                if len(blocks[-1]) < SMALL_BODY:
                    blocks[-1] += piece
                else:
                    blocks.append(bytearray(piece))
                size += len(piece)
                self._left -= len(piece)
                if size > limit:
                    raise too_large()
                if self._left < 0:
                    raise Overloaded(RETRY_SECONDS, "too many large bodies are being read already")
            if announced is not None and size < announced:
                raise refusal("incomplete")  # before it is one string, which this would keep, too
            return b"".join(blocks)
        finally:
            self._left += size
            blocks.clear()  # a refusal's traceback would keep them


class RequestBodies:
    """Reads the bodies of one worker's endpoint, each until its deadline."""

    def __init__(self, most_large: int = MOST_LARGE_BYTES) -> None:
        self._large = LargeBodies(most_large)
        self._reading: Waits[asyncio.Task[object]] = Waits(BODY_SECONDS)

    async def read(
        self, protocol: RequestProtocol, size: int | None, now: float, limit: int = MAX_BODY
    ) -> bytes:
        """Return a body of an announced size; refuse one too large, or that does not come in time.

        Without a size, it is read up to the limit.
        """
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - each request is one
        self._reading.begin(task, now)
        is_small = size is not None and size <= SMALL_BODY
        try:
            raw = await (protocol() if is_small else self._large.read(protocol, size, limit))
        except asyncio.CancelledError:
            if self._reading.end(task):
                raise
            task.uncancel()
            raise refusal("incomplete") from None
        except RuntimeError:  # the device went away
            raise refusal("incomplete") from None
        finally:
            self._reading.end(task)
        if size is not None and len(raw) < size:
            raise refusal("incomplete")
        return raw

    def end_overdue(self, now: float) -> None:
        """Refuse the requests whose bodies did not come in time."""
        for task in self._reading.overdue(now):
            task.cancel()
