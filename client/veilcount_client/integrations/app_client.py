"""One client for an app, made when it is first needed: in the process that needs it."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from ..client import Client

clients: WeakKeyDictionary[object, Client] = WeakKeyDictionary()  # by app


def client_for(app: object, make: Callable[[], Client]) -> Client:
    """Return the app's client. No lock, which a fork could leave held: a rival's is closed."""
    client = clients.get(app)
    if client is None:
        new = make()
        client = clients.setdefault(app, new)
        if client is not new:
            new.close(0)
    return client
