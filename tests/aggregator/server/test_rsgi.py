"""Bodies on the event loop. On a real server: tests/security/test_limits.py."""

from __future__ import annotations

import asyncio

import pytest

from veilcount_aggregator.intake.decode import BodyTooLarge
from veilcount_aggregator.server.request_bodies import LargeBodies
from veilcount_serving.errors import Overloaded
from veilcount_shared.wire import MAX_BODY

from .test_wsgi_threads import NEVER, Protocol


def test_large_bodies_share_a_budget_of_what_has_come() -> None:
    """Whoever goes beyond it is refused, and all of it is free again once the bodies are there."""
    large = LargeBodies(10)

    async def reading() -> None:
        announced = asyncio.ensure_future(large.read(Protocol((b"12345678", NEVER))))
        await asyncio.sleep(0)
        assert await large.read(Protocol((b"1", b"2"))) == b"12"
        with pytest.raises(Overloaded):
            await large.read(Protocol((b"123",)))
        announced.cancel()
        await asyncio.wait([announced])
        assert await large.read(Protocol((b"1234567890",))) == b"1234567890"

    asyncio.run(reading())


def test_a_body_without_a_length_is_read_as_far_as_a_body_can_be() -> None:
    large = LargeBodies()

    with pytest.raises(BodyTooLarge):
        asyncio.run(large.read(Protocol((bytes(MAX_BODY), b"1", NEVER))))
    assert asyncio.run(large.read(Protocol((bytes(MAX_BODY),)))) == bytes(MAX_BODY)
