"""Flask: one client for each app, from the app's configuration.

veilcount = Veilcount()

def create_app():
    app = Flask(__name__)
    app.config.from_mapping(VEILCOUNT_URL="...", VEILCOUNT_COLLECTIONS="collections.toml")
    veilcount.init_app(app)

veilcount.client.record("theme", "dark")   # in a view

`pages` makes a blueprint with pages for consent, receipt and deletion:

app.register_blueprint(veilcount.pages(person), url_prefix="/privacy")
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from ..client import Client, Respondent
from . import pages
from .app_client import client_for

NAME = "veilcount"
TOKEN = "veilcount_csrf"  # in the session, and in the form  # noqa: S105 - the name of one


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
        from flask import Blueprint, Response  # noqa: PLC0415 - optional dependency

        own = pages.PrivacyPages(lambda: self.client, messages, language)
        find = person or (lambda: self.client)
        blueprint = Blueprint(name, __name__)

        def respond(page: pages.RenderedPage) -> Response:
            return Response(page.html, page.status, pages.HEADERS, mimetype="text/html")

        @blueprint.get(f"/{pages.CONSENT}")
        def consent() -> Response:
            return respond(own.consent(find(), _form_fields()))

        @blueprint.post(f"/{pages.CONSENT}")
        def decide() -> Response:
            current_person = find()
            if failed := own.decide(current_person, _sent(pages.CONSENT)):
                return respond(own.consent(current_person, _form_fields(), failed=failed))
            return Response(status=303, headers={"Location": pages.CONSENT})

        @blueprint.get(f"/{pages.RECEIPT}")
        def receipt() -> Response:
            return respond(own.receipt(find()))

        @blueprint.get(f"/{pages.FORGET}")
        def forget() -> Response:
            return respond(own.forget(find(), _form_fields()))

        @blueprint.post(f"/{pages.FORGET}")
        def erase() -> Response:
            current_person = find()
            if failed := own.erase(current_person, _sent(pages.FORGET)):
                return respond(own.forget(current_person, _form_fields(), failed=failed))
            return respond(own.erased())

        return blueprint


def _form_fields() -> dict[str, str]:
    """Return the hidden fields of the form: our token, and that of the app's own protection.

    Flask has no protection of forms. Where the app has one (Flask-WTF puts `csrf_token` among the
    globals of its templates), it checks its own field, and we ours.
    """
    from flask import current_app, session  # noqa: PLC0415 - optional dependency

    token = session.setdefault(TOKEN, secrets.token_urlsafe(32))
    fields = {TOKEN: token}
    make: Any = current_app.jinja_env.globals.get("csrf_token")
    if make:
        fields[current_app.config.get("WTF_CSRF_FIELD_NAME", "csrf_token")] = str(make())
    return fields


def _sent(field: str) -> str | None:
    """Return a field of our own form; None if the form is another site's."""
    from flask import request, session  # noqa: PLC0415 - optional dependency

    token = session.get(TOKEN, "")
    sent = request.form.get(TOKEN, "")
    is_own = bool(token) and secrets.compare_digest(token.encode(), sent.encode())
    return request.form.get(field) if is_own else None
