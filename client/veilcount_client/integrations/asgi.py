"""ASGI: one client, the person of a request, and the privacy pages, for FastAPI, Starlette, ...

    statistics = AsgiVeilcount(url="...", collections="collections.toml", persons=True)
    app = FastAPI(lifespan=statistics.lifespan)

    @app.post("/theme/{theme}")
    async def choose(theme: str, request: Request):
        person = await statistics.aperson(request, request.session["user"])
        person.record("theme", theme)

`lifespan` stores what was recorded before the process ends: uvicorn ends by the signal that stopped
it, so that no exit handler of Python's runs. `pages` makes an app with pages for consent, receipt
and deletion, to be mounted under any prefix. Needs no framework, but a session: `scope["session"]`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from ..awaiting import in_thread
from ..client import Client, Respondent
from . import pages, signals
from .app_client import client_for, clients

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
#: who a request is of, by its scope; None before a login
FindPerson = Callable[[Scope], Respondent | Awaitable[Respondent | None] | None]

MOST_BYTES = 16 << 10  # of a form
NOT_FOUND, NOT_ALLOWED, TOO_LARGE = 404, 405, 413


class AsgiVeilcount:
    """The integration of one app."""

    def __init__(self, **options: Any) -> None:
        """Take the options of Client, which is made when it is first needed."""
        self._options = options

    @property
    def client(self) -> Client:
        """Return this process's client."""
        return client_for(self, lambda: Client(**self._options))

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:  # noqa: ARG002 - as frameworks call it
        """Open the client before the first request; store everything after the last one."""
        client = await in_thread(lambda: self.client)
        try:
            yield
        finally:
            await client.aclose()
            clients.pop(self, None)  # an app that is started again in this process has another

    def person(self, request: Any, *id: object) -> Respondent:  # noqa: A002 - the app's own word
        """Return who a request is of: a person, or without an id the client's only one.

        `request` is a framework's, or a scope. An objection that the browser sends counts as a no
        until the person agrees [signals].
        """
        person = self.client.person(*id) if id else self.client
        return person.objecting() if _objects(request) else person

    async def aperson(self, request: Any, *id: object) -> Respondent:  # noqa: A002
        """Return the same, on an event loop: what an objection stores does not block it."""
        if not _objects(request):
            return self.person(request, *id)
        return await in_thread(partial(self.person, request, *id), decides=True)

    def pages(
        self,
        person: FindPerson | None = None,
        *,
        messages: Mapping[str, object] | None = None,
        language: object = "en",
    ) -> App:
        """Return an app: `consent`, `receipt`, `forget`.

        `person` returns whose pages a request may see, None before a login; it may be a coroutine
        function. By default it is the client's one person. `messages` replaces texts, by the keys
        of `receipt_messages.MESSAGES`.
        """
        own = pages.PrivacyPages(lambda: self.client, messages, language)
        find: FindPerson = person or (lambda _: self.client)

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                await _send(scope, send, await _respond(own, find, scope, receive))
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close"})

        return app


async def _respond(
    own: pages.PrivacyPages, find: FindPerson, scope: Scope, receive: Receive
) -> pages.RenderedPage:
    page = scope["path"].removeprefix(scope.get("root_path", "")).strip("/")
    methods = pages.METHODS.get(page)
    if methods is None:
        return pages.RenderedPage("", NOT_FOUND)
    if scope["method"] not in methods:
        return pages.RenderedPage("", NOT_ALLOWED, {"Allow": ", ".join(methods)})
    if "session" not in scope:
        raise RuntimeError("the pages need a session: wrap them in Starlette's SessionMiddleware")
    form = None
    if scope["method"] == "POST":
        body = await _body(receive)
        if body is None:
            return pages.RenderedPage("", TOO_LARGE)
        form = pages.own_form(scope["session"], dict(parse_qsl(body.decode("latin-1"))))
    person = await in_thread(partial(find, scope))
    if inspect.isawaitable(person):
        person = await person
    fields = partial(pages.session_fields, scope["session"])
    respond = partial(own.respond, page, person, fields, form, objects=_objects(scope))
    return await in_thread(respond, decides=True)


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request, None if it is larger than a form of ours."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MOST_BYTES:
            return None
    return body


async def _send(scope: Scope, send: Send, page: pages.RenderedPage) -> None:
    body = page.html.encode()
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Length": str(len(body)),
        **page.headers,
    }
    lines = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": page.status, "headers": lines})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _objects(request: Any) -> bool:
    """Whether a request, a framework's or a scope, carries an objection."""
    scope = getattr(request, "scope", request)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    return signals.objects(headers.get)
