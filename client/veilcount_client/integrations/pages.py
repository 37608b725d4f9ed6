"""The pages for consent, receipt and deletion, for any framework: translatable, without scripts.

They carry headers under which a browser loads nothing, shows them in no frame and keeps no copy.
They link to each other by relative addresses, so they are served side by side, as `consent`,
`receipt` and `forget`, below any prefix.
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from typing import Any

from veilcount_shared import Collection
from veilcount_shared.collection import Linkage

from ..client import Client, Respondent
from ..recording import receipt_html
from ..recording.receipt import respondent_notice
from ..recording.receipt_messages import HtmlTexts
from ..state import StateError

#: the last parts of the addresses, and the forms' fields
CONSENT, RECEIPT, FORGET = "consent", "receipt", "forget"
METHODS = {
    CONSENT: ("GET", "HEAD", "POST"),
    RECEIPT: ("GET", "HEAD"),
    FORGET: ("GET", "HEAD", "POST"),
}
TOKEN = "veilcount_csrf"  # in the session, and in the form  # noqa: S105 - the name of one
CONFIRMED = "yes"
NO = "no"  # to everything
PLAIN_ANSWERS = ("yes", NO)
NEW_ANSWERS = ("yes_new", "no_new", NO)  # where some questions came after a yes
ANSWERS = frozenset({*PLAIN_ANSWERS, *NEW_ANSWERS})
OK, SEE_OTHER, BAD_REQUEST, FORBIDDEN, CONFLICT, UNAVAILABLE = 200, 303, 400, 403, 409, 503
_STYLE = b64encode(sha256(receipt_html.STYLE.encode()).digest()).decode()
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE}';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page, its status and its headers."""

    html: str
    status: int = OK
    headers: Mapping[str, str] = field(default_factory=lambda: HEADERS)


Fields = Callable[[], Mapping[str, str]]  # the hidden fields of a form, which protect it
Form = Mapping[str, Any]  # what a form of ours sent


def session_fields(session: MutableMapping[str, Any]) -> dict[str, str]:
    """Return the hidden field of a form, for a framework without a protection of its own."""
    return {TOKEN: session.setdefault(TOKEN, secrets.token_urlsafe(32))}


def own_form(session: Mapping[str, Any], form: Form) -> Form:
    """Return what a form of our own sent; nothing of another site's."""
    token, sent = str(session.get(TOKEN, "")), str(form.get(TOKEN, ""))
    is_own = bool(token) and secrets.compare_digest(token.encode(), sent.encode())
    return form if is_own else {}


class PrivacyPages:
    """The pages of one app, in its words."""

    def __init__(
        self,
        client: Callable[[], Client],
        messages: Mapping[str, object] | None = None,
        language: object = "en",
    ) -> None:
        """Take the app's own texts [recording.receipt_messages], perhaps lazily translated."""
        self._client, self._messages, self._language = client, messages, language
        self._texts = HtmlTexts(messages)

    def respond(
        self,
        page: str,
        person: Respondent | None,
        fields: Fields,
        form: Form | None = None,
        *,
        objects: bool = False,
    ) -> RenderedPage:
        """Show a page, or do what its form says; `objects` is what the browser sends [signals]."""
        if person is not None and objects:
            person = person.objecting()
        if page == RECEIPT:
            return self.receipt(person)
        if page == CONSENT:
            failed = self.decide(person, form.get(CONSENT)) if form is not None else 0
            if form is None or failed:
                return self.consent(person, fields, failed=failed, objects=objects)
            return RenderedPage("", SEE_OTHER, {**HEADERS, "Location": CONSENT})
        failed = self.erase(person, form.get(FORGET)) if form is not None else 0
        if form is None or failed:
            return self.forget(person, fields, failed=failed)
        return self.erased()

    def consent(
        self, person: Respondent | None, fields: Fields, *, failed: int = 0, objects: bool = False
    ) -> RenderedPage:
        """Return the form, with the hidden fields that protect it; `failed` is a failed status."""
        if person is None:
            return self._page("consent_title", ["consent_login"], FORBIDDEN)
        if person.consented is None and person.receipt().problem:
            return self._page("consent_title", ["consent_unavailable"], UNAVAILABLE)
        form = self._form(person, fields, failed, objects=objects)
        return self._document("consent_title", form, failed or OK)

    def receipt(self, person: Respondent | None) -> RenderedPage:
        """Return the person's receipt."""
        if person is None:
            return self._page("receipt_title", ["consent_login"], FORBIDDEN)
        links = [self._link(CONSENT, "consent_back"), self._link(FORGET, "forget_title")]
        receipt = person.receipt(str(self._language))
        return RenderedPage(receipt_html.page(receipt, self._messages, str(self._language), links))

    def decide(self, person: Respondent | None, answer: str | None) -> int:
        """Store what the form says; return the status of a failure, else 0.

        A form that shows other questions than there are now, of another release of the app, is
        shown again: a yes is to what the person saw.
        """
        word, _, shown = (answer or "").partition(" ")
        if person is None:
            return FORBIDDEN
        if word not in ANSWERS:
            return BAD_REQUEST
        if word != NO and shown != self._digest():
            return CONFLICT
        try:
            self._store(person, word)
        except StateError:  # of a strict client
            return UNAVAILABLE
        is_stored = person.consented is (word != NO) and not person.must_ask
        return 0 if is_stored else UNAVAILABLE

    def _digest(self) -> str:
        """Return what stands for the questions that the form shows."""
        series = " ".join(sorted(question.fingerprint for question in self._questions()))
        return sha256(series.encode()).hexdigest()[:16]

    def _store(self, person: Respondent, answer: str) -> None:
        match answer:
            case "yes":  # to each question on the page, also to one that was declined before
                person.consent(True, only=[question.name for question in self._questions()])
            case "no":
                person.consent(False)
            case _:
                person.consent(answer == "yes_new", only="new")

    def forget(self, person: Respondent | None, fields: Fields, *, failed: int = 0) -> RenderedPage:
        """Return what a deletion does, and the form for it; otherwise as `consent`."""
        if person is None:
            return self._page("forget_title", ["consent_login"], FORBIDDEN)
        form = self._forget_form(person, fields, failed)
        return self._document("forget_title", form, failed or OK)

    def erase(self, person: Respondent | None, answer: str | None) -> int:
        """Delete what is stored of the person; return the status of a failure, else 0."""
        if person is None:
            return FORBIDDEN
        if answer != CONFIRMED:
            return BAD_REQUEST
        if person.receipt().problem:  # without a state, forget() does nothing
            return UNAVAILABLE
        try:
            person.forget()
        except StateError:
            return UNAVAILABLE
        return 0

    def erased(self) -> RenderedPage:
        """Return the page that says what was deleted."""
        body = (f"<p>{self._texts('forget_done')}</p>", self._link(CONSENT, "consent_back"))
        return self._document("forget_done_title", iter(body), OK)

    # -- parts ---------------------------------------------------------------------------------

    def _form(
        self, person: Respondent, fields: Fields, failed: int, *, objects: bool
    ) -> Iterator[str]:
        texts = self._texts
        if failed:
            yield f'<p role="alert"><strong>{texts("consent_failed")}</strong></p>'
        yield f"<p>{texts('consent_intro')}</p>"
        for collection in self._questions():
            notice = respondent_notice(collection, self._client().settings, str(self._language))
            yield f"<h2>{escape(notice.question)}</h2>"
            yield from receipt_html.notice_paragraphs(notice, texts)
        yield f"<p>{self._decision(person)}</p>"
        if objects:
            yield f"<p>{texts('consent_signal')}</p>"
        answers = NEW_ANSWERS if person.consented and person.must_ask else PLAIN_ANSWERS
        buttons = ((f"{answer} {self._digest()}", f"consent_{answer}") for answer in answers)
        yield from self._buttons(CONSENT, buttons, fields)
        yield self._link(RECEIPT, "consent_receipt")
        yield self._link(FORGET, "forget_title")

    def _forget_form(self, person: Respondent, fields: Fields, failed: int) -> Iterator[str]:
        if failed:
            yield f'<p role="alert"><strong>{self._texts("forget_failed")}</strong></p>'
        if rows := person.rows():
            yield f"<p><strong>{self._texts('forget_rows')}</strong></p>"
            yield f"<pre>{escape(chr(10).join(map(str, rows)))}</pre>"
        keys = ["forget_text", "forget_kept"]
        if any(question.linkage is Linkage.TOKEN for question in self._questions()):
            keys.append("notice_issuer_erases")
        for key in keys:
            yield f"<p>{self._texts(key)}</p>"
        yield from self._buttons(FORGET, [(CONFIRMED, "forget_button")], fields)
        yield self._link(RECEIPT, "consent_receipt")

    def _buttons(
        self, name: str, buttons: Iterable[tuple[str, str]], fields: Fields
    ) -> Iterator[str]:
        """Return a form of hidden fields and of buttons, each a value and the key of its text."""
        yield '<form method="post">'
        for hidden, value in fields().items():
            yield f'<input type="hidden" name="{escape(hidden)}" value="{escape(value)}">'
        for value, key in buttons:
            yield f'<button name="{name}" value="{value}">{self._texts(key)}</button>'
        yield "</form>"

    def _decision(self, person: Respondent) -> str:
        """Return what the person has decided, and for which questions not yet."""
        decided = {True: "consent_is_yes", False: "consent_is_no", None: "consent_is_open"}
        unasked = person.unasked() if person.consented else []
        if not unasked:
            return self._texts(decided[person.consented])
        language = str(self._language)
        names = {
            question.name: question.wording(language).question for question in self._questions()
        }
        return self._texts("consent_new", questions=" ".join(names.get(n, n) for n in unasked))

    def _questions(self) -> list[Collection]:
        """Return what a consent covers: neither over the ceilings nor for an untrusted curator."""
        client = self._client()
        return [
            collection
            for name, collection in client.collections.items()
            if name not in client.reservation.refused
            and (not collection.trust.reveals or client.settings.trust_curator)
        ]

    def _link(self, address: str, key: str) -> str:
        return f'<p><a href="{address}">{self._texts(key)}</a></p>'

    def _page(self, title: str, keys: list[str], status: int) -> RenderedPage:
        return self._document(title, (f"<p>{self._texts(key)}</p>" for key in keys), status)

    def _document(self, title: str, body: Iterator[str], status: int) -> RenderedPage:
        html = receipt_html.document(self._texts(title), str(self._language), body)
        return RenderedPage(html, status)
