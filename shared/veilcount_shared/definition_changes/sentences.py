"""What people read of a question, before and after its change: sentences of the privacy notice."""

from __future__ import annotations

from ..collection import Collection
from ..notice import Notice, Texts, notice
from .changes import QuestionChange

#: the notice's figures on a guess, by kind of answer
GUESSES = frozenset(
    f"notice_guess_{kind}" for kind in ("report", "reports", "trend", "release", "releases")
)
IDENTITY = "notice_identity"  # the fingerprint: it differs wherever anything does


def guess_sentences(collection: Collection) -> list[str]:
    """Return how often somebody guesses right which of two answers a person gave."""
    return [text for key, text in _sentences(notice(collection)) if key in GUESSES]


def changed_sentences(question: QuestionChange) -> tuple[list[str], list[str]]:
    """Return the sentences that only the notice before has, and those that only the new one has."""
    if question.before is None or question.after is None:
        return [], []
    before, after = _texts(question.before), _texts(question.after)
    return [text for text in before if text not in after], [
        text for text in after if text not in before
    ]


def _texts(collection: Collection) -> list[str]:
    sentences = _sentences(notice(collection))
    return [collection.question, *(text for key, text in sentences if key != IDENTITY)]


def _sentences(notice_: Notice) -> list[tuple[str, str]]:
    texts = Texts()
    return [
        (statement.key, texts(statement.key, **statement.values))
        for part in notice_.parts
        for statement in part.statements
    ]
