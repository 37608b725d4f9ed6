"""Flask: one client for each app, from the app's configuration.

veilcount = Veilcount()

def create_app():
    app = Flask(__name__)
    app.config.from_mapping(VEILCOUNT_URL="...", VEILCOUNT_COLLECTIONS="collections.toml")
    veilcount.init_app(app)

veilcount.client.record("theme", "dark")   # in a view
"""

from __future__ import annotations

from typing import Any

from ..client import Client
from .app_client import client_for

NAME = "veilcount"


class Veilcount:
    """The extension; `client` is that of the app whose request is answered."""

    def __init__(self, app: Any = None, **options: Any) -> None:
        """Take an app at once, or later by `init_app`; options are those of Client."""
        self._options = options
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Any) -> None:
        """Serve an app. Its client is made at first use, with VEILCOUNT_... over the options."""
        app.extensions[NAME] = self

    @property
    def client(self) -> Client:
        """Return the current app's client."""
        from flask import current_app  # noqa: PLC0415 - optional dependency

        app = current_app._get_current_object()  # type: ignore[attr-defined] # noqa: SLF001 - documented, the app behind the proxy
        options = self._options | app.config.get_namespace("VEILCOUNT_")
        return client_for(app, lambda: Client(**options))
