"""Log-in with a key or a one-time link, and log-out."""

from __future__ import annotations

from flask import Response, request

from veilcount_shared.problem_details import ProblemError

from ...records.api_keys import Role
from ...records.sessions import LINK_ACTOR, LINK_PATH, redeem_link
from ...store.store_url import redact_url
from .pages import Content, Context, page, redirect_to, redirect_to_path, render

MESSAGES = {
    "wrong-role": "This is a device key. Log in with the key of an analyst or an admin.",
    "no-key": "Unknown or revoked key. `veilcount keys create --role analyst` creates one.",
    "too-many": "Too many attempts. Wait a second, then try again.",
}
LINK_INVALID = (
    "This link was used, is older than 15 minutes, or is of a server that has ended."
    " `veilcount keys link{store}` prints a new one. Or log in with a key:"
    " `veilcount keys create --role admin{store}`."
)


@page("/login", role=None, methods=("GET", "POST"))
def log_in(context: Context) -> Response:
    """Exchange a key for a session."""
    if request.method == "GET":
        if context.visit.role:
            return redirect_to("overview")
        return _form(context, request.args.get("to", "/"))
    to = request.form.get("to", "/")
    try:
        bearer = f"Bearer {request.form.get('key', '')}"
        key = context.authenticator.admit(bearer, Role.ANALYST)
    except ProblemError as refused:
        problem = refused.problem
        return _form(context, to, MESSAGES.get(problem.kind.name, problem.detail), problem.status)
    response = redirect_to_path(to)
    context.sessions.begin(response, key.role, key.id)
    return response


@page(LINK_PATH, role=None, methods=("GET", "POST"))
def enter(context: Context) -> Response | Content:
    """Exchange a one-time link for a session: its secret is in the fragment, a script posts it."""
    if request.method == "GET":
        return {}
    aggregator = context.aggregator
    role = redeem_link(aggregator.store, request.form.get("link", ""), aggregator.clock())
    if role is None and context.visit.role:  # a link that is opened again, by whom it logged in
        return redirect_to("overview")
    if role is None:
        return _form(context, "/", LINK_INVALID.format(store=_store_option(context)), 403)
    response = redirect_to("overview")
    context.sessions.begin(response, role, LINK_ACTOR)
    return response


@page("/logout", role=None, methods=("POST",))
def log_out(context: Context) -> Response:
    """End the session."""
    response = redirect_to("log_in")
    context.sessions.end(response, context.visit)
    return response


def _store_option(context: Context) -> str:
    """Return how a command names the store of `veilcount dev`; no other address is shown."""
    settings = context.aggregator.settings
    return f" --store {redact_url(settings.store)}" if settings.dev else ""


def _form(context: Context, to: str, wrong: str = "", status: int = 200) -> Response:
    return render("log_in", status, to=to, wrong=wrong, store=_store_option(context))
