"""Calls of the client for an event loop, which goes on meanwhile: each in a thread of its executor.

The loop's own executor, not one of ours: a loop that ends waits for it, and a forked child's loop
has another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any, Concatenate, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
Owner = TypeVar("Owner")


def awaited(
    method: Callable[Concatenate[Owner, P], T], *, decides: bool = False
) -> Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]]:
    """Return a method's coroutine function. One that decides ends, whoever stops waiting for it."""

    @functools.wraps(method)
    async def call(owner: Owner, /, *arguments: P.args, **options: P.kwargs) -> T:
        bound = functools.partial(getattr(owner, method.__name__), *arguments, **options)
        return await in_thread(bound, decides=decides)

    call.__name__ = f"a{method.__name__}"
    return call


async def in_thread(call: Callable[[], T], *, decides: bool = False) -> T:
    """Call in a thread, with the caller's context variables.

    What decides is never left behind: a yes whose caller was cancelled, a browser that is gone,
    would else be stored after a later no. The cancellation is passed on once it has ended.
    """
    import asyncio  # noqa: PLC0415 - 30 ms at the import of apps that have no event loop

    try:
        work = asyncio.get_running_loop().run_in_executor(None, copy_context().run, call)
    except RuntimeError:  # the loop ends, and starts no thread any more; or it is not asyncio's
        return call()
    if not decides:
        return await work
    cancelled: BaseException | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from work.exception()
    return work.result()
