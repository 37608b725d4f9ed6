"""ClientOptions: what an app passes to `Client`, as one value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Self

from veilcount_shared import Collection, RandomSource

from .clock import Clock
from .delivery.issuer import Account, TokenIssuer
from .delivery.shuffler import EnvelopeTransport
from .delivery.transport import Transport
from .settings import ClientSettings, read_settings

Definitions = str | os.PathLike[str] | Mapping[str, Collection]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # it holds keys
class ClientOptions:
    """The arguments of `Client`. None stands for the VEILCOUNT_ variable, or the default."""

    url: str | None = None
    collections: Definitions | None = None
    state_dir: str | os.PathLike[str] | None = None
    state: str | None = None
    key: str | None = None
    ceiling: int | str | Fraction | None = None
    daily_ceiling: int | str | Fraction | None = None
    persons: bool | None = None
    trust_curator: bool | None = None
    development: bool | None = None
    strict: bool | None = None
    jitter: float | None = None
    relay: str | None = None
    relay_keys: bytes | str | os.PathLike[str] | None = None
    shuffler: str | EnvelopeTransport | None = None
    issuer: str | TokenIssuer | None = None
    account: Account | None = None
    transport: Transport | None = None
    clock: Clock | None = None
    randomness: RandomSource | None = None
    threaded: bool = True

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Self:
        """Take the arguments of a call by their names, which are the fields'."""
        return cls(**{field.name: arguments[field.name] for field in fields(cls)})

    def read_settings(self) -> ClientSettings:
        """Resolve what has a variable. Objects, and contents in place of a file, have none."""
        arguments: dict[str, Any] = {
            field.name: getattr(self, field.name) for field in fields(self)
        }
        if isinstance(self.collections, Mapping):
            del arguments["collections"]
        for name in ("issuer", "shuffler"):
            if not isinstance(arguments[name], str):
                del arguments[name]
        if isinstance(self.relay_keys, bytes):
            del arguments["relay_keys"]
        return read_settings(**arguments)
