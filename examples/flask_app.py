"""A shop with accounts, in Flask: `flask --app examples/flask_app.py run`."""

from __future__ import annotations

from pathlib import Path

from flask import Flask, redirect, session
from werkzeug.wrappers import Response

from veilcount_client.client import Respondent
from veilcount_client.integrations.flask import Veilcount

statistics = Veilcount(collections=Path(__file__).with_name("collections.toml"), persons=True)


def current_person() -> Respondent | None:
    """Return whose request this is; None before a log-in."""
    return statistics.person(session["user"]) if "user" in session else None


def create_app() -> Flask:
    """Return the app. Its client is made with the first request, in the process that serves it."""
    app = Flask(__name__)
    app.secret_key = "your own"
    statistics.init_app(app)

    @app.post("/login/<user>")
    def login(user: str) -> Response:
        session["user"] = user  # an app of yours asks for more
        return redirect("/privacy/consent" if statistics.person(user).must_ask else "/")

    @app.post("/theme/<theme>")
    def choose(theme: str) -> str:
        if person := current_person():
            person.record("theme", theme)
        return f"{theme}, please"

    app.register_blueprint(statistics.pages(current_person), url_prefix="/privacy")
    return app
