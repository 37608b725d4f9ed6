"""Flask: one client for each app, from the app's configuration.

veilcount = Veilcount()

def create_app():
    app = Flask(__name__)
    app.config.from_mapping(VEILCOUNT_URL="...", VEILCOUNT_COLLECTIONS="collections.toml")
    veilcount.init_app(app)

veilcount.person(id).record("theme", "dark")   # in a view; person() of an app with one person

`pages` makes a blueprint with pages for consent, receipt and deletion:

app.register_blueprint(veilcount.pages(person), url_prefix="/privacy")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..client import Client, Respondent
from . import pages, signals
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

    def person(self, *id: object) -> Respondent:  # noqa: A002 - the app's own word
        """Return who the current request is of: a person, or without an id the client's only one.

        An objection that the browser sends counts as a no until the person agrees [signals].
        """
        from flask import request  # noqa: PLC0415 - optional dependency

        person = self.client.person(*id) if id else self.client
        return person.objecting() if signals.objects(request.headers.get) else person

    def pages(
        self,
        person: Callable[[], Respondent | None] | None = None,
        *,
        messages: Mapping[str, object] | None = None,
        language: object = "en",
        name: str = "veilcount_pages",
    ) -> Any:
        """Return a blueprint: `consent`, `receipt`, `forget`; it needs the app's SECRET_KEY.

        `person` returns whose pages the request may see, None before a login; by default it is the
        client's one person. `messages` replaces texts, by the keys of `receipt_messages.MESSAGES`.
        """
        from flask import Blueprint, Response, request, session  # noqa: PLC0415 - optional dependency

        own = pages.PrivacyPages(lambda: self.client, messages, language)
        find = person or (lambda: self.client)
        blueprint = Blueprint(name, __name__)

        def respond(page: str) -> Response:
            form = pages.own_form(session, request.form) if request.method == "POST" else None
            sent = signals.objects(request.headers.get)
            shown = own.respond(page, find(), _form_fields, form, objects=sent)
            return Response(shown.html, shown.status, shown.headers, mimetype="text/html")

        for page, methods in pages.METHODS.items():
            blueprint.add_url_rule(f"/{page}", page, partial(respond, page), methods=methods)
        return blueprint


def _form_fields() -> Mapping[str, str]:
    """Return the hidden fields of the form: our token, and that of the app's own protection.

    Flask has no protection of forms. Where the app has one (Flask-WTF puts `csrf_token` among the
    globals of its templates), it checks its own field, and we ours.
    """
    from flask import current_app, session  # noqa: PLC0415 - optional dependency

    fields = pages.session_fields(session)
    make: Any = current_app.jinja_env.globals.get("csrf_token")
    if make:
        fields |= {current_app.config.get("WTF_CSRF_FIELD_NAME", "csrf_token"): str(make())}
    return fields
