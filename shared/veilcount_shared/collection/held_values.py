"""The meaning of `held`: where a pending value is kept, and what may be lost."""

from __future__ import annotations

from .definition import Collection
from .enums import Model, Takes

_ON_DISK = "kept on the device's disk, readable by the app's user only, until it is"


def describe_held(collection: Collection) -> str:
    """Return the meaning in one sentence; empty where values are randomized at once."""
    running, central = collection.takes is not Takes.FIRST, collection.model is Model.CENTRAL
    if not (running or central):
        return ""
    value = "running value" if running else "true value"
    if collection.held_on_device:
        end = "delivered" if central else "frozen"
        return f"the {value} is {_ON_DISK} {end}, forgotten or withdrawn"
    lost = f"the {value} is in memory only, and lost with the process if it is killed"
    if not running:
        return lost
    return (
        "the answer is about the first process that recorded in the period, which suits a server"
        f" that never restarts; {lost}"
    )
