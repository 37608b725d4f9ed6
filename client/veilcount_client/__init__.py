"""The client library of veilcount: it records, randomizes, accounts for epsilon, and sends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veilcount_shared.lazy_names import lazy_names

if TYPE_CHECKING:
    from .client import Client as Client
    from .client import Person as Person
    from .diagnostics.explain import Explanation as Explanation
    from .errors import ClientError as ClientError
    from .errors import NotAnAnswer as NotAnAnswer
    from .errors import NotAPerson as NotAPerson
    from .errors import NotUsable as NotUsable
    from .errors import UnknownCollection as UnknownCollection
    from .errors import UnknownValue as UnknownValue
    from .recording.known_definitions import RowName as RowName
    from .recording.receipt import Receipt as Receipt
    from .state.losses import Loss as Loss

_MODULES = {
    **dict.fromkeys(("Client", "Person"), ".client"),
    **dict.fromkeys(("ClientError", "NotAPerson", "NotAnAnswer", "NotUsable"), ".errors"),
    **dict.fromkeys(("UnknownCollection", "UnknownValue"), ".errors"),
    "Explanation": ".diagnostics.explain",
    "Loss": ".state.losses",
    "Receipt": ".recording.receipt",
    "RowName": ".recording.known_definitions",
}
__all__ = list(_MODULES)
__getattr__ = lazy_names(__name__, _MODULES)
