"""`import veilcount` has the client's public names."""

from __future__ import annotations

import veilcount
import veilcount_client


def test_the_facade_has_the_clients_public_names() -> None:
    for name in veilcount_client.__all__:
        assert getattr(veilcount, name) is getattr(veilcount_client, name)
