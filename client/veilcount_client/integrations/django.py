"""Django: one client from `settings.VEILCOUNT`, and the person who is logged in.

    VEILCOUNT = {"url": "https://stats.example.org", "collections": BASE_DIR / "collections.toml"}

The keys are the options of Client; `persons` is True by default. `record` records
nothing of a visitor who is not logged in: whoever comes back unknown would have a new budget.
"""

from __future__ import annotations

from typing import Any

from ..client import Client, Person
from .app_client import client_for


def client() -> Client:
    """Return the site's client, made at its first use in this process."""
    from django.apps import apps  # noqa: PLC0415 - optional dependency
    from django.conf import settings  # noqa: PLC0415

    return client_for(apps, lambda: Client(**{"persons": True, **settings.VEILCOUNT}))


def person(request: Any) -> Person | None:
    """Return the person who is logged in, if one is."""
    user = getattr(request, "user", None)
    return client().person(user.pk) if user is not None and user.is_authenticated else None


def record(request: Any, name: str, value: object, /, **segments: object) -> None:
    """Record a value of the person who is logged in."""
    found = person(request)
    if found is not None:
        found.record(name, value, **segments)


def consent(request: Any) -> Any:
    """Store the answer of a form, consent=yes or consent=no: a view for urlpatterns, POST only."""
    from django.http import HttpResponse  # noqa: PLC0415 - optional dependency

    found = person(request)
    answer = {"yes": True, "no": False}.get(request.POST.get("consent", ""))
    if request.method != "POST" or found is None or answer is None:
        return HttpResponse(status=405 if request.method != "POST" else 400 if found else 403)
    found.consent(answer)
    return HttpResponse(status=204)
