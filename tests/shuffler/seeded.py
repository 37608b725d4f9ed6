"""Seeds for all that a shuffler's operating system, and what seals for it, would draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from veilcount_shared.oblivious_http import hpke
from veilcount_shared.shuffling import sealed_report
from veilcount_shuffler.crowd_folder import CrowdFolder

from ..client.device_fixtures import number


def _secret(*what: object) -> bytes:
    return number(*what).to_bytes(8, "big") * 4


def seeded_order() -> AbstractContextManager[object]:
    """Draw the secret of each crowd, which makes its order, from a seed."""
    return patch.object(CrowdFolder, "secret", lambda folder: _secret("order", folder.path.name))


@contextmanager
def seeded_sealing(who: object) -> Iterator[None]:
    """Draw encapsulated keys from seeds, the first, second and so on of one sender and info."""
    times = Counter[bytes]()

    def encapsulate(public: bytes, aead: int, info: bytes, _: object = None) -> Any:
        times[info] += 1
        private = X25519PrivateKey.from_private_bytes(_secret("ephemeral", who, info, times[info]))
        return hpke.encapsulate(public, aead, info, private)

    with patch.object(sealed_report, "encapsulate", encapsulate):
        yield
