"""The way in and out: a key, or a one-time link."""

from __future__ import annotations

from flask import Response, g, request

from ..api.auth import Authenticator
from ..api.problems import ProblemError
from ..auth.api_keys import Role
from ..auth.login_links import PATH, WHO, redeem_link
from .layout import Frame, go, go_to

WRONG_ROLE = "This key opens the intake of devices. The pages need an analyst's or an admin's."
NO_KEY = "No such key, or it was taken back. `veilcount keys create --role analyst` makes one."
TOO_MANY = "Too many guesses. Wait a second, and try again."
USED_UP = "This link was used, or is older than a quarter of an hour. Log in with a key instead."
_WORDS = {"wrong-role": WRONG_ROLE, "no-key": NO_KEY, "too-many": TOO_MANY}


def pages(frame: Frame, authority: Authenticator) -> None:
    """Add the pages."""

    @frame.open_page("/login", methods=("GET", "POST"))
    def log_in() -> Response:
        """Take a key, in exchange for a session."""
        if request.method == "GET":
            return go("overview") if g.visit.role else _asked(request.args.get("to", "/"))
        to = request.form.get("to", "/")
        try:
            key = authority.admit(f"Bearer {request.form.get('key', '')}", Role.ANALYST)
        except ProblemError as refused:
            name = refused.problem.kind.name
            return _asked(to, _WORDS.get(name, refused.problem.detail), refused.problem.status)
        response = go_to(to)
        frame.visitors.admit(response, key.role, key.id)
        return response

    @frame.open_page(PATH, methods=("GET", "POST"))
    def enter() -> Response:
        """Take a one-time link: its secret is behind the #, and the page posts it."""
        if request.method == "GET":
            return frame.told("enter.html")
        aggregator = frame.aggregator
        role = redeem_link(aggregator.store, request.form.get("link", ""), aggregator.clock())
        if role is None:
            return _asked("/", USED_UP, 403)
        response = go("overview")
        frame.visitors.admit(response, role, WHO)
        return response

    @frame.open_page("/logout", methods=("POST",))
    def log_out() -> Response:
        """End the session."""
        response = go("log_in")
        frame.visitors.dismiss(response, g.visit)
        return response

    def _asked(to: str, wrong: str = "", status: int = 200) -> Response:
        return frame.told("log_in.html", status if wrong else 200, to=to, wrong=wrong)
