"""Collections for queries, and a clock."""

from __future__ import annotations

from dataclasses import dataclass

from veilcount_shared import Collection, parse_collections


def make_collections(text: str) -> dict[str, Collection]:
    return parse_collections(f'app = "acme"\n{text}', lambda _: [])


def make_collection(**keys: object) -> Collection:
    """Return a collection: by default a yes or no each month, at epsilon 1, over a year."""
    defaults: dict[str, object] = {
        "question": '"Dark?"',
        "boolean": "true",
        "epsilon": 1,
        "unit": '"month"',
        "from": "2026-12-01",
        "until": "2027-12-01",
    }
    lines = (f"{key} = {value}" for key, value in (defaults | keys).items() if value is not None)
    return make_collections("[c]\n" + "\n".join(lines))["c"]


@dataclass
class SteppedClock:
    """Seconds since some start, which only a test lets pass."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now
