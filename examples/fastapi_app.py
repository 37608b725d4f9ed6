"""A shop with accounts, in FastAPI: `uvicorn --app-dir examples fastapi_app:app`."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from starlette.middleware.sessions import SessionMiddleware

from veilcount import Person
from veilcount_client.integrations.asgi import AsgiVeilcount

statistics = AsgiVeilcount(collections=Path(__file__).with_name("collections.toml"), persons=True)
app = FastAPI(lifespan=statistics.lifespan)  # stores everything before the process ends


@app.post("/login/{user}")
async def login(user: str, request: Request) -> RedirectResponse:
    """Log somebody in, and ask who has not decided."""
    request.session["user"] = user  # an app of yours asks for more
    person = await statistics.aperson(request, user)
    page = "/privacy/consent" if await person.aunasked() else "/"
    return RedirectResponse(page, status_code=303)


@app.post("/theme/{theme}")
async def choose(theme: str, request: Request) -> str:
    """Use the app."""
    if "user" in request.session:
        person = await statistics.aperson(request, request.session["user"])
        person.record("theme", theme)
    return f"{theme}, please"


def current_person(scope: MutableMapping[str, Any]) -> Person | None:
    """Return whose privacy pages a request may see; None before a log-in."""
    user = scope["session"].get("user")
    return statistics.client.person(user) if user else None


app.mount("/privacy", statistics.pages(current_person))
app.add_middleware(SessionMiddleware, secret_key="your own")
