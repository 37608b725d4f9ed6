"""Key configurations of a gateway: `application/ohttp-keys` [RFC 9458, section 3]."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ObliviousError

X25519, HKDF_SHA256 = 0x0020, 0x0001
AES_128_GCM, CHACHA20_POLY1305 = 0x0001, 0x0003
AEADS = (AES_128_GCM, CHACHA20_POLY1305)
KEY_BYTES = 32
#: the type of a gateway's problem with the key of a request [RFC 9458, section 5.3]
KEY_PROBLEM = "https://iana.org/assignments/http-problem-types#ohttp-key"
_HEAD = struct.Struct(f">BH{KEY_BYTES}sH")
_SUITE = struct.Struct(">HH")


@dataclass(frozen=True, slots=True)
class KeyConfig:
    """A public key with its id; the suites are X25519, HKDF-SHA256 and one of these AEADs."""

    key_id: int
    public: bytes
    aeads: tuple[int, ...] = AEADS

    def encode(self) -> bytes:
        """Return its bytes."""
        suites = b"".join(_SUITE.pack(HKDF_SHA256, aead) for aead in self.aeads)
        return _HEAD.pack(self.key_id, X25519, self.public, len(suites)) + suites

    @classmethod
    def decode(cls, raw: bytes) -> KeyConfig | None:
        """Return the configuration of its bytes; None: its algorithms are unknown here."""
        if len(raw) < _HEAD.size:
            raise ObliviousError("keys", "a configuration is too short")
        key_id, kem, public, size = _HEAD.unpack_from(raw)
        if kem != X25519:
            return None
        if size % _SUITE.size or len(raw) != _HEAD.size + size:
            raise ObliviousError("keys", "the length of the suites is wrong")
        suites = list(_SUITE.iter_unpack(raw[_HEAD.size :]))
        aeads = tuple(aead for kdf, aead in suites if kdf == HKDF_SHA256 and aead in AEADS)
        return cls(key_id, public, aeads) if aeads else None


def encode_configs(configs: Sequence[KeyConfig]) -> bytes:
    """Return a list of configurations, the newest first."""
    encoded = [config.encode() for config in configs]
    return b"".join(len(config).to_bytes(2, "big") + config for config in encoded)


def decode_configs(raw: bytes) -> list[KeyConfig]:
    """Return the configurations of a list that can be used here; raise if there are none."""
    configs, place = [], 0
    while place < len(raw):
        size = int.from_bytes(raw[place : place + 2], "big")
        part = raw[place + 2 : place + 2 + size]
        if len(part) != size or not size:
            raise ObliviousError("keys", "the list ends inside a configuration")
        configs.append(KeyConfig.decode(part))
        place += 2 + size
    usable = [config for config in configs if config is not None]
    if not usable:
        raise ObliviousError("keys", "no configuration for X25519 and HKDF-SHA256")
    return usable
