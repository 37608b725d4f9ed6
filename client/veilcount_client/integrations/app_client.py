"""One client for an app, made when it is first needed: in the process that needs it."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from ..client import Client

clients: WeakKeyDictionary[object, Client] = WeakKeyDictionary()  # by app


def client_for(app: object, make: Callable[[], Client]) -> Client:
    """Return the app's client. No lock, which a fork could leave held: a rival's is closed."""
    if app not in clients:
        new = make()
        if clients.setdefault(app, new) is not new:
            new.close(0)
    return clients[app]
