"""The settings of a client: its arguments, else VEILCOUNT_* environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

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


def read_settings(
    environment: Mapping[str, str] | None = None, /, **given: str | Fraction | float | None
) -> ClientSettings:
    """Return the settings: an argument that is not None wins over its VEILCOUNT_ variable."""
    environment = os.environ if environment is None else environment

    def text(name: str) -> str | None:
        found = given.get(name)
        return environment.get(f"VEILCOUNT_{name.upper()}") if found is None else str(found)

    def flag(name: str) -> bool:
        return (text(name) or "").strip().lower() not in _OFF

    def amount(name: str) -> Fraction | None:
        found = given.get(name)
        chosen = environment.get(f"VEILCOUNT_{name.upper()}") if found is None else found
        return None if chosen is None else parse_exact(chosen)  # type: ignore[arg-type] # refuses floats

    def place() -> str | None:
        """Return the location of the state: either argument wins over both variables."""
        named = given.get("state") or given.get("state_dir")
        return str(named) if named else text("state") or text("state_dir")

    return ClientSettings(
        url=text("url"),
        collections=text("collections"),
        state=place(),
        key=text("key"),
        ceiling=amount("ceiling"),
        daily_ceiling=amount("daily_ceiling"),
        persons=flag("persons"),
        trust_curator=flag("trust_curator"),
        development=flag("development"),
        strict=flag("strict"),
        jitter=float(text("jitter") or JITTER),
        disabled=_switch(environment),
    )


def _switch(environment: Mapping[str, str]) -> str | None:
    """Return the kill switch that is on."""
    for name in KILL_SWITCHES:
        if environment.get(name, "").strip().lower() not in _OFF:
            return name
    return None
