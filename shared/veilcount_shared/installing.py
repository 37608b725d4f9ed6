"""How a message says what to install: the one place that prints the command.

No package index has veilcount yet, so the commands install from a checkout. The first publication
sets `PUBLISHED`, and every message names the distributions instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

PUBLISHED = False

Extra = Literal[
    "aggregator", "arrow", "central", "estimate", "issuer", "oidc", "relay", "shared-state"
]

#: the folders of a checkout, each after those that it needs
FOLDERS: Mapping[str, str] = {
    "veilcount": ".",
    "veilcount-analysis": "./aggregator/analysis",
    "veilcount-aggregator": "./aggregator",
}
#: which distribution declares an extra, and under which name; none: the distribution itself
DECLARED: Mapping[Extra, tuple[str, str]] = {
    "aggregator": ("veilcount-aggregator", ""),
    "arrow": ("veilcount-analysis", "arrow"),
    "central": ("veilcount-analysis", "central"),
    "estimate": ("veilcount-analysis", "estimate"),
    "issuer": ("veilcount-aggregator", "issuer"),
    "oidc": ("veilcount-aggregator", "oidc"),
    "relay": ("veilcount", "relay"),
    "shared-state": ("veilcount", "shared-state"),
}


def install(extra: Extra, *, published: bool = PUBLISHED) -> str:
    """Return the command that installs an extra, as a message prints it."""
    command = f"`pip install {' '.join(map(_quoted, requirements(extra, published=published)))}`"
    return command if published else f"{command} in a checkout"


def requirements(extra: Extra, *, published: bool) -> list[str]:
    """Return pip's argument: a name of an index, or folders of a checkout."""
    distribution, name = DECLARED[extra]
    suffix = f"[{name}]" if name else ""
    if published:
        return [distribution + suffix]
    needed = list(FOLDERS)[: list(FOLDERS).index(distribution)]
    return [*(FOLDERS[sister] for sister in needed), FOLDERS[distribution] + suffix]


def _quoted(requirement: str) -> str:
    """Quote what a shell would expand."""
    return f"'{requirement}'" if "[" in requirement else requirement
