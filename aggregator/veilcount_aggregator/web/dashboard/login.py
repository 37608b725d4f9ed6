"""Log-in with a key, a one-time link or an identity of the organization, and log-out."""

from __future__ import annotations

import logging

from flask import Response, request

from veilcount_serving.structured_logging import log_event
from veilcount_shared.problem_details import ProblemError

from ...records.api_keys import Role
from ...records.sessions import LINK_ACTOR, LINK_PATH, redeem_link
from ...sign_in import SignInRefused
from ...store.store_url import redact_url
from ..api.problems import refusal
from .browser_sessions import is_secure
from .open_id import COOKIE_SECONDS, RETURN_PATH, Attempt, OpenIdProvider, ProviderFailed
from .pages import (
    Content,
    Context,
    local_path,
    page,
    redirect_to,
    redirect_to_path,
    render,
    see_other,
)

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


@page("/sign-in", role=None)
def sign_in(context: Context) -> Response:
    """Send the browser to the provider of identities."""
    attempt = Attempt.begin(local_path(request.args.get("to", "/")))
    try:
        response = see_other(_provider(context).address(attempt))
    except SignInRefused as refused:
        return _form(context, attempt.to, f"You are not logged in: {refused}.", 403)
    except ProviderFailed as failed:
        return _failed(context, attempt.to, failed)
    response.set_cookie(
        _attempt_cookie(),
        attempt.encode(),
        max_age=COOKIE_SECONDS,
        secure=is_secure(),
        httponly=True,
        samesite="Lax",
    )
    return response


@page(RETURN_PATH, role=None)
def signed_in(context: Context) -> Response:
    """Begin the session of whom the provider has logged in.

    The page goes on by itself: the session's cookie is not sent on the way from another site.
    """
    provider, to = _provider(context), "/"
    try:
        attempt = Attempt.decode(request.cookies.get(_attempt_cookie(), ""))
        to = local_path(attempt.to)
        identity = provider.identity(attempt, request.args)
    except SignInRefused as refused:
        return _form(context, to, f"You are not logged in: {refused}.", 403)
    except ProviderFailed as failed:
        return _failed(context, to, failed)
    response = render("signed_in", to=to)
    response.delete_cookie(_attempt_cookie(), secure=is_secure(), httponly=True, samesite="Lax")
    context.sessions.begin(response, identity.role, identity.actor, identity.apps)
    return response


@page("/logout", role=None, methods=("POST",))
def log_out(context: Context) -> Response:
    """End the session."""
    response = redirect_to("log_in")
    context.sessions.end(response, context.visit)
    return response


def _provider(context: Context) -> OpenIdProvider:
    if context.provider is None:
        raise refusal("not-found", "this server has no provider of identities: --sign-in names one")
    return context.provider


def _failed(context: Context, to: str, failed: ProviderFailed) -> Response:
    """Return the log-in page, which goes on to take keys, and log what an operator must know."""
    log_event("identity provider failed", logging.WARNING, reason=str(failed))
    message = "The identity provider failed; the server's log says how. Retry, or use a key."
    return _form(context, to, message, 502)


def _attempt_cookie() -> str:
    return "__Host-veilcount-sign-in" if is_secure() else "veilcount-sign-in"


def _store_option(context: Context) -> str:
    """Return how a command names the store of `veilcount dev`; no other address is shown."""
    settings = context.aggregator.settings
    return f" --store {redact_url(settings.store)}" if settings.dev else ""


def _form(context: Context, to: str, wrong: str = "", status: int = 200) -> Response:
    return render("log_in", status, to=to, wrong=wrong, store=_store_option(context))
