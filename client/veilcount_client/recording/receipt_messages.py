"""The texts of the pages for people, by key: an app replaces those that it translates.

`receipt.html(messages)` and the pages of the integrations take a mapping with any of these keys.
Words in braces are filled in; a text may leave them out. A text is plain, never HTML. What the
pages say of a question is its privacy notice [veilcount_shared.notice.messages].
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from veilcount_shared import notice

from .kept_values import SENTENCES

MESSAGES: Mapping[str, str] = {
    **notice.MESSAGES,
    # -- the receipt
    "receipt_title": "What was sent",
    "receipt_intro": "Each question of this app, what was sent, and what it could reveal.",
    "receipt_problem": "There is no receipt now: statistics are switched off in this app, or what"
    " is stored cannot be read.",
    "receipt_nothing": "Nothing was sent yet.",
    "spent_title": "How much was revealed",
    "spent_text": "Epsilon measures how much your answers could reveal: the less, the better"
    " protected. Each question has a maximum, which is never exceeded.",
    "spent_figure": "{spent} of at most {life}",
    "question_dates": "Asked from {start} until {until}.",
    "question_answers": "Answers given: {answers}.",
    "question_notice": "About this question",
    "question_closed": "The receiver accepts no more reports.",
    **SENTENCES,
    "guess_title": "How often someone would guess right which of two answers is yours",
    "guess_times": "{times} times in 20",
    "guess_none": "without any report",
    "guess_one": "from one report, at most",
    "guess_all": "from all that was sent, at most, if your answer never changed",
    "reports_title": "Reports",
    "report_when": "Time",
    "report_status": "State",
    "report_content": "Content",
    "content_randomized": "randomized answer: {answer}",
    "content_true": "the true value, not kept here once it has left",
    "status_waiting": "waiting",
    "status_delivered": "delivered",
    "status_sent": "handed to the shuffler",
    "status_unanswered": "sent, without an answer: it may be counted",
    "status_dropped": "not counted ({status})",
    "earlier_title": "Earlier questions",
    "earlier_unknown": "A question that is no longer known",
    "earlier_spent": "Epsilon {spent} was revealed.",
    "losses_title": "What was not recorded or not counted",
    # -- the consent page of the integrations
    "consent_title": "Usage statistics",
    "consent_intro": "May this app count your answers to the questions below?",
    "consent_yes": "Yes, count them",
    "consent_no": "No, count nothing",
    "consent_yes_new": "Yes, count the new ones too",
    "consent_no_new": "No, only what I agreed to before",
    "consent_is_yes": "You agreed. You can change this at any time.",
    "consent_is_no": "You declined: nothing is recorded.",
    "consent_is_open": "You have not decided yet: nothing is recorded.",
    "consent_new": "Some questions are new, and need your answer again: {questions}",
    "consent_signal": "Your browser asks not to be tracked: that counts as a no until you agree.",
    "consent_receipt": "See what was sent",
    "consent_back": "Change your decision",
    "consent_unavailable": "This cannot be decided now. Please try again later.",
    "consent_failed": "Your decision could not be stored. Please try again.",
    "consent_login": "Please log in first.",
    # -- the deletion page of the integrations
    "forget_title": "Delete what is stored about you",
    "forget_rows": "Save the names of your rows now if you want them closed at the server:"
    " afterwards nobody can find them.",
    "forget_text": "Answers that are stored here are deleted, and so are the keys: nothing can be"
    " sent under the old names. Nothing is sent because of it. You are asked again before anything"
    " else is recorded.",
    "forget_kept": "Reports that were counted stay counted: the server keeps sums, from which no"
    " single report can be taken. How much was revealed is kept too, so that its maximum still"
    " holds.",
    "forget_button": "Delete it now",
    "forget_failed": "It could not be deleted. Please try again.",
    "forget_done_title": "Deleted",
    "forget_done": "What was stored about you is deleted, except how much was revealed. Nothing is"
    " recorded until you agree again.",
}


class HtmlTexts(notice.Texts):
    """The texts in use, escaped for HTML."""

    def __init__(self, own: Mapping[str, object] | None = None) -> None:
        """Take an app's own texts; a ValueError names a key that there is not."""
        super().__init__(own, MESSAGES)

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with its words filled in."""
        return escape(super().__call__(key, **values))
