"""The settings of a client: its arguments, else VEILCOUNT_* environment variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from urllib.parse import urlsplit

from veilcount_shared import Collection
from veilcount_shared.epsilon import parse_exact

JITTER = 3600.0
KILL_SWITCHES = ("VEILCOUNT_DISABLED", "DO_NOT_TRACK")
_OFF = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """The settings in use. Ceilings are exact: 0.7 as the string or Fraction, never the float."""

    url: str | None = None
    collections: str | None = None
    state: str | None = None
    key: str | None = None
    ceiling: Fraction | None = None
    daily_ceiling: Fraction | None = None
    persons: bool = False
    trust_curator: bool = False
    development: bool = False
    strict: bool = False
    jitter: float = JITTER
    disabled: str | None = None
    issuer: str | None = None
    relay: str | None = None
    relay_keys: str | None = None  # a file
    shuffler: str | None = None

    @property
    def shuffler_host(self) -> str:
        """The host of the shuffler, as logs and notices call it; empty without one."""
        try:
            return urlsplit(self.shuffler or "").hostname or ""
        except ValueError:
            return ""  # no address at all, which is refused by name

    def route(self, collection: Collection) -> str:
        """How reports of a collection reach the server."""
        if collection.batch is not None:
            return "shuffler"
        return "direct" if self.relay is None else "relay"


def is_on(value: object) -> bool:
    """Whether a variable or an argument switches something on."""
    return str(value).strip().lower() not in _OFF


PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "url": str,
    "collections": os.fspath,
    "key": str,
    "issuer": str,
    "relay": str,
    "relay_keys": os.fspath,
    "shuffler": str,
    "ceiling": parse_exact,  # refuses floats
    "daily_ceiling": parse_exact,
    "persons": is_on,
    "trust_curator": is_on,
    "development": is_on,
    "strict": is_on,
    "jitter": lambda value: JITTER if value == "" else float(value),
}


def read_settings(
    environment: Mapping[str, str] | None = None, /, **arguments: Any
) -> ClientSettings:
    """Return the settings: an argument that is not None wins over its VEILCOUNT_ variable.

    Arguments that no setting is named after are left out.
    """
    environment = os.environ if environment is None else environment
    variables = {name: environment.get(f"VEILCOUNT_{name.upper()}") for name in PARSERS}
    chosen = variables | {
        name: argument for name, argument in arguments.items() if argument is not None
    }
    location = (
        arguments.get("state")
        or arguments.get("state_dir")
        or environment.get("VEILCOUNT_STATE")
        or environment.get("VEILCOUNT_STATE_DIR")
    )
    switches = (name for name in KILL_SWITCHES if is_on(environment.get(name, "")))
    return ClientSettings(
        state=None if location is None else os.fspath(location),
        disabled=next(switches, None),
        **{
            name: parse(chosen[name]) for name, parse in PARSERS.items() if chosen[name] is not None
        },
    )
