"""Two thousand trails with names that one could walk."""

from __future__ import annotations

_FIRST = (
    "Alder", "Amber", "Badger", "Birch", "Bramble", "Chapel", "Clover", "Copper", "Cuckoo",
    "Eagle", "Ember", "Fern", "Fox", "Granite", "Hare", "Hazel", "Heather", "Heron", "Ivy",
    "Juniper", "Kestrel", "Lantern", "Larch", "Linden", "Marten", "Maple", "Mill", "Miller's",
    "Otter", "Owl", "Pilgrim", "Quarry", "Raven", "Rowan", "Shepherd's", "Silver", "Smuggler's",
    "Thistle", "Willow", "Wren",
)  # fmt: skip
_SECOND = (
    "Arch", "Bay", "Bend", "Bluff", "Bridge", "Brook", "Canyon", "Chase", "Cliff", "Combe",
    "Crag", "Creek", "Crossing", "Dale", "Dell", "Edge", "Falls", "Fell", "Field", "Ford",
    "Gap", "Garden", "Glen", "Grove", "Gully", "Heath", "Hill", "Hollow", "Knoll", "Ladder",
    "Lake", "Ledge", "Loop", "Marsh", "Meadow", "Moor", "Pass", "Peak", "Point", "Pond",
    "Ridge", "Rise", "Rock", "Shore", "Spring", "Stairs", "Tarn", "Valley", "View", "Woods",
)  # fmt: skip

TRAILS = tuple(f"{first} {second}" for first in _FIRST for second in _SECOND)
