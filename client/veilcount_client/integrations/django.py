"""Django: one client from the setting `VEILCOUNT`, and the person who is logged in.

    VEILCOUNT = {"url": "https://stats.example.org", "collections": BASE_DIR / "collections.toml"}

The keys are the options of Client; `persons` is True by default. `record` records
nothing of a visitor who is not logged in: whoever comes back unknown would have a new budget.
`urls` adds pages for consent, receipt and deletion:

    urlpatterns = [path("privacy/", include(veilcount_client.integrations.django.urls()))]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..client import Client, Respondent
from . import pages, signals
from .app_client import client_for


def client() -> Client:
    """Return the site's client, made at its first use in this process."""
    from django.apps import apps  # noqa: PLC0415 - optional dependency
    from django.conf import settings  # noqa: PLC0415

    return client_for(apps, lambda: Client(**{"persons": True, **settings.VEILCOUNT}))


def person(request: Any) -> Respondent | None:
    """Return the person who is logged in, if one is; an objection of the browser counts as a no."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return None
    current_person = client().person(user.pk)
    return current_person.objecting() if signals.objects(request.headers.get) else current_person


def record(request: Any, name: str, value: object, /, **segments: object) -> None:
    """Record a value of the person who is logged in."""
    current_person = person(request)
    if current_person is not None:
        current_person.record(name, value, **segments)


def consent(request: Any) -> Any:
    """Store the answer of a form, consent=yes or consent=no: a view for urlpatterns, POST only."""
    from django.views.decorators.csrf import csrf_protect  # noqa: PLC0415 - optional dependency

    return csrf_protect(_store_consent)(request)  # also where the middleware is not installed


def _store_consent(request: Any) -> Any:
    from django.http import HttpResponse  # noqa: PLC0415 - optional dependency

    respondent = person(request)
    granted = {"yes": True, "no": False}.get(request.POST.get(pages.CONSENT, ""))
    if request.method != "POST" or respondent is None or granted is None:
        return HttpResponse(status=405 if request.method != "POST" else 400 if respondent else 403)
    respondent.consent(granted)
    return HttpResponse(status=204)


def _form_fields(request: Any) -> dict[str, str]:
    """Return the hidden fields of a form."""
    from django.middleware.csrf import get_token  # noqa: PLC0415 - optional dependency

    return {"csrfmiddlewaretoken": get_token(request)}


def urls(messages: Mapping[str, object] | None = None, language: object = None) -> list[Any]:
    """Return the routes `consent`, `receipt` and `forget`; forms require Django's CSRF token.

    `messages` replaces texts, by the keys of `receipt_messages.MESSAGES`; `language` is by default
    the request's.
    """
    from django.http import HttpResponse  # noqa: PLC0415 - optional dependency
    from django.urls import path  # noqa: PLC0415
    from django.utils.functional import lazy  # noqa: PLC0415
    from django.utils.translation import get_language  # noqa: PLC0415
    from django.views.decorators.csrf import csrf_protect  # noqa: PLC0415
    from django.views.decorators.http import require_http_methods  # noqa: PLC0415

    current = lazy(lambda: get_language() or "en", str)()
    own = pages.PrivacyPages(client, messages, current if language is None else language)

    def respond(request: Any, page: str) -> Any:
        form = request.POST if request.method == "POST" else None
        fields, sent = partial(_form_fields, request), signals.objects(request.headers.get)
        shown = own.respond(page, person(request), fields, form, objects=sent)
        return HttpResponse(shown.html, status=shown.status, headers=shown.headers)

    def view(page: str, methods: Sequence[str]) -> Any:
        protected = csrf_protect(partial(respond, page=page))  # also without the middleware
        return require_http_methods(methods)(protected)

    return [path(page, view(page, methods)) for page, methods in pages.METHODS.items()]
