"""The pages for consent, receipt and deletion in a real Flask [Django: test_web_frameworks]."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from typing import Any
from unittest.mock import patch

import pytest
from flask import Flask, abort, request, session
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from veilcount_client import Person
from veilcount_client.integrations import flask as integration
from veilcount_client.integrations import pages
from veilcount_client.state import StateError
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.testing import ClientHarness

from ..delivery.app_client import NOBODY
from ..device_fixtures import file
from .running_campaign import COLLECTIONS


def site(**options: object) -> Flask:
    """Return an app whose visitors log in by /login/<name>, and record by /theme/<name>."""
    app = Flask(__name__)
    app.secret_key = "for tests"
    definitions = options.pop("collections", COLLECTIONS)
    limits = {"ceiling": 9, "daily_ceiling": 9}
    extension = integration.Veilcount(
        app, url=NOBODY, collections=definitions, persons=True, **limits
    )

    def current() -> Person | None:
        return extension.client.person(session["user"]) if "user" in session else None

    @app.get("/login/<name>")
    def login(name: str) -> str:
        session["user"] = name
        return name

    @app.get("/theme/<name>")
    def choose(name: str) -> str:
        found = current()
        if found is not None:
            found.record("theme", name)
        return name

    pages = extension.pages(current, **options)  # type: ignore[arg-type] # of a test
    app.register_blueprint(pages, url_prefix="/privacy")
    return app


def browser(app: Flask, user: str = "ann") -> FlaskClient:
    found = app.test_client()
    found.get(f"/login/{user}")
    return found


def hidden(page: Any) -> dict[str, str]:
    """Return the hidden fields of a page's form."""
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]+)">', page.text))


def answer(visitor: FlaskClient, word: str) -> TestResponse:
    """Answer the form as a browser does."""
    page = visitor.get("/privacy/consent")
    fields = {**hidden(page), "consent": button(page.text, word)}
    return visitor.post("/privacy/consent", data=fields)


def button(html: str, word: str) -> str:
    """Return the whole value of the button that begins with a word."""
    values = re.findall(r'name="consent" value="([^"]+)"', html)
    return next((value for value in values if value.split()[0] == word), word)


@pytest.fixture(autouse=True)
def _no_consent_by_default(veilcount: ClientHarness) -> None:
    veilcount.consent = None


def test_a_person_decides_and_sees_what_was_sent(veilcount: ClientHarness) -> None:
    app = site()
    ann, ben = browser(app), browser(app, "ben")
    before = ann.get("/privacy/consent").text
    decided = answer(ann, "yes")
    after = ann.get("/privacy/consent").text
    ann.get("/theme/dark")
    ben.get("/theme/light")
    veilcount.flush()
    receipt = ann.get("/privacy/receipt")

    assert "You have not decided yet" in before
    assert "changes it at random before it is sent to the statistics server" in before
    assert "Your true answer, to the operator" not in before
    assert "Which theme is active?" in before
    assert (decided.status_code, decided.headers["Location"]) == (303, "consent")
    assert "You agreed" in after
    assert veilcount.recorded == [("theme", "dark")]
    assert "delivered" in receipt.text
    assert 'href="consent"' in receipt.text
    assert "Nothing was sent yet" in ben.get("/privacy/receipt").text
    answer(ann, "no")
    assert "You declined" in ann.get("/privacy/consent").text


def test_a_form_of_another_site_decides_nothing(veilcount: ClientHarness) -> None:
    """Without the session's token, with another session's, or with an empty one."""
    app = site()
    ann, ben = browser(app), browser(app, "ben")
    foreign = hidden(ben.get("/privacy/consent"))
    for fields in ({}, foreign, {pages.TOKEN: ""}, {pages.TOKEN: "é"}):
        refused = ann.post("/privacy/consent", data={**fields, "consent": "yes"})

        assert refused.status_code == 400
        assert 'role="alert"' in refused.text
    fresh = app.test_client()
    with fresh.session_transaction() as kept:
        kept["user"] = "ann"
    assert fresh.post("/privacy/consent", data={"consent": "yes"}).status_code == 400
    ann.get("/theme/dark")
    assert veilcount.recorded == []


def test_an_apps_own_protection_of_forms_is_served(veilcount: ClientHarness) -> None:
    """As Flask-WTF works: a global of the templates, a field, a check before each request."""
    app = site()
    app.config["WTF_CSRF_FIELD_NAME"] = "own_token"
    app.jinja_env.globals["csrf_token"] = lambda: "token of the app"

    @app.before_request
    def check() -> None:
        if request.method == "POST" and request.form.get("own_token") != "token of the app":
            abort(400)

    ann = browser(app)

    assert answer(ann, "yes").status_code == 303
    assert ann.post("/privacy/consent", data={"own_token": "token of the app"}).status_code == 400


def test_who_is_not_logged_in_sees_and_decides_nothing() -> None:
    visitor = site().test_client()
    found = [
        visitor.get("/privacy/consent"),
        visitor.get("/privacy/receipt"),
        visitor.post("/privacy/consent", data={"consent": "yes"}),
        visitor.get("/privacy/forget"),
        visitor.post("/privacy/forget", data={"forget": "yes"}),
    ]

    assert [each.status_code for each in found] == [403] * 5
    assert all("Please log in first" in each.text for each in found)


def test_a_person_is_forgotten_by_a_form_of_our_own(veilcount: ClientHarness) -> None:
    app = site()
    ann, ben = browser(app), browser(app, "ben")
    for each in (ann, ben):
        answer(each, "yes")
        each.get("/theme/dark")
    veilcount.flush()
    form = ann.get("/privacy/forget")
    foreign = [
        ann.post("/privacy/forget", data={**fields, "forget": "yes"})
        for fields in ({}, hidden(ben.get("/privacy/forget")), {pages.TOKEN: ""})
    ]
    unconfirmed = ann.post("/privacy/forget", data=hidden(form))
    kept = ann.get("/privacy/receipt").text
    done = ann.post("/privacy/forget", data={**hidden(form), "forget": "yes"})

    for text in ("stay counted", "asked again before anything else is recorded", "Delete it now"):
        assert text in form.text
    assert [each.status_code for each in (*foreign, unconfirmed)] == [400] * 4
    assert all("could not be deleted" in each.text for each in (*foreign, unconfirmed))
    assert "delivered" in kept
    assert (done.status_code, done.headers["Cache-Control"]) == (200, "no-store")
    assert "What was stored about you is deleted, except how much was revealed" in done.text
    assert "You have not decided yet" in ann.get("/privacy/consent").text
    assert "delivered" not in ann.get("/privacy/receipt").text
    assert "delivered" in ben.get("/privacy/receipt").text
    for path in ("consent", "receipt"):
        assert 'href="forget"' in ann.get(f"/privacy/{path}").text


def test_what_a_withdrawal_cannot_call_back_is_stated() -> None:
    """Counts; and, only where reports carry tokens, the issuer's record of the account."""
    tokens = {"linkage": "token", "tokens": "0" * 64}
    keys = {"from": "2026-01-01", "until": "2030-01-01", "unit": "month", "answers": 2}
    plain, signed = (browser(site(collections=file(it={**keys, **more}))) for more in ({}, tokens))
    for path in ("consent", "forget"):
        assert "counted stay" in plain.get(f"/privacy/{path}").text
        assert "The issuer" not in plain.get(f"/privacy/{path}").text
        record = "The issuer&#x27;s record of your account is erased by its operator on request."
        assert record in signed.get(f"/privacy/{path}").text


def test_an_app_may_replace_the_sentences_of_the_notice() -> None:
    """On the consent page and in the receipt, with the figures of the definition."""
    german = {"notice_guess_report": "Mit einem Bericht h\u00f6chstens {one} von 20. <b>"}
    ann = browser(site(messages=german, language="de"))
    answer(ann, "yes")

    for path in ("consent", "receipt"):
        page = ann.get(f"/privacy/{path}").text
        assert "Mit einem Bericht h\u00f6chstens 15 von 20. &lt;b&gt;" in page
        assert "With one report" not in page


def test_the_pages_load_nothing_stay_in_no_cache_and_in_no_frame() -> None:
    """Their one style is allowed by its hash."""
    for path in ("/privacy/consent", "/privacy/receipt", "/privacy/forget"):
        page = browser(site()).get(path)
        (style,) = re.findall(r"(?s)<style>(.*)</style>", page.text)
        digest = b64encode(sha256(style.encode()).digest()).decode()
        policy = page.headers["Content-Security-Policy"]

        assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
        assert "frame-ancestors 'none'" in policy
        assert page.headers["Cache-Control"] == "no-store"
        assert "<script" not in page.text


def test_a_new_question_needs_a_new_consent(veilcount: ClientHarness) -> None:
    """A consent covers the questions it was given for."""
    options = {"unit": "user", "from": "2026-01-01", "until": "2030-01-01"}
    first = file(theme={"question": "Theme?", "values": ["dark", "light"], **options})
    second = first | file(size={"question": "Size?", **options})
    answer(browser(site(collections=first)), "yes")
    ann = browser(site(collections=second))
    form = ann.get("/privacy/consent").text
    answer(ann, "yes_new")

    assert "Some questions are new, and need your answer again: Size?" in form
    assert "You agreed" in ann.get("/privacy/consent").text


@pytest.mark.parametrize("strict", [True, False])
def test_an_unusable_state_is_an_apology_without_details(
    veilcount: ClientHarness, monkeypatch: pytest.MonkeyPatch, *, strict: bool
) -> None:
    """Both pages answer; a decision that could not be stored is not shown as one.

    A strict client raises then, one in production logs.
    """
    monkeypatch.setitem(veilcount._overrides, "strict", strict)
    ann = browser(site())
    form = ann.get("/privacy/consent")
    fields, yes = hidden(form), button(form.text, "yes")
    with patch.object(SqliteState, "consent", side_effect=StateError("/srv/secret is full")):
        failed = ann.post("/privacy/consent", data={**fields, "consent": yes})
    with patch.object(SqliteState, "forget", side_effect=StateError("/srv/secret is full")):
        kept = ann.post("/privacy/forget", data={**fields, "forget": "yes"})
    with patch.object(SqliteState, "spent", side_effect=StateError("/srv/secret is full")):
        unavailable = [ann.get(f"/privacy/{each}") for each in ("consent", "receipt")]

    assert failed.status_code == 503
    assert "could not be stored" in failed.text
    assert "You have not decided yet" in failed.text
    assert [each.status_code for each in unavailable] == [503, 200]
    assert "cannot be decided now" in unavailable[0].text
    assert "There is no receipt now" in unavailable[1].text
    assert (kept.status_code, "could not be deleted" in kept.text) == (503, True)
    assert not any("/srv" in each.text for each in (failed, kept, *unavailable))
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    off = browser(site())
    fields = hidden(off.get("/privacy/forget"))
    assert off.get("/privacy/consent").status_code == 503
    assert off.post("/privacy/forget", data={**fields, "forget": "yes"}).status_code == 503


def test_an_objection_of_the_browser_is_a_no_that_the_page_explains(
    veilcount: ClientHarness,
) -> None:
    """The person is not asked any more; an answer on the page counts."""
    ann = browser(site())
    page = ann.get("/privacy/consent", headers={"Sec-GPC": "1"}).text
    later = ann.get("/privacy/consent").text
    answer(ann, "yes")

    assert "You declined" in page
    assert "that counts as a no until you agree" in page
    assert "You declined" in later
    assert "until you agree" not in later
    assert "You agreed" in ann.get("/privacy/consent", headers={"Sec-GPC": "1"}).text


def test_an_app_speaks_its_own_language() -> None:
    """Lazily translated texts are made strings with each page; a key that there is not is named."""
    words = ["eins", "zwei"]

    class Lazy:
        def __str__(self) -> str:
            return words.pop(0)

    ann = browser(site(messages={"consent_title": Lazy()}, language="de"))
    pages = [ann.get("/privacy/consent").text for _ in range(2)]

    assert ["<h1>eins</h1>" in pages[0], "<h1>zwei</h1>" in pages[1]] == [True, True]
    assert '<html lang="de">' in pages[0]
    with pytest.raises(ValueError, match="messages = 'consent_titel'"):
        site(messages={"consent_titel": "x"})


def test_an_app_of_one_person_needs_no_login(veilcount: ClientHarness) -> None:
    app = Flask(__name__)
    app.secret_key = "for tests"
    extension = integration.Veilcount(app, url=NOBODY, collections=COLLECTIONS)
    app.register_blueprint(extension.pages(), url_prefix="/privacy")
    visitor = app.test_client()

    assert answer(visitor, "yes").status_code == 303
    with app.app_context():
        assert extension.client.consented
