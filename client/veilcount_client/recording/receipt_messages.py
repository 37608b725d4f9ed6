"""The texts of the pages for people, by key: an app replaces those that it translates.

`receipt.html(messages)` and the pages of the integrations take a mapping with any of these keys.
Words in braces are filled in; a text may leave them out. A text is plain, never HTML.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from .kept_values import SENTENCES

MESSAGES: Mapping[str, str] = {
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
    "question_answers": "{answers} answers were given.",
    "question_local": "Your answer is changed at random before it is sent to the statistics"
    " server.",
    "question_central": "Your answer is sent as it is to a trusted curator, who sees it.",
    "question_closed": "The receiver accepts no more reports.",
    **SENTENCES,
    "guess_title": "How often someone would guess right which of two answers is yours",
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
    "status_dropped": "not counted ({status})",
    "earlier_title": "Earlier questions",
    "earlier_unknown": "A question that is no longer known",
    "earlier_spent": "Epsilon {spent} was revealed.",
    "losses_title": "What was not recorded or not counted",
    "not_covered_title": "What this does not cover",
    "not_covered_presence": "That you answered, and when, can be seen by the receiver (where"
    " presence is not hidden).",
    "not_covered_network": "Whoever sees your network address can connect what you send.",
    "not_covered_network_relay": "What you send goes through a relay: the server does not see your"
    " network address, unless the relay tells it.",
    "not_covered_common": "What you have in common with others is learned from them, with or"
    " without you.",
    # -- the consent page of the integrations
    "consent_title": "Usage statistics",
    "consent_intro": "May this app count your answers to the questions below?",
    "consent_local": "Answers to these are changed at random before they are sent to the statistics"
    " server, so that a single report does not say for certain what you answered:",
    "consent_central": "Answers to these are sent as they are to a trusted curator, who sees them:",
    "consent_yes": "Yes, count them",
    "consent_no": "No, count nothing",
    "consent_is_yes": "You agreed. You can change this at any time.",
    "consent_is_no": "You declined: nothing is recorded.",
    "consent_is_open": "You have not decided yet: nothing is recorded.",
    "consent_new": "Some questions are new, and need your answer again: {questions}",
    "consent_receipt": "See what was sent",
    "consent_back": "Change your decision",
    "consent_unavailable": "This cannot be decided now. Please try again later.",
    "consent_failed": "Your decision could not be stored. Please try again.",
    "consent_login": "Please log in first.",
    # -- the deletion page of the integrations
    "forget_title": "Delete what is stored about you",
    "forget_text": "Answers that are stored here are deleted, and so is the secret from which your"
    " pseudonyms are made. Where a report was sent under a pseudonym, the statistics server is"
    " asked, at a random time, to accept no more under it. You are asked again before anything else"
    " is recorded.",
    "forget_kept": "Reports that were counted stay counted: the server keeps sums, from which no"
    " single report can be taken. How much was revealed is kept too, so that its maximum still"
    " holds.",
    "forget_button": "Delete it now",
    "forget_failed": "It could not be deleted. Please try again.",
    "forget_done_title": "Deleted",
    "forget_done": "What was stored about you is deleted, except how much was revealed. Nothing is"
    " recorded until you agree again.",
}


class Texts:
    """The texts in use, escaped for HTML."""

    def __init__(self, own: Mapping[str, object] | None = None) -> None:
        """Take an app's own texts; a ValueError names a key that there is not."""
        unknown = sorted((own or {}).keys() - MESSAGES.keys())
        if unknown:
            raise ValueError(
                f"messages = {unknown[0]!r}: no text of this key, give keys of MESSAGES"
            )
        self._texts = {**MESSAGES, **(own or {})}

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with its words filled in. An app's may be lazy: it is made a string now."""
        try:
            text = str(self._texts[key]).format(**values)
        except (LookupError, ValueError):  # a translation with other braces
            text = MESSAGES[key].format(**values)
        return escape(text)
